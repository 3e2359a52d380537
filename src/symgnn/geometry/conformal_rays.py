"""Vectors of the rays of a vertex that Moebius maps change by a rotation or reflection alone."""

from __future__ import annotations

import torch
from torch import Tensor

from symgnn.geometry.measures import inverted_rays


def conformal_rays(rays: Tensor, vertex: Tensor, vertices: int) -> Tensor:
    """The rays of each vertex, inverted, centred, and divided by their root mean square length.

    With `y_j = r_j / |r_j|^2`, `c_j = y_j - mean(y)` and `s^2 = mean(|c|^2)` over the rays of a
    vertex, the result is `z_j = c_j / sqrt(s^2 + |c_j|^2)`. A Moebius map acts on the `y_j` of a
    vertex by a similarity, hence on the `z_j` by an orthogonal matrix, of determinant 1 where the
    map keeps orientation. With `w_j = c_j / s`, of root mean square 1, `z_j` is
    `w_j / sqrt(1 + |w_j|^2)`: as good as `w_j`, and inside the unit ball.

    A ray of length zero is left out and gets 0; where all rays of a vertex are equal, all get 0.

    Args:
        rays: From the vertex to its neighbours, `[R, n]`.
        vertex: The number of the vertex of each ray, `[R]`.
        vertices: How many vertices there are.

    Returns:
        `[R, n]`.

    Example:
        >>> rays = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 1.0]])
        >>> z = conformal_rays(rays, torch.zeros(3, dtype=torch.long), 1)
        >>> turned = conformal_rays(5 * rays.flip(1), torch.zeros(3, dtype=torch.long), 1)
        >>> torch.allclose(z @ z.T, turned @ turned.T)
        True
    """
    inverted = inverted_rays(rays, vertex, vertices)
    y, there = inverted[:, :-1], inverted[:, -1:]
    index = vertex.unsqueeze(-1).expand_as(y)
    # taken from one of their corners first, so that equal rays differ by exactly nothing
    corner = y.new_full((vertices, y.shape[1]), -torch.inf)
    held = torch.where(there > 0, y, -torch.inf).detach()
    corner = corner.scatter_reduce(0, index, held, "amax")
    y = torch.where(there > 0, y - corner.index_select(0, vertex), 0.0)
    # the scale of a vertex is free: with the largest entry 1, no square overflows
    largest = y.detach().abs().amax(-1)
    largest = largest.new_zeros(vertices).scatter_reduce(0, vertex, largest, "amax")
    largest = torch.where(largest == 0, 1.0, largest)
    y = y / largest.index_select(0, vertex).unsqueeze(-1)
    count = _total(there, vertex, vertices).clamp(min=1)
    centred = (y - (_total(y, vertex, vertices) / count).index_select(0, vertex)) * there
    square = centred.square().sum(-1, keepdim=True)
    mean = (_total(square, vertex, vertices) / count).index_select(0, vertex)
    none = mean == 0
    return torch.where(none, 0.0, centred / torch.where(none, 1.0, mean + square).sqrt())


def _total(rows: Tensor, vertex: Tensor, vertices: int) -> Tensor:
    return rows.new_zeros(vertices, rows.shape[1]).index_add(0, vertex, rows)
