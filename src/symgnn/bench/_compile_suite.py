"""The gain or cost of torch.compile for each block."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import torch

from symgnn.bench._measure import MissingError, Rounds, medians, paired
from symgnn.bench._shapes import SHAPES, Shape
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import model_step, network
from symgnn.bench._suite import Suite, SuitePart

FINDING = (
    "The compiler fuses row-wise operations. Rows are gathered and summed by one custom "
    "operation, symgnn::move, since the compiler would split sums over neighbours into single "
    "additions. It does not change matrix products and sums, which take most of a step; each "
    "compilation takes as long as many steps."
)
BLOCKS = ("GN", "DGN", "SDGN", "AGN")


def compare(block: str, shape: Shape, quick: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """A step as it is over a compiled one."""
    batch = shape.batch(quick)
    model = network(block, batch)
    torch._dynamo.reset()  # a limit on compilations counts those of all blocks
    compiled: torch.nn.Module = torch.compile(model, fullgraph=True, dynamic=True)  # type: ignore[assignment]
    runs = {"eager": model_step(model, batch), "compiled": model_step(model, batch, compiled)}
    began = time.perf_counter()
    try:
        runs["compiled"]()
    except torch._dynamo.exc.TorchDynamoException as error:  # such as for want of a C++ compiler
        reason = str(error).strip().splitlines()[0]
        raise MissingError(f"torch.compile failed on {block}: {reason}") from None
    note = f"the first step, with compiling, took {time.perf_counter() - began:.0f} s"
    times = rounds.alternate(runs)
    ratio, seconds = paired(times["eager"], times["compiled"]), medians(times, *runs)
    yield SpeedClaim(
        shape.name, f"{block} over {block} compiled", ratio, seconds=seconds, note=note
    )


def parts(quick: bool) -> list[SuitePart]:
    """A part for each block on each shape."""
    cases = [(block, shape) for shape in SHAPES for block in BLOCKS]
    return [
        SuitePart(shape.name, partial(compare, block, shape, quick))
        for block, shape in (cases[1:2] if quick else cases)
    ]


SUITE = Suite("compile", FINDING, parts)
