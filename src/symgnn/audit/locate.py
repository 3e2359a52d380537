"""The first submodule in which a symmetry breaks, or in which the forward is random."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from symgnn.audit.calling import tensors_in
from symgnn.audit.elements import OF_NODES, Case, Undefined


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


@contextmanager
def recorded(roots: Sequence[nn.Module]) -> Iterator[list[Event]]:
    """Inside, every call of a submodule is noted, in the order in which it happens."""
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
        for name, module in root.named_modules():
            handles.append(
                module.register_forward_pre_hook(partial(starts, name), with_kwargs=True)
            )
            handles.append(module.register_forward_hook(partial(ends, name)))
    try:
        yield events
    finally:
        for handle in handles:
            handle.remove()


def first_random(one: Sequence[Event], two: Sequence[Event]) -> Place | None:
    """The first submodule that gives other numbers for the same ones."""
    return first_place(one, two, lambda a, b: _all(a, b, _identical))


def first_break(
    before: Sequence[Event], after: Sequence[Event], case: Case, tolerance: float
) -> Place | None:
    """The first submodule whose output does not move with the graph, while its input does."""

    def along(a: Tensor, b: Tensor) -> bool:
        return moves_along(a, b, case, tolerance)

    return first_place(before, after, lambda a, b: _all(a, b, along))


def _all(one: Event, two: Event, agree: Callable[[Tensor, Tensor], bool]) -> bool:
    if len(one.tensors) != len(two.tensors):
        return False
    return all(agree(a, b) for a, b in zip(one.tensors, two.tensors, strict=True))


def first_place(
    one: Sequence[Event], two: Sequence[Event], agree: Callable[[Event, Event], bool]
) -> Place | None:
    """Where two recorded calls no longer agree: in a submodule, or between two of them."""
    open_calls: list[Event] = []
    last = ""  # the submodule that ended last
    for a, b in zip(one, two, strict=False):
        if (a.module, a.ends) != (b.module, b.ends):
            return Place(a.module, f"in {_label(a)}: other submodules are called")
        same = agree(a, b)
        if a.ends:
            open_calls.pop()
            if not same:
                inner = [e for e in one if e.module.startswith(f"{a.module}." if a.module else "")]
                own = any(e.module != a.module for e in inner)
                text = f"in {_label(a)}"
                if own:
                    text = f"in the forward of {_label(a)} itself"
                    text += f", after {last}" if last else ""
                return Place(a.module, text)
            last = a.module or a.kind
        else:
            if not same:
                parent = open_calls[-1] if open_calls else None
                if parent is None:
                    open_calls.append(a)
                    continue  # the model's own input: there is nothing before it
                text = f"in the forward of {_label(parent)} itself, before it calls {a.module}"
                return Place(parent.module, text)
            open_calls.append(a)
    return None


def _label(event: Event) -> str:
    return f"{event.module} ({event.kind})" if event.module else f"the model ({event.kind})"


def _identical(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a.nan_to_num(), b.nan_to_num()))


# ------------------------------------------------------------------ does a tensor move along?


def moves_along(before: Tensor, after: Tensor, case: Case, tolerance: float) -> bool:
    """Whether a tensor is made of numbers that stay and of vectors and points that move along.

    Rows may come in another order. Numbers of spherical harmonics of degree 2 and 3, and of what
    else has a representation along an axis of its own, are recognised by a matrix that fits all.
    """
    if before.shape != after.shape:
        return False
    if before.numel() == 0:
        return True
    if not before.is_floating_point():
        return _same_numbers(before, after, case)
    before, after = before.double(), after.double()
    scale = float(before.abs().max())
    if not math.isfinite(scale) or scale == 0:
        return torch.equal(before.nan_to_num(), after.nan_to_num())
    limit = tolerance * scale
    if before.dim() < 2:
        return _same_rows(before.reshape(-1, 1), after.reshape(-1, 1), limit)
    if _columns_move(before.flatten(0, -2), after.flatten(0, -2), case, limit):
        return True
    for axis in range(before.dim() - 1):
        size, rows = before.size(axis), before.numel() // before.size(axis)
        if size == 1 or size > 16:
            continue
        x, y = (t.movedim(axis, -1).flatten(0, -2) for t in (before, after))
        if _block_moves(x, y, case, limit) or (rows > 2 * size > 8 and _fits(x, y, limit)):
            return True
    return False


def _same_numbers(before: Tensor, after: Tensor, case: Case) -> bool:
    """Integers: the same, or the same graph with its nodes renumbered."""
    nodes = len(case.nodes)
    largest = int(max(before.max(), after.max()))
    if before.dim() == 2 and len(before) == 2 and largest < nodes:  # edges
        pairs, others = case.nodes.argsort()[before.long()], after.long()
        key, other = (ends[0] * nodes + ends[1] for ends in (pairs, others))
        return torch.equal(key.sort().values, other.sort().values)
    if torch.equal(before, after):
        return True
    return case.kind == "permutation" and (
        torch.equal(before.flatten().sort().values, after.flatten().sort().values)
        or largest < max(nodes, len(case.edge_order))
    )


def _same_rows(x: Tensor, y: Tensor, limit: float) -> bool:
    """Whether columns `[R, C]` hold the same numbers, in the same order or in another."""
    if bool(((x - y).abs() <= limit).all()):
        return True
    return bool(((x.sort(0).values - y.sort(0).values).abs() <= limit).all())


def _columns_move(x: Tensor, y: Tensor, case: Case, limit: float) -> bool:
    """Whether columns `[R, C]` are numbers that stay, or blocks of columns that move along."""
    n, k = case.graphs[0].pos.size(1), 0
    while k < x.size(1):
        if _same_rows(x[:, k : k + 1], y[:, k : k + 1], limit):
            k += 1
        elif k + n <= x.size(1) and _block_moves(x[:, k : k + n], y[:, k : k + n], case, limit):
            k += n
        else:
            size = _harmonics(x[:, k:], y[:, k:], case, limit)
            if not size:
                return False
            k += size
    return True


def _harmonics(x: Tensor, y: Tensor, case: Case, limit: float) -> int:
    """How many of the first columns are spherical harmonics of one degree, 2 or 3; 0 if none."""
    if case.kind == "permutation":
        return 0
    sizes = [size for size in (5, 7) if size <= x.size(1) and len(x) > 2 * size]
    return next((size for size in sizes if _fits(x[:, :size], y[:, :size], limit)), 0)


def _block_moves(x: Tensor, y: Tensor, case: Case, limit: float) -> bool:
    """Whether rows `[R, n]` are vectors or points that move along."""
    n = case.graphs[0].pos.size(1)
    if x.size(1) != n:
        return False
    wanted = []
    for place, rows in (("node", case.nodes), ("edge", case.edge_order), ("graph", None)):
        try:
            linear = case.linear(place)
        except Undefined:
            continue
        if rows is not None and len(rows) == len(x):
            wanted.append(torch.einsum("rij,rj->ri", linear, x))
        elif rows is None and len(linear) == 1:
            wanted.append(x @ linear[0].T)
    whole = case.elements[0] if len(case.elements) == 1 else None
    if whole is not None and (len(x) == len(case.nodes) or case.kind not in OF_NODES):
        wanted.append(x if case.kind == "permutation" else whole(x))
    elif len(x) == len(case.nodes) and case.kind not in OF_NODES:
        wanted.append(case.points("node", x))
    return any(_same_rows(w, y, limit) for w in wanted)


def _fits(x: Tensor, y: Tensor, limit: float) -> bool:
    """Whether one matrix takes all rows `[R, C]` to those after."""
    matrix = torch.linalg.lstsq(x, y).solution
    orthogonal = torch.linalg.matrix_rank(x) == x.size(1)
    return bool(orthogonal) and bool(((x @ matrix - y).abs() <= 10 * limit).all())
