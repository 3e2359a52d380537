"""Shared by the checks of a model with itself: a verdict on two results, and the energy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.audit._findings import Check
from symgnn.audit._outputs import Output
from symgnn.audit._session import Failure, Session
from symgnn.audit._structures import joined

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

#: Up to this, relative, two results are the same: derivatives are taken by differences.
TOLERANCE = {"forces": 1e-4, "stress": 1e-3}
#: Derivatives with a larger uncertainty than this say nothing.
ROUGH = 0.05
#: The same for results that should agree to rounding.
ROUNDED = 1e-7


class Skipped(Exception):  # noqa: N818
    """A check does not apply to this model or data."""


def verdict(
    session: Session,
    output: Output,
    wanted: Tensor,
    found: Tensor,
    text: str,
    tolerance: float = ROUNDED,
    uncertainty: float = 0.0,
) -> Check:
    """A check that compares two tensors, relative to how much the output varies.

    `uncertainty` is that of `wanted`, in the units of the output.
    """
    if wanted.shape != found.shape:
        sizes = f"{list(found.shape)} instead of {list(wanted.shape)}"
        return Check("", "broken", f"{text}: it has shape {sizes}", math.inf, math.inf)
    spread = session.spread.get((0, output.name))
    scale = float(spread.max()) if spread is not None else float(wanted.abs().max())
    absolute = float((found - wanted).abs().max()) if wanted.numel() else 0.0
    error = absolute / scale if scale > 0 else absolute
    eps = torch.finfo(session.dtype).eps
    if scale > 0:
        rounded = 1e4 * eps * float(wanted.abs().max()) if wanted.numel() else 0.0
        tolerance = max(tolerance, rounded / scale, 5 * uncertainty / scale)
        if error > tolerance and session.single:
            tolerance = max(tolerance, 10 * single_rounding(session, output) / scale)
    word = "holds" if error <= tolerance else "broken"
    unit = session.target.units.get(output.name, "")
    return Check("", word, text, error, absolute if math.isfinite(absolute) else math.inf, unit)


def single_rounding(session: Session, output: Output) -> float:
    """How much an output changes when the coordinates are rounded to float32."""
    sample, eps = session.samples[0], torch.finfo(torch.float32).eps
    data = joined(sample.shapes[0], sample.batched)
    value = session.run(data)[output.name]
    largest = eps * float(value.abs().max()) if value.numel() else 0.0
    for seed in range(3):
        other = session.attempt(session.rounded(data, eps, seed))
        if not isinstance(other, Failure) and other[output.name].shape == value.shape:
            largest = max(largest, float((other[output.name] - value).abs().max()))
    return largest


def worst(checks: list[Check]) -> Check:
    """The one with the largest error, the broken ones first."""
    return max(checks, key=lambda check: (check.verdict == "broken", check.error))


def energy_of(session: Session) -> Output:
    """The output that is the energy: by its name, or the only invariant of the graph."""
    scalars = [o for o in session.outputs if o.type == "invariant" and o.place == "graph"]
    named = [o for o in scalars if "energy" in o.name.lower() or o.name.lower() in ("e", "0")]
    if not named and len(scalars) != 1:
        raise Skipped("no output is the energy")
    found = (named or scalars)[0]
    if session.at(0, 0)[found.name].numel() != len(session.samples[0].graphs):
        raise Skipped("the energy has several values for a graph")
    return found


def total(session: Session, data: Graph, energy: Output) -> float:
    """The sum of the energies of a graph or batch."""
    return float(session.run(data)[energy.name].sum())


def trusted(session: Session, output: Output, uncertainties: Sequence[float]) -> float:
    """The largest uncertainty of derivatives that an output is compared with, if it is small."""
    largest, spread = max(uncertainties), session.spread.get((0, output.name))
    if spread is not None and 5 * largest > ROUGH * float(spread.max()):
        raise Skipped("the energy is not accurate enough for finite differences")
    return largest
