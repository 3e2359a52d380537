"""A search for the transformation with the largest error, beyond random ones.

A fault may show only where some direction of the graph points to a small part of the sphere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from symgnn.audit._cases import Case
from symgnn.audit._elements import aligning, spread_rotations
from symgnn.audit._session import Failure, Session, Values
from symgnn.audit._verdicts import JUMP, ROUNDING, Evidence
from symgnn.geometry import Rotation
from symgnn.geometry.sampling import cloud_of

#: How many directions of the graph are turned to each axis.
DIRECTIONS = 16


def rotations(session: Session, sample: int, count: int) -> Iterator[Rotation]:
    """Rotations that turn directions of the graph to the axes, then ones that cover SO(n)."""
    pos = session.samples[sample].shapes[0][0].pos
    n = pos.size(1)
    axes = torch.eye(n, dtype=torch.float64)
    found = 0
    for direction in _directions(session, sample):
        for axis in [*axes[-1:], *axes[:-1]]:
            for sign in (1.0, -1.0):
                if found >= count // 4:
                    break
                found += 1
                yield aligning(direction, sign * axis)
    generator = torch.Generator().manual_seed(session.seed + 3)
    yield from spread_rotations(n, max(count - found, 0), generator)


def _directions(session: Session, sample: int) -> list[Tensor]:
    """Unit vectors `[n]` of the graph: of vector outputs, its main axes, nodes from the centre."""
    cloud = cloud_of(session.samples[sample].shapes[0][0].pos)
    centred = cloud.points - cloud.centroid
    found: list[Tensor] = []
    for output in session.outputs:
        if output.type in ("vector", "pseudovector"):
            parts = output.parts(session.at(sample, 0)[output.name], cloud.n)
            found += [parts.sum((0, 1)), *parts.reshape(-1, cloud.n)[:2]]
    found += list(torch.linalg.svd(centred, full_matrices=False).Vh)
    found += list(centred[: DIRECTIONS // 2])
    found += list(cloud.points[1:] - cloud.points[:1])[: DIRECTIONS // 2]
    lengths = [float(v.norm()) for v in found]
    largest = max(lengths, default=0.0)
    return [v / s for v, s in zip(found, lengths, strict=True) if s > 1e-6 * largest][:DIRECTIONS]


def rotated(session: Session, sample: int, element: Rotation, number: int) -> Case:
    """A rotation of the sample as it was given."""
    given = session.samples[sample]
    shape = tuple(given.shapes[0])
    empty = (None,) * len(shape)
    origin = (sample, 0, 10_000_000 + number)
    inputs = tuple(session.inputs)
    return Case(
        "rotation", shape, (element,) * len(shape), empty, inputs, given.batched, 1.0, origin
    )


def climbed(session: Session, case: Case, error: float, steps: int = 24) -> tuple[Case, float]:
    """A rotation near this one with a larger error, by random steps that get smaller."""
    generator = torch.Generator().manual_seed(session.seed + 4)
    best, size = case, 0.5
    n = session.n
    for _ in range(steps):
        noise = torch.randn(n, n, generator=generator, dtype=torch.float64)
        turn = torch.linalg.matrix_exp(size * (noise - noise.T) / 2)
        element = next(e for e in best.elements if e is not None)
        other = Rotation(turn @ element.matrix)  # type: ignore[attr-defined]
        tried = replace(best, elements=(other,) * len(best.graphs))
        found = session.largest(tried)
        if error < found < float("inf"):
            best, error = tried, found
        else:
            size *= 0.8
    return best, error


def stands_out(
    session: Session,
    known: Mapping[tuple[int, str], Evidence],
    case: Case,
    after: Values | Failure,
    precision: str,
) -> bool:
    """Whether an error is more than rounding, in general and for this very transformation.

    Args:
        session: The samples and the target.
        known: What was measured of rotations, by sample and output.
        case: The transformation.
        after: The outputs after it.
        precision: Such as "float64".
    """
    own = session.coarse_rounding(case, after)
    for name, (error, _) in session.errors(case, after).items():
        rounding = known[case.origin[0], name].rounding.get(precision)
        usual = rounding if rounding is not None and rounding.shape == error.shape else 0.0
        if bool((error <= ROUNDING * usual).all()):
            continue
        if isinstance(after, Failure):
            return True
        own = session.rounding(case, after) if own is None else own
        here = own.get(name)
        if here is None or here.shape != error.shape or float(here.max()) > JUMP:
            return True
        if bool((error > ROUNDING * torch.maximum(here, torch.as_tensor(usual))).any()):
            return True
    return False
