"""Functions that transfer the weights of every peer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from symgnn.nn.conv import Conv
from symgnn.nn.inputs import Reduction
from symgnn.nn.model import Model
from symgnn.nn.update import Update

#: Our module's name (a part with weight and bias, or a parameter) -> theirs.
Names = dict[str, Any]


class Reading(NamedTuple):
    """A symgnn network with the function of a peer's module, before the weights are copied."""

    model: Model | Conv
    names: Names
    unused: Sequence[nn.Module] = ()  # parts of theirs that do not change the values read out


def cannot(module: nn.Module, what: str) -> ValueError:
    """The error for something that has no counterpart here."""
    return ValueError(
        f"from_peer: {type(module).__name__} was made with {what}, which cannot be carried over"
    )


def refuse(module: nn.Module, **options: object) -> None:
    """Options that have no counterpart here: an error where one is set."""
    for name, value in options.items():
        if not _unset(value):
            raise cannot(module, f"{name}={_short(value)}")


def must_be(module: nn.Module, **options: tuple[object, object]) -> None:
    """Options with one supported value: an error where a value `(found, supported)` differs."""
    for name, (found, supported) in options.items():
        if found != supported:
            raise cannot(module, f"{name}={_short(found)} (supported: {_short(supported)})")


def known_attributes(module: nn.Module, known: str, base: type = nn.Module) -> None:
    """An error where a module has an option, a part or a parameter besides those of `known`,
    names with spaces between them.

    Copies of published code differ. Attributes of `base` and those that are off (None, False, 0 or
    empty) do not count.
    """
    given: dict[str, Any] = dict(vars(module))
    for kind in ("_modules", "_parameters", "_buffers"):
        given |= given.pop(kind)
    ignored = {*vars(base()), *known.split(), "training"}
    for kind in ("_modules", "_parameters", "_buffers"):
        ignored |= {*vars(base())[kind]}
    unknown = {n: v for n, v in given.items() if n not in ignored and not n.startswith("_")}
    refuse(module, **unknown)


def same_swish(module: nn.Module, *acts: Callable[[Tensor], Tensor]) -> None:
    """An error where one of the activations of a module is not the swish."""
    x = torch.linspace(-20, 20, 201)
    for act in acts:
        try:
            same = act is nn.functional.silu or torch.allclose(act(x), nn.functional.silu(x))
        except (TypeError, RuntimeError):  # an activation with parameters, of another type
            same = False
        if not same:
            raise ValueError(
                f"from_peer: {type(module).__name__} has another activation than swish: "
                f"{_short(act)}; that cannot be carried over"
            )


def check_all_read(
    module: nn.Module, reading: Reading, pairs: Iterable[tuple[str, Tensor]]
) -> None:
    """An error where a parameter of the peer has no counterpart."""
    read = {id(theirs) for _, theirs in pairs}
    read |= {id(parameter) for part in reading.unused for parameter in part.parameters()}
    for name, parameter in module.named_parameters():
        if id(parameter) not in read:
            raise cannot(module, f"the parameter {name} {list(parameter.shape)}")


def settings(model: nn.Module) -> dict[str, Any]:
    """Every number, word and switch of a model's modules that is read, by name.

    Two models with the same settings and the same parameters compute the same function.
    """
    found: dict[str, Any] = {}
    for name, module in model.named_modules():
        for key, value in vars(module).items():
            if isinstance(module, Update) and key == "aggregation":
                read = [s for s in module.inputs if isinstance(s, Reduction)]
                value = {s.movement(module.domain): value[s.movement(module.domain)] for s in read}
            plain = _plain(value)
            if not key.startswith("_") and key not in ("training", "plan") and plain is not None:
                found[f"{name}.{key}" if name else key] = plain
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two settings are equal; numbers up to the rounding of single precision."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-5)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _plain(value: Any) -> Any:
    """A setting as numbers, strings and tuples; None for other values."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, type):
        return value.__qualname__
    if isinstance(value, partial):
        return (_plain(value.func), _plain(value.args), _plain(value.keywords))
    if isinstance(value, Mapping):
        return tuple((_plain(k), _plain(v)) for k, v in value.items())
    if isinstance(value, set | frozenset):
        return tuple(sorted(map(str, value)))
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if is_dataclass(value):
        return tuple(_plain(getattr(value, field.name)) for field in fields(value))
    return getattr(value, "__qualname__", None)


def _unset(value: object) -> bool:
    if isinstance(value, nn.Module | Tensor):
        return False
    return value is None or not value


def _short(value: object) -> str:
    if isinstance(value, Tensor) and value.numel() > 1:
        return f"a tensor {list(value.shape)}"
    return str(value.item()) if isinstance(value, Tensor) else " ".join(str(value).split())[:60]
