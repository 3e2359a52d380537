"""The rays of each vertex as the rows of a dense matrix, for products of matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.graphs.movement import narrow_type

if TYPE_CHECKING:
    from symgnn.graphs.topology import Topology

#: The largest degree of vertices in one group is at most this times the smallest,
SPREAD = 1.25
#: unless a group joins the next, for which it takes at most so many more rows of padding.
JOINED = 256


class Stars(NamedTuple):
    """Vertices with their rays, in groups of about the same degree, without any pair of rays.

    The vertices of a group are padded to its largest degree; P rows in all. A padding row reads
    what the first ray of its vertex reads.

    Example:
        >>> from symgnn.graphs import Topology
        >>> edge_index = torch.tensor([[0, 1, 2], [3, 3, 3]])
        >>> stars_of(Topology.build(edge_index, 4, whole=False)).sizes
        [(1, 3)]
    """

    sizes: list[tuple[int, int]]  # of each group, its vertices and their degree with padding
    padded: list[bool]  # of each group, whether there is padding
    vertex: Tensor  # [V], the vertices in order, by degree
    place: Tensor  # [R], the row of each ray
    ray: Tensor  # [P], the ray of each row; of padding, the first of the vertex
    there: Tensor  # [P], 1 for the rows of rays, 0 for padding
    neighbour: Tensor  # [P], the neighbour of each row
    reads: Tensor  # [R], the rows whose neighbour is each node
    neighbours: Tensor  # [R], the neighbours of all vertices, in their order
    starts: Tensor  # [V + 1], where those of each start
    vertices: Tensor  # [R], of each node, the vertices that it is a neighbour of, by their places
    ends: Tensor  # [N + 1], where those of each start, and those of `reads`

    @property
    def rows(self) -> int:
        """P, how many rows there are with padding."""
        return self.neighbour.shape[0]


def stars_of(topology: Topology) -> Stars:
    """The stars of all vertices that have angles, made once and kept with the topology."""
    known: dict[str, Stars] = topology.__dict__
    if "_stars" not in known:
        with torch.inference_mode(False):  # it may be saved for a backward pass later on
            known["_stars"] = _stars(topology)
    return known["_stars"]


def _listed(values: Tensor) -> list[Any]:
    """The numbers of a tensor."""
    try:
        return values.tolist()
    except RuntimeError:  # under torch.func of an older torch, one by one
        return [value.item() for value in values]


def _stars(topology: Topology) -> Stars:
    vertices, star, degree = torch.unique_consecutive(
        topology.ray_vertex, return_inverse=True, return_counts=True
    )
    device, rays = star.device, torch.arange(len(star), device=star.device)
    begin = degree.cumsum(0) - degree  # the first ray of each vertex
    order = degree.argsort(stable=True)
    sizes, side = grouped(degree[order])
    count = torch.tensor([vertices for vertices, _ in sizes], dtype=torch.long, device=device)
    smallest = degree[order][count.cumsum(0) - count]
    padded = [least < side for least, (_, side) in zip(_listed(smallest), sizes, strict=True)]
    start = torch.empty_like(degree).index_copy(0, order, side.cumsum(0) - side)
    place = start[star] + rays - begin[star]
    ray = begin[order].repeat_interleave(side).index_copy(0, place, rays)
    there = torch.zeros(len(ray), device=device).index_fill(0, place, 1.0)
    neighbour = topology.ray_neighbour
    kind = narrow_type(max(len(ray), topology.num_nodes))
    ends = F.pad(torch.bincount(neighbour, minlength=topology.num_nodes).cumsum(0), (1, 0))
    read = neighbour.argsort(stable=True)
    at = torch.empty_like(order).index_copy(0, order, torch.arange(len(order), device=device))
    return Stars(
        sizes,
        padded,
        vertices[order],
        place,
        ray,
        there,
        neighbour[ray].to(kind),
        place[read].to(kind),
        neighbour[ray[there > 0]].to(kind),
        F.pad(degree[order].cumsum(0), (1, 0)).to(kind),
        at[star][read].to(kind),
        ends.to(kind),
    )


def grouped(degree: Tensor) -> tuple[list[tuple[int, int]], Tensor]:
    """Groups of vertices of about the same degree, of degrees that rise `[V]`.

    Returns:
        Of each group, its vertices and their degree with padding; the latter for each vertex `[V]`.
    """
    level = (degree.double().log() / math.log(SPREAD)).floor()
    _, count = torch.unique_consecutive(level, return_counts=True)
    side = degree[count.cumsum(0) - 1]  # the largest degree of each group
    sizes = _joined(list(zip(_listed(count), _listed(side), strict=True)))
    both = torch.tensor(sizes, dtype=torch.long, device=degree.device).view(-1, 2)
    count, side = both.unbind(1)
    return sizes, side.repeat_interleave(count)


def _joined(sizes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Groups, without those that are better padded to the degree of the next."""
    found: list[tuple[int, int]] = []
    for vertices, side in sizes:
        if found and found[-1][0] * (side - found[-1][1]) <= JOINED:
            vertices += found.pop()[0]
        found.append((vertices, side))
    return found
