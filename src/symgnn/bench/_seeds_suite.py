"""Ten initialisations trained at once, against one, and against one after the other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from symgnn.bench._measure import Rounds, Spread, Times, medians, paired
from symgnn.bench._shapes import POLYTOPES
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import training_step
from symgnn.bench._suite import Suite, SuitePart
from symgnn.data import Polytopes
from symgnn.experiments._polytope_training import Row, loss, network, train_network
from symgnn.train._loop import WORTH_RECORDING

FINDING = (
    "On small graphs a step of one network is mostly the fixed cost of its operations, which "
    "ten networks share; the step of ten is recorded once and replayed (a second or two, not "
    "counted). On large graphs the arithmetic dominates, and ten networks cost ten times as "
    "much as one."
)
COUNT, TOGETHER, APART = 10, 2.5, 4.0


class _EnoughError(Exception):
    """Raised to end a training that has been measured."""


def turns(row: Row, dimension: int, rounds: Rounds) -> Times:
    """Seconds of a step of one model and of a step of ten, by turns."""
    batch = POLYTOPES[dimension].batch()
    make = partial(network, row, dimension, batch.num_graphs)
    model, alone = make(), batch.clone()
    alone.topology = model.topology(alone)
    one = training_step(lambda: loss(model(alone), alone), model.parameters())
    times: Times = {"one": [], "ten": []}
    began = mark = time.perf_counter()

    def take_turns(*_: Any) -> None:
        nonlocal mark
        times["ten"].append(time.perf_counter() - mark)
        start = time.perf_counter()
        one()
        times["one"].append(time.perf_counter() - start)
        rounds.count()
        done = len(times["one"]) - 1 - rounds.warm_up  # the first has the recording in it
        late = done >= rounds.least and time.perf_counter() - began > rounds.seconds
        if done >= rounds.repeats or late:
            raise _EnoughError
        mark = time.perf_counter()

    with contextlib.suppress(_EnoughError):
        train = Polytopes(dimension)
        train_network(row, train, dimension, COUNT, WORTH_RECORDING, on_epoch=take_turns)
    return {name: found[1 + rounds.warm_up :] for name, found in times.items()}


def compare(row: Row, dimension: int, rounds: Rounds) -> Iterator[SpeedClaim]:
    """Both ratios."""
    times = turns(row, dimension, rounds)
    shape, seconds = POLYTOPES[dimension].name, medians(times, "one", "ten")
    ratio: Spread = paired(times["ten"], times["one"])
    yield SpeedClaim(shape, f"{row.block}: ten at once over one", ratio, TOGETHER, seconds=seconds)
    apart = paired(times["one"], times["ten"], COUNT)
    yield SpeedClaim(shape, f"{row.block}: one by one over ten at once", apart, APART, "least")


def parts(quick: bool) -> list[SuitePart]:
    """DGN and AGN on the polytopes of each dimension."""
    cases = [(block, dimension) for dimension in POLYTOPES for block in ("DGN", "AGN")]
    return [
        SuitePart(POLYTOPES[dimension].name, partial(compare, Row(block, "sum"), dimension))
        for block, dimension in (cases[:1] if quick else cases)
    ]


SUITE = Suite("seeds", FINDING, parts)
