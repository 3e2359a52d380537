"""The first submodule in which a symmetry breaks, and the error of each one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from symgnn.audit._cases import Case
from symgnn.audit._elements import article
from symgnn.audit._misfits import is_odd, misfit
from symgnn.audit._recording import Event, Place, can_be_recorded, first_place, recorded
from symgnn.audit._session import Session

#: Kinds under which all parts of a graph are moved alike, so that shapes can be compared.
TOGETHER = ("translation", "rotation", "reflection")


@dataclass(frozen=True)
class LayerError:
    """How far the output of a submodule is from moving along with the graph."""

    module: str
    kind: str
    error: float


@dataclass(frozen=True)
class Located:
    """Where a symmetry breaks, as far as it was found."""

    place: Place | None
    profile: list[LayerError]
    reason: str = ""  # why it was not located


def locate(session: Session, case: Case, error: float) -> Located:
    """The first submodule whose output does not move along while its input does."""
    modules = session.target.modules
    if not modules:
        return Located(None, [], "the model is a function without modules")
    if not can_be_recorded(modules):
        return Located(None, [], "modules of TorchScript cannot be looked into")
    if case.kind in ("flex", "redrawing", "angle-flex"):
        return Located(
            None, [], f"{article(case.kind)} does not say how vectors inside a model turn"
        )
    cases = _alike(session, case)
    runs = []
    for one in cases:
        with recorded(modules) as before:
            session.attempt(one.before)
        with recorded(modules) as after:
            session.attempt(one.after)
        runs.append((before, after))
    before, after = runs[0]
    runs = [run for run in runs if [e.module for e in run[0]] == [e.module for e in before]]
    cases = cases[: len(runs)]
    if not before:
        return Located(None, [], "no module was called that could be looked into")
    errors: dict[int, float] = {}

    def error_of(k: int) -> float:
        if k not in errors:
            errors[k] = _event_error(runs, cases, k)
        return errors[k]

    eps = session.target.coarsest(session.dtype)
    tolerance = math.sqrt(min(error, 1.0) * 100 * eps)
    in_function = not any(session.target.function is module for module in modules)
    place = first_place(before, after, lambda k: error_of(k) <= tolerance, in_function)
    if place is not None and case.kind == "reflection":
        place = _origin_of_handedness(before, after, place)
    profile = [
        LayerError(event.module, event.kind, error_of(k))
        for k, event in enumerate(before)
        if event.ends and k < len(after)
    ]
    reason = "" if place else "every submodule's output moves along with the graph"
    return Located(place, profile, reason)


def _alike(session: Session, case: Case) -> list[Case]:
    """The same transformation on several shapes of the sample."""
    sample, shape, _ = case.origin
    if case.kind not in TOGETHER:
        return [case]
    element = next(e for e in case.elements if e is not None)
    shapes = session.samples[sample].shapes if session.samples else []
    others = [s for k, s in enumerate(shapes[:3]) if k != shape]
    together = replace(case, elements=(element,) * len(case.graphs))
    return [together, *(replace(together, graphs=tuple(graphs)) for graphs in others)]


def _event_error(
    runs: Sequence[tuple[list[Event], list[Event]]], cases: Sequence[Case], k: int
) -> float:
    pairs_of_runs = []
    for before, after in runs:
        if k >= len(after) or len(before[k].tensors) != len(after[k].tensors):
            return math.inf
        pairs_of_runs.append(list(zip(before[k].tensors, after[k].tensors, strict=True)))
    count = len(pairs_of_runs[0])
    worst = 0.0
    for index in range(count):
        chosen = [
            (pairs[index], case)
            for pairs, case in zip(pairs_of_runs, cases, strict=True)
            if len(pairs) == count
        ]
        worst = max(worst, misfit([pair for pair, _ in chosen], [case for _, case in chosen]))
    return worst


def _origin_of_handedness(before: Sequence[Event], after: Sequence[Event], place: Place) -> Place:
    """The submodule that first tells mirror images apart, where the break is the mixing of it."""
    for a, b in zip(before, after, strict=False):
        if a.module == place.module and a.ends:
            return place
        if a.ends and any(is_odd(x, y) for x, y in zip(a.tensors, b.tensors, strict=False)):
            return Place(a.module, f"in {a.label}, whose output changes its sign in a mirror")
    return place
