"""The rays of each vertex as the rows of a dense matrix, for products of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from symgnn.graphs.topology import Topology

#: The largest degree of vertices in one group is at most this times the smallest.
SPREAD = 1.25


class Stars(NamedTuple):
    """Vertices with their rays, in groups of about the same degree, without any pair of rays.

    The vertices of a group are padded to its largest degree.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2], [3, 3, 3]])
        >>> stars_of(Topology.build(edge_index, 4, whole=False)).sizes
        [(1, 3)]
    """

    sizes: list[tuple[int, int]]  # of each group, its vertices and their degree with padding
    place: Tensor | None  # [R], the row of each ray among all padded ones; None for the same order

    @property
    def rows(self) -> int:
        """How many rows there are with padding."""
        return sum(vertices * degree for vertices, degree in self.sizes)


def stars_of(topology: Topology) -> Stars:
    """The stars of all vertices that have angles, made once and kept with the topology."""
    known: dict[str, Stars] = topology.__dict__
    if "_stars" not in known:
        with torch.inference_mode(False):  # it may be saved for a backward pass later on
            known["_stars"] = _stars(topology)
    return known["_stars"]


def _stars(topology: Topology) -> Stars:
    vertex = topology.ray_vertex
    if not len(vertex):
        return Stars([], None)
    _, vertex, degree = torch.unique_consecutive(vertex, return_inverse=True, return_counts=True)
    number = torch.arange(len(vertex), device=vertex.device)
    number = number - (degree.cumsum(0) - degree)[vertex]
    order = degree.argsort(stable=True)
    level = (degree[order].double().log() / math.log(SPREAD)).floor()
    _, count = torch.unique_consecutive(level, return_counts=True)
    side = degree[order][count.cumsum(0) - 1]  # the largest degree of each group
    sizes = list(zip(count.tolist(), side.tolist(), strict=True))
    side = side.repeat_interleave(count)
    start = torch.empty_like(degree).index_copy(0, order, side.cumsum(0) - side)
    place = start[vertex] + number
    same = torch.equal(place, torch.arange(len(place), device=place.device))
    return Stars(sizes, None if same else place)
