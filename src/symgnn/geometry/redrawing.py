"""Parallel redrawings: maps of the nodes that keep the direction of every edge.

An edge `x_j - x_i` of a redrawn graph is a positive multiple of what it was, so that every angle
at a vertex is kept. The redrawings of a graph are the null space of a linear system: translations
and dilations for every graph, and more for many. A cube becomes any box, and in a tree each edge
has a length of its own.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from symgnn.geometry.sampling import Cloud

#: The shortest and the longest an edge may become, times what it was.
SHORTEST, LONGEST = 0.3, 4.0


def direction_matrix(x: Tensor, pairs: Tensor) -> Tensor:
    """The part of each edge's change that is across the edge, as a linear map of displacements.

    Args:
        x: Coordinates `[N, n]`.
        pairs: The ends of the edges `[2, E]`. The ends of an edge of length 0 move as one.

    Returns:
        A matrix `[E n, N n]`; its null space are the redrawings.
    """
    n, edges = x.size(1), torch.arange(pairs.size(1))
    along = x[pairs[0]] - x[pairs[1]]
    lengths = along.norm(dim=1, keepdim=True)
    units = torch.where(lengths > 0, along / torch.where(lengths > 0, lengths, 1.0), 0.0)
    across = torch.eye(n, dtype=x.dtype) - units.unsqueeze(2) * units.unsqueeze(1)  # [E, n, n]
    rows = x.new_zeros(len(edges), n, *x.shape)
    rows[edges, :, pairs[0]] = across
    rows[edges, :, pairs[1]] = -across
    return rows.reshape(-1, x.numel())


def null_space(matrix: Tensor, tolerance: float = 1e-9) -> Tensor:
    """An orthonormal basis of the null space, as rows `[k, columns]`."""
    if not matrix.numel():
        return torch.eye(matrix.size(1), dtype=matrix.dtype)
    if matrix.size(0) > matrix.size(1):  # the same null space, and far fewer rows
        matrix = torch.linalg.qr(matrix, mode="r").R
    _, values, rows = torch.linalg.svd(matrix, full_matrices=True)
    rank = int((values > tolerance * values.max().clamp(min=1e-300)).sum())
    return rows[rank:]


def without(vectors: Tensor, others: Tensor) -> Tensor:
    """An orthonormal basis of what the rows `vectors` span beyond the rows `others`."""
    if not len(vectors):
        return vectors
    basis = row_space(others)
    rest = vectors - (vectors @ basis.T) @ basis
    return row_space(rest, 1e-7)


def row_space(rows: Tensor, tolerance: float = 1e-9) -> Tensor:
    """An orthonormal basis of what rows span `[k, columns]`; small ones count as zero."""
    if not rows.numel():
        return rows.new_zeros(0, rows.size(1))
    _, values, basis = torch.linalg.svd(rows, full_matrices=False)
    return basis[values > tolerance * max(1.0, float(values.max()))]


def translations_and_dilations(x: Tensor) -> Tensor:
    """The redrawings of every graph, as rows `[n + 1, N n]`."""
    n = x.size(1)
    shifts = torch.eye(n, dtype=x.dtype).unsqueeze(1).expand(n, *x.shape)
    return torch.cat([shifts, (x - x.mean(0)).unsqueeze(0)]).flatten(1)


def redrawings(x: Tensor, pairs: Tensor) -> Tensor:
    """The redrawings beyond translations and dilations, as rows `[k, N n]`."""
    return without(null_space(direction_matrix(x, pairs)), translations_and_dilations(x))


def redrawn(cloud: Cloud, pairs: Tensor, generator: Generator | None) -> Tensor | None:
    """Other coordinates `[N, n]` in which every edge has the direction that it had.

    None where the graph has no redrawing but translations and dilations.

    Args:
        cloud: The coordinates.
        pairs: The ends of the edges `[2, E]`.
        generator: For the random direction among the redrawings.
    """
    x = (cloud.points - cloud.centroid) / cloud.radius
    basis = redrawings(x, pairs)
    if not len(basis):
        return None
    mix = torch.randn(len(basis), generator=generator, dtype=torch.float64)
    change = (mix @ basis).view_as(x)
    along, moved = x[pairs[0]] - x[pairs[1]], change[pairs[0]] - change[pairs[1]]
    squares = along.square().sum(1)
    long = squares > 0
    growth = (moved * along).sum(1)[long] / squares[long]  # of each edge, for a step of 1
    # as far as every edge stays within its bounds, and no node goes further than the radius
    bounds = [1.0 / float(change.norm(dim=1).max())]
    if len(growth):
        least, most = float(growth.min()), float(growth.max())
        bounds += [(SHORTEST - 1) / least] if least < 0 else []
        bounds += [(LONGEST - 1) / most] if most > 0 else []
    step = min(bounds) * (0.5 + 0.5 * float(torch.rand((), generator=generator)))
    return cloud.points + cloud.radius * step * change
