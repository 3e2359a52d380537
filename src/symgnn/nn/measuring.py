"""Measures of the coordinates, taken where they are read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.nn.angle_fields import AngleField
from symgnn.nn.fields import Field, lift
from symgnn.nn.movements import move

if TYPE_CHECKING:
    from symgnn.nn.sources import Measure
    from symgnn.nn.state import State
    from symgnn.topology import Part, Topology


def measure(source: Measure, state: State) -> Field:
    """A measure of the coordinates on its domain."""
    x, topology, chunks = state.x, state.topology, state.chunks
    if source.domain == "node":
        return Field(topology, "node", _column(source.function(x), 1))
    if source.domain == "edge":
        return Field(topology, "edge", _column(source.function(*state.ends), 1))

    read = partial(lift, x) if chunks is None else chunks.table(x).rows

    def compute(part: Part) -> Tensor:
        vertex = topology.ray_vertex[part.cut.rays]
        neighbour = topology.ray_neighbour[part.cut.rays]
        rays = read(neighbour) - read(vertex)
        around: tuple = (vertex, topology.num_nodes) if source.grouped else ()
        rays = rays if source.per_ray is None else source.per_ray(rays, *around)
        of_first, of_second = rays if isinstance(rays, tuple) else (rays, rays)
        first, second = move(of_first, part.pairs.near), move(of_second, part.pairs.far)
        if source.grouped:
            around = (lift(vertex, part.pairs.near.reads), topology.num_nodes)
        return _column(source.function(first, second, *around), 1)

    return AngleField(topology, compute, x.new_empty(0, source.width or 1), chunks=chunks)


def measure_rays(source: Measure, x: Tensor, topology: Topology, into: bool = False) -> Tensor:
    """A measure on edges, taken on the rays of the angles, from neighbour to vertex, `[R, w]`.

    With `into`, it is 0 on rays (i, j) without an edge j -> i.
    """
    neighbours, vertices = lift(x, topology.ray_neighbour), lift(x, topology.ray_vertex)
    rows = _column(source.function(neighbours, vertices), 1)
    if not into:
        return rows
    assert topology.rays_in is not None
    there = topology.rays_in.offsets.diff().unsqueeze(-1) > 0
    return torch.where(there, rows, 0.0)


def measure_lines(source: Measure, x: Tensor, topology: Topology) -> Tensor:
    """A measure on edges that is the same both ways, taken once for each line, `[L, w]`."""
    assert topology.line_index is not None
    return _column(source.function(*(lift(x, end) for end in topology.line_index)), 1)


def edges_to_rays(rows: Tensor, topology: Topology, into: bool = False) -> Tensor:
    """Edge rows on the rays `[R, h]`; the mean of parallel edges.

    A ray (i, j) reads the edge i -> j, or j -> i where there is none; with `into`, it reads the
    edge j -> i, and 0 where there is none.
    """
    if into:
        assert topology.rays_in is not None
        total = move(rows, topology.rays_in)
        count = topology.rays_in.offsets.diff().clamp(min=1).unsqueeze(-1)
        return total / count.to(total.dtype)
    assert topology.ray_edge is not None
    if topology.ray_edge_weight is None:
        return lift(rows, topology.ray_edge.flatten())
    edges = lift(rows, topology.ray_edge.flatten())
    edges = edges.view(*topology.ray_edge.shape, rows.shape[-1])
    return (edges * topology.ray_edge_weight.unsqueeze(-1).to(rows.dtype)).sum(1)


def _column(rows: Tensor, axes: int) -> Tensor:
    return rows.unsqueeze(-1) if rows.dim() == axes else rows
