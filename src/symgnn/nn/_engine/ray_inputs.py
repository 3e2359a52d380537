"""Inputs where they live, on the rays of angles or on lines, and moved to where they are read."""

from __future__ import annotations

import torch
from torch import Tensor

from symgnn.graphs import Topology
from symgnn.graphs.stars import stars_of
from symgnn.nn._engine.moments import Moments
from symgnn.nn._engine.rows import kept, move
from symgnn.nn._engine.torch_private import is_recorded, is_transformed, needs_derivative
from symgnn.nn._engine.values import lift
from symgnn.nn.inputs import Input, Measure
from symgnn.nn.separable import RayProduct
from symgnn.nn.state import State, as_column
from symgnn.nn.update import Update


def compiling() -> bool:
    """Whether the compiler or torch.export is at work."""
    return torch.compiler.is_compiling()


def on_rays(home: Input, incoming: bool, state: State) -> Tensor:
    """An edge value, or a measure on edges, on the rays of the angles `[R, w]`."""
    if incoming or not isinstance(home, Measure):
        return _edges_to_rays(state.get(home).rows, state.topology, incoming)
    key = ("on rays", home)
    if key not in state.measured:
        function, _ = state.function(home)
        state.measured[key] = as_column(function(*state.seen_by(home).ray_ends))
    found: Tensor = state.measured[key]
    return found


def moments_of(given: RayProduct, state: State) -> Moments:
    """The moments of the vectors that a measure of angles gives each ray, made once."""
    key = ("moments", given)
    if key not in state.measured:
        state.measured[key] = _made_moments(given, state.seen_by(given))
    found: Moments = state.measured[key]
    return found


def _made_moments(given: RayProduct, state: State) -> Moments:
    (_, per_ray), topology = state.function(given), state.topology
    assert per_ray is not None
    if not given.grouped and _needs_no_derivative(state):
        return Moments(topology, per_ray(_rays_of_rows(state)), given.unit, of_rows=True)
    neighbour, vertex = state.ray_ends
    around = (topology.ray_vertex, topology.num_nodes) if given.grouped else ()
    rays = neighbour - vertex
    if not given.grouped:  # one coordinate after the other: operations on few take longer
        rays = torch.stack(rays.unbind(1)).T
    return Moments(topology, per_ray(rays, *around), given.unit)


def _needs_no_derivative(state: State) -> bool:
    """Whether coordinates need no derivative, and operations on them are not recorded."""
    recorded = is_transformed() or is_recorded(state.x)
    return not recorded and not needs_derivative(state.x, state.edge_shift)


def _rays_of_rows(state: State) -> Tensor:
    """From the vertex to the neighbour of each row of the stars `[P, n]`, one coordinate after the
    other.
    """
    topology, columns = state.topology, state.x.T.contiguous()
    stars = stars_of(topology)
    vertex = kept(topology, "vertices of rows", lambda: topology.ray_vertex[stars.ray])
    neighbour = columns.index_select(1, stars.neighbour)
    if state.edge_shift is not None:
        neighbour = neighbour + topology.on_rays(state.edge_shift)[stars.ray].T
    return (neighbour - columns.index_select(1, vertex)).T


def on_lines(given: Measure, state: State) -> Tensor:
    """A measure on edges that is the same both ways, once for each line `[L, w]`."""
    key, topology = ("on lines", given), state.topology
    if key not in state.measured:
        assert topology.line_index is not None
        one, other = (lift(state.seen_by(given).x, end) for end in topology.line_index)
        if state.edge_shift is not None:
            one = one + topology.on_lines(state.edge_shift)
        state.measured[key] = as_column(state.function(given)[0](one, other))
    found: Tensor = state.measured[key]
    return found


def _edges_to_rays(rows: Tensor, topology: Topology, incoming: bool) -> Tensor:
    """As :func:`symgnn.nn.update.edges_to_rays`, by movements."""
    if incoming:
        assert topology.rays_in is not None
        total = move(rows, topology.rays_in)
        count = topology.rays_in.offsets.diff().clamp(min=1).unsqueeze(-1)
        return total / count.to(total.dtype)
    assert topology.ray_edge is not None
    edges = lift(rows, topology.ray_edge.flatten())
    if topology.ray_edge_weight is None:
        return edges
    edges = edges.view(*topology.ray_edge.shape, rows.shape[-1])
    return (edges * topology.ray_edge_weight.unsqueeze(-1).to(rows.dtype)).sum(1)


def lifted(given: Input, rows: Tensor, update: Update, topology: Topology) -> Tensor:
    """Rows where an input lives as nodes, edges or graphs read it."""
    if given.domain == update.domain:
        lines = topology.lines if update.plan.on_lines else None
        return rows if lines is None else move(rows, lines)
    if given.domain == "graph":
        rows = move(rows, topology.graphs)
        return rows if update.domain == "node" else move(rows, topology.edges.target)
    return move(rows, topology.edges.target if given.place == "target" else topology.edges.source)


def to_rays(given: Input, rows: Tensor, update: Update, topology: Topology) -> tuple[Tensor, str]:
    """Rows where an input lives on the rays `[R, w]`, and which end of an angle reads them; those
    of angles as they are.
    """
    assert topology.rays is not None
    if given.domain == "angle":
        return rows, ""
    place, _, incoming = given.place.partition(" ")
    end = "second" if place == "second" else "first"
    if given.domain == "graph":
        rows = move(rows, topology.graphs)
    if given.domain == "edge":
        if update.lives_on_rays(given):
            return rows, end
        return _edges_to_rays(rows, topology, bool(incoming)), end
    ends = topology.rays
    return move(rows, ends.neighbour if place in ("first", "second") else ends.vertex), end
