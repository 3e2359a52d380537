"""The rays of each vertex as the rows of a dense matrix, for products of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from symgnn.graphs.movement import Movement

if TYPE_CHECKING:
    from symgnn.graphs.topology import Topology

#: The largest degree of vertices in one group is at most this times the smallest.
SPREAD = 1.25


class Stars(NamedTuple):
    """Vertices with their rays, in groups of about the same degree, without any pair of rays.

    The vertices of a group are padded to its largest degree; P rows in all.

    Example:
        >>> from symgnn.graphs import Topology
        >>> edge_index = torch.tensor([[0, 1, 2], [3, 3, 3]])
        >>> stars_of(Topology.build(edge_index, 4, whole=False)).sizes
        [(1, 3)]
    """

    sizes: list[tuple[int, int]]  # of each group, its vertices and their degree with padding
    vertex: Tensor  # [V], the vertices in order
    place: Tensor  # [R], the row of each ray
    both: Movement  # from nodes to rows, as that of the rays; nothing goes to padding

    @property
    def rows(self) -> int:
        """P, how many rows there are with padding."""
        return sum(vertices * degree for vertices, degree in self.sizes)


def stars_of(topology: Topology) -> Stars:
    """The stars of all vertices that have angles, made once and kept with the topology."""
    known: dict[str, Stars] = topology.__dict__
    if "_stars" not in known:
        with torch.inference_mode(False):  # it may be saved for a backward pass later on
            known["_stars"] = _stars(topology)
    return known["_stars"]


def _stars(topology: Topology) -> Stars:
    rays = topology.rays
    assert rays is not None
    vertices, star, degree = torch.unique_consecutive(
        topology.ray_vertex, return_inverse=True, return_counts=True
    )
    number = torch.arange(len(star), device=star.device)
    number = number - (degree.cumsum(0) - degree)[star]
    order = degree.argsort(stable=True)
    level = (degree[order].double().log() / math.log(SPREAD)).floor()
    _, count = torch.unique_consecutive(level, return_counts=True)
    side = degree[order][count.cumsum(0) - 1]  # the largest degree of each group
    sizes = list(zip(count.tolist(), side.tolist(), strict=True))
    side = side.repeat_interleave(count)
    start = torch.empty_like(degree).index_copy(0, order, side.cumsum(0) - side)
    place = start[star] + number
    reads, _, back_reads, back_offsets = rays.both
    filled = torch.zeros(int(side.sum()) + 1, dtype=torch.long, device=star.device)
    filled[place + 1] = 2
    reads = reads.view(-1, 2).index_select(0, place.argsort()).flatten()
    offsets = filled.cumsum(0).to(reads.dtype)
    back_reads = place.to(reads.dtype).index_select(0, back_reads)
    both = Movement(reads, offsets, back_reads, back_offsets)
    return Stars(sizes, vertices[order], place, both)
