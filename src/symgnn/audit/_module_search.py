"""The modules that a function would call, wherever it keeps them."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: How many steps from the function a module is looked for.
DEPTH = 6
#: How many values are looked at: a function may refer to a whole program.
LIMIT = 20_000


def modules_in(function: Any) -> list[nn.Module]:
    """The modules that a function, an object or a container holds or refers to.

    Looked through are closures, defaults, the globals that a function names, `functools.partial`,
    bound methods, containers and the attributes of objects, up to :data:`DEPTH` steps away.
    """
    found = {id(v): v for v in _reached(function, DEPTH) if isinstance(v, nn.Module)}
    inside = {id(m) for root in found.values() for m in root.modules() if m is not root}
    return [module for key, module in found.items() if key not in inside]


def containers_in(function: Any) -> list[dict[Any, Any] | list[Any] | set[Any]]:
    """The dictionaries, lists and sets in which a function that is no module may keep things.

    The attributes of objects are among them.
    """
    found: dict[int, Any] = {}
    for value in _reached(function, 3):
        own = value
        if not isinstance(value, dict | list | set):
            plain = isinstance(value, nn.Module) or inspect.isfunction(value) or _is_opaque(value)
            own = None if plain else getattr(value, "__dict__", None)
        if isinstance(own, dict | list | set):
            found[id(own)] = own
    return list(found.values())


def _reached(function: Any, depth: int) -> Iterator[Any]:
    """All values up to some steps away; modules are not looked into."""
    seen: set[int] = set()
    level: list[Any] = [function]
    for _ in range(depth + 1):
        following: list[Any] = []
        for value in level:
            if id(value) in seen or len(seen) > LIMIT:
                continue
            seen.add(id(value))
            yield value
            if not isinstance(value, nn.Module):
                following += _held(value)
        level = following


def _held(value: Any) -> Iterable[Any]:
    """The objects that a value which is no module refers to."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value) if len(value) <= 1000 else []
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if inspect.ismethod(value):
        return [value.__self__, value.__func__]
    if inspect.isfunction(value):
        return [*_of_function(value), *vars(value).values()]
    if _is_opaque(value):
        return []
    held = list(getattr(value, "__dict__", {}).values())
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = [slots] if isinstance(slots, str) else list(slots)
        held += [getattr(value, name) for name in names if _has_slot(value, name)]
    call = vars(type(value)).get("__call__")
    return [*held, call] if inspect.isfunction(call) else held


def _has_slot(value: Any, name: str) -> bool:
    return not name.startswith("__") and hasattr(value, name)


def _is_opaque(value: Any) -> bool:
    plain = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)
    if isinstance(value, (*plain, Tensor, np.ndarray, np.generic, torch.dtype, torch.device)):
        return True
    return inspect.isbuiltin(value) or inspect.isgenerator(value)


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = set(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):  # "models.net(pos)" names models and net
            parts = (getattr(value, other, None) for other in names)
            yield from (part for part in parts if isinstance(part, nn.Module | dict | list))
        elif value is not None:
            yield value


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that a function and those inside it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
