"""Layers that compute with fewer digits than they are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from symgnn.audit._recording import Event, Place, first_place, recorded
from symgnn.audit._session import Session
from symgnn.audit._structures import joined, with_pos
from symgnn.geometry.sampling import cloud_of

#: Steps, relative to the size of the cloud, that are smooth in float64 but not in half precision
#: (the first two) or single (the last one).
STEPS = (1e-4, 1e-5, 1e-7)
#: Twice the step should give twice the change, up to this.
BENT = 0.2


def bend(at: Tensor, one: Tensor, two: Tensor) -> float:
    """How far from a straight line three values at equal steps are, relative to the change."""
    if not (at.shape == one.shape == two.shape) or at.numel() == 0 or not at.is_floating_point():
        return 0.0
    at, one, two = at.double(), one.double(), two.double()
    change = float((two - at).abs().max())
    off = float((two - 2 * one + at).abs().max())
    if off <= 1e-12 * float(at.abs().max()):
        return 0.0
    return off / change if change > 0 else math.inf


def coarse(session: Session) -> str:
    """The modules that compute in half or single precision in a float64 run, in words; "" if none.

    Of a calculator whose modules are in float32, nothing is said.
    """
    if session.target.coarsest(session.dtype) > torch.finfo(session.dtype).eps:
        return ""
    sample = session.samples[0]
    shape = sample.shapes[min(1, len(sample.shapes) - 1)]
    generator = torch.Generator().manual_seed(session.seed)
    steps = [
        cloud_of(graph.pos).radius
        * torch.randn(graph.pos.shape, generator=generator, dtype=torch.float64)
        for graph in shape
    ]

    def three(run: Callable[[object], object], h: float) -> list:
        found = []
        for k in range(3):
            pairs = zip(shape, steps, strict=True)
            moved = [with_pos(graph, graph.pos + k * h * step) for graph, step in pairs]
            found.append(run(joined(moved, sample.batched)))
        return found

    for h in STEPS:
        at, one, two = three(session.run, h)
        values = [(at[o.name], one[o.name], two[o.name]) for o in session.outputs]
        if all(bend(*triple) <= BENT for triple in values):
            continue

        def listen(data: object) -> list[Event]:
            with recorded(session.target.modules) as events:
                session.run(data)
            return events

        place = _first_bent(three(listen, h))
        digits = "half" if h > 1e-6 else "single"
        where = f", first {place}" if place else ""
        return (
            f"outputs move in steps when coordinates move by {h:g} of their size, as if something "
            f"were computed in {digits} precision, or jumped{where}"
        )
    return ""


def _first_bent(runs: Sequence[Sequence[Event]]) -> Place | None:
    at, one, two = runs

    def agree(k: int) -> bool:
        if k >= min(len(one), len(two)):
            return True
        triples = zip(at[k].tensors, one[k].tensors, two[k].tensors, strict=False)
        return all(bend(*triple) <= BENT for triple in triples)

    return first_place(at, two, agree)
