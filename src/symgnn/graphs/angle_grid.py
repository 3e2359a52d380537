"""The angles of vertices as dense squares, for products of matrices."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from symgnn.graphs.movement import AngleRays

#: How much larger the largest degree of vertices that are put together is than the smallest.
GROWTH = 1.25


class Grid(NamedTuple):
    """The angles of each vertex as a square matrix of first by second rays, stacked.

    Vertices of similar degree are grouped and padded to the largest degree of their group, so
    there is little padding.
    """

    sizes: list[tuple[int, int]]  # how many vertices are put together, and their degree
    ray: Tensor  # [R], the place of a ray among those of all squares
    angle: Tensor  # [A], the place of an angle

    @staticmethod
    def of(pairs: AngleRays, vertex: Tensor) -> Grid:
        """Of the pairs of rays and the vertex of each ray `[R]`, in order."""
        first, second = pairs.first.reads.long(), pairs.second.reads.long()
        _, vertex, degree = torch.unique_consecutive(
            vertex, return_inverse=True, return_counts=True
        )
        number = torch.arange(len(vertex), device=vertex.device)
        number = number - (degree.cumsum(0) - degree)[vertex]
        order = degree.argsort(stable=True)
        level = (degree[order].double().log() / math.log(GROWTH)).floor()
        _, count = torch.unique_consecutive(level, return_counts=True)
        side = degree[order][count.cumsum(0) - 1]  # the largest of each level
        sizes = list(zip(count.tolist(), side.tolist(), strict=True))
        side = torch.empty_like(degree).index_copy(0, order, side.repeat_interleave(count))
        ray = _starts(side, order)[vertex] + number
        angle = _starts(side.square(), order)[vertex] + number * side[vertex]
        return Grid(sizes, ray, angle[first] + number[second])


def _starts(sizes: Tensor, order: Tensor) -> Tensor:
    """Where each thing starts, if they come in this order, `[V]`."""
    ordered = sizes[order]
    return torch.empty_like(sizes).index_copy(0, order, ordered.cumsum(0) - ordered)
