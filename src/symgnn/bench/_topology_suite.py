"""Making the topology of a batch, against a training step on it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from symgnn.bench._measure import Rounds, medians, paired
from symgnn.bench._shapes import SHAPES, Shape
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import model_step, network
from symgnn.bench._suite import Suite, SuitePart
from symgnn.graphs import AddTopology

FINDING = (
    "AddTopology sorts the neighbours once for each graph, in the loader's workers; for each "
    "batch, only its angles are numbered."
)
BUILD, CACHED = 0.1, 0.001


def compare(shape: Shape, quick: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """For AGN, and DGN, which needs no angles: made, and found on the batch."""
    batch = shape.batch(quick)
    sorted_before = AddTopology()(shape.batch(quick))
    sorted_before.topology = None
    for block, bound in (("AGN", BUILD), ("DGN", None)):
        model = network(block, batch)
        ready = batch.clone()
        ready.topology = model.topology(ready)
        times = rounds.alternate(
            {
                "step": model_step(model, batch),
                "made": partial(model.topology, batch),
                "made, neighbours sorted before,": partial(model.topology, sorted_before),
                "cached": partial(model.topology, ready),
            }
        )
        bounds = {"made": bound, "made, neighbours sorted before,": None, "cached": CACHED}
        for name in bounds if block == "AGN" else ("made",):
            ratio, seconds = paired(times[name], times["step"]), medians(times, name, "step")
            what = f"{name} over a step of {block}"
            yield SpeedClaim(shape.name, what, ratio, bounds[name], seconds=seconds)


def parts(quick: bool) -> list[SuitePart]:
    """A part for each shape."""
    return [SuitePart(shape.name, partial(compare, shape, quick)) for shape in SHAPES]


SUITE = Suite("topology", FINDING, parts)
