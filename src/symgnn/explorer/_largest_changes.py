"""Which length, angle or kappa a move changed most."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symgnn.geometry.measures import inverted_rays, kappa_of_inverted

#: Up to this relative change, a measure is kept.
KEPT = 1e-9


@dataclass(frozen=True)
class Change:
    """The largest change of a measure.

    Attributes:
        measure: "length", "angle" or "kappa".
        nodes: Of the edge `(j, i)`, or of the angle `(j, i, k)` at i; empty if there is none.
        before, after: The measure; angles in degrees.
        kept: Whether no edge or angle of the shape changed.
    """

    measure: str
    nodes: tuple[int, ...]
    before: float
    after: float
    kept: bool

    def __str__(self) -> str:
        if not self.nodes:
            return f"no {self.measure} to measure"
        if self.kept:
            return f"every {self.measure} is kept"
        if self.measure == "length":
            j, i = self.nodes
            percent = 100 * (self.after / self.before - 1) if self.before else float("inf")
            return f"length of {j}–{i}: {self.before:.3g} → {self.after:.3g} ({percent:+.0f} %)"
        j, i, k = self.nodes
        unit = "°" if self.measure == "angle" else ""
        numbers = f"{self.before:.3g}{unit} → {self.after:.3g}{unit}"
        return f"{self.measure} at {i} of {j} and {k}: {numbers}"


def largest_changes(before: Tensor, after: Tensor, edge_index: Tensor) -> list[Change]:
    """The length, the angle and the kappa that changed most.

    Lengths are compared by their ratio, angles and kappas by their difference.

    Args:
        before: Coordinates of a shape, in float64.
        after: Its coordinates after a move.
        edge_index: Its edges.

    Returns:
        Three changes: of a length, an angle and a kappa.

    Shapes:
        before, after `[N, n]`, edge_index `[2, E]`.

    Example:
        >>> from symgnn.explorer import shape_named
        >>> cube = shape_named("cube")
        >>> [str(one) for one in largest_changes(cube.pos, 2 * cube.pos, cube.edge_index)]
        ['length of 0–1: 1.15 → 2.31 (+100 %)', 'every angle is kept', 'every kappa is kept']
    """
    pairs = edge_index[:, edge_index[0] < edge_index[1]]
    if not pairs.numel():
        pairs = edge_index
    lengths = [(x[pairs[0]] - x[pairs[1]]).norm(dim=1) for x in (before, after)]
    angles = _angles(edge_index, len(before))
    found = [_largest("length", pairs, lengths, relative=True)]
    thetas = [torch.rad2deg(_theta(x, angles)) for x in (before, after)]
    kappas = [_kappa(x, angles) for x in (before, after)]
    found.append(_largest("angle", angles, thetas, scale=180.0))
    found.append(_largest("kappa", angles, kappas))
    return found


def _largest(
    measure: str,
    rows: Tensor,
    values: list[Tensor],
    relative: bool = False,
    scale: float = 1.0,
) -> Change:
    before, after = values
    if not len(before):
        return Change(measure, (), 0.0, 0.0, True)
    change = (after - before).abs() / scale
    if relative:
        change = torch.where(before > 0, (after / before).log().abs(), change)
    # of those that changed as much, to rounding, the first
    most = int((change >= change.max() * (1 - 1e-9)).to(torch.int8).argmax())
    # arccos loses half of the digits where rays are parallel
    limit = KEPT if measure != "angle" else 1e-8
    return Change(
        measure,
        tuple(rows[:, most].tolist()),
        float(before[most]),
        float(after[most]),
        bool(change.max() <= limit),
    )


def _angles(edge_index: Tensor, nodes: int) -> Tensor:
    """Nodes `(j, i, k)` with j < k, both neighbours of i, as columns `[3, A]`."""
    joined = torch.zeros(nodes, nodes, dtype=torch.bool)
    joined[edge_index[0], edge_index[1]] = joined[edge_index[1], edge_index[0]] = True
    joined.fill_diagonal_(False)
    found = []
    for i, row in enumerate(joined):
        around = row.nonzero().flatten()
        if len(around) > 1:
            j, k = torch.combinations(around, 2).T
            found.append(torch.stack([j, torch.full_like(j, i), k]))
    return torch.cat(found, 1) if found else torch.zeros(3, 0, dtype=torch.long)


def _theta(x: Tensor, angles: Tensor) -> Tensor:
    """By half angles, which is exact for parallel rays, too."""
    j, i, k = angles
    first = torch.nn.functional.normalize(x[j] - x[i], dim=1)
    second = torch.nn.functional.normalize(x[k] - x[i], dim=1)
    return 2 * torch.atan2((first - second).norm(dim=1), (first + second).norm(dim=1))


def _kappa(x: Tensor, angles: Tensor) -> Tensor:
    j, i, k = angles
    rays = torch.cat([x[j] - x[i], x[k] - x[i]])
    inverted = inverted_rays(rays, torch.cat([i, i]), len(x))
    return kappa_of_inverted(inverted[: len(j)], inverted[len(j) :], i, len(x))
