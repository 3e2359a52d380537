"""The calls of submodules inside a model, with the tensors that go in and come out."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from symgnn.audit._isolation import is_script
from symgnn.audit._output_tensors import tensors_in


@dataclass(frozen=True)
class Place:
    """Where in a model something happens for the first time."""

    module: str  # its name, "" for the whole
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass
class Event:
    """A submodule that starts or ends, with the tensors that it got or gave."""

    module: str
    kind: str  # the class
    ends: bool
    tensors: list[Tensor]

    @property
    def label(self) -> str:
        """The name and the class."""
        return f"{self.module} ({self.kind})" if self.module else f"the model ({self.kind})"


@contextmanager
def recorded(roots: Sequence[nn.Module]) -> Iterator[list[Event]]:
    """Inside, every call of a submodule is noted, in the order in which it happens.

    TorchScript modules take no hooks that see their arguments and are left out. What
    `torch.compile` made is run uncompiled.
    """
    events: list[Event] = []

    def note(name: str, ends: bool, module: nn.Module, *values: Any) -> None:
        found = values[-1] if ends else values
        tensors = [t.detach().cpu().clone() for _, t in tensors_in(found)]
        events.append(Event(name, type(module).__name__, ends, tensors))

    def starts(name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        note(name, False, module, args, kwargs)

    def ends(name: str, module: nn.Module, args: Any, out: Any) -> None:
        note(name, True, module, out)

    handles = []
    for root in roots:
        inner = getattr(root, "_orig_mod", root)
        for name, module in inner.named_modules():
            if is_script(module):
                continue
            handles.append(
                module.register_forward_pre_hook(partial(starts, name), with_kwargs=True)
            )
            handles.append(module.register_forward_hook(partial(ends, name)))
    try:
        with _uncompiled():
            yield events
    finally:
        for handle in handles:
            handle.remove()


def _uncompiled() -> contextlib.AbstractContextManager[Any]:
    if "torch._dynamo" not in sys.modules:  # nothing was compiled
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


def can_be_recorded(roots: Sequence[nn.Module]) -> bool:
    """Whether there is a module whose calls can be noted."""
    return any(not is_script(module) for root in roots for module in root.modules())


def first_place(
    one: Sequence[Event],
    two: Sequence[Event],
    agree: Callable[[int], bool],
    in_function: bool = False,
) -> Place | None:
    """Where two recorded calls no longer agree: in a submodule, or between two of them.

    Args:
        one: The events of one call.
        two: Those of the other.
        agree: Whether event k is the same in both.
        in_function: Whether a function calls the modules, so that it may be at fault itself.
    """
    open_calls: list[int] = []
    last = ""  # the submodule that ended last
    closing = _closing(one)
    for k, (a, b) in enumerate(zip(one, two, strict=False)):
        if (a.module, a.ends) != (b.module, b.ends):
            return Place(a.module, f"in {a.label}: other submodules are called")
        same = agree(k)
        # what the output of a call around it does not show is no cause
        around = [closing[index] for index in open_calls if index in closing]
        around = [index for index in around if index != k]
        shown = all(not agree(index) for index in around)
        if a.ends:
            open_calls.pop()
            if not same and shown:
                return Place(a.module, _inside(one, a, last))
            last = a.module or a.kind
        else:
            if not same and shown:
                if open_calls:
                    parent = one[open_calls[-1]]
                    text = f"in the forward of {parent.label} itself, before it calls {a.module}"
                    return Place(parent.module, text)
                if in_function:
                    where = f"after {last}" if last else f"before it calls {a.module or a.kind}"
                    return Place("", f"in the function itself, {where}")
            open_calls.append(k)
    return None


def _inside(events: Sequence[Event], event: Event, last: str) -> str:
    start = f"{event.module}." if event.module else ""
    inner = [e for e in events if e.module.startswith(start) and e.module != event.module]
    if not inner:
        return f"in {event.label}"
    return f"in the forward of {event.label} itself" + (f", after {last}" if last else "")


def _closing(events: Sequence[Event]) -> dict[int, int]:
    """For each start of a call, where it ends."""
    found: dict[int, int] = {}
    open_calls: list[int] = []
    for k, event in enumerate(events):
        if event.ends:
            found[open_calls.pop()] = k
        else:
            open_calls.append(k)
    return found


def first_random(one: Sequence[Event], two: Sequence[Event]) -> Place | None:
    """The first submodule that gives other numbers for the same ones."""

    def agree(k: int) -> bool:
        if k >= len(two) or len(one[k].tensors) != len(two[k].tensors):
            return False
        pairs = zip(one[k].tensors, two[k].tensors, strict=True)
        return all(_identical(a, b) for a, b in pairs)

    return first_place(one, two, agree)


def _identical(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    a, b = a.nan_to_num().double(), b.nan_to_num().double()
    size = float(a.abs().max()) if a.numel() else 0.0
    return bool(((a - b).abs() <= 1e-6 * size).all())  # threads may add in another order
