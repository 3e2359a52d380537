"""The state: the current values of a graph or batch, and its initialisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32, length, root
from symgnn.geometry.symmetry import EVERYTHING
from symgnn.graphs import Topology
from symgnn.graphs.checks import check_shape, check_shift_dimension
from symgnn.nn._engine.torch_private import may_branch_on_values
from symgnn.nn.edge_products import directions, plain_products
from symgnn.nn.envelopes import message_weights
from symgnn.nn.inputs import VALUE_OF, Initial, Input, Measure, Operator
from symgnn.nn.spec import Spec

if TYPE_CHECKING:
    from symgnn.graphs import AngleRays, Movement
    from symgnn.nn.update import Update


class Values:
    """A value on a domain, `[rows, w]`, one row per node, edge, angle or graph.

    `ungated` is the value before its gate, where it has one.
    """

    def __init__(
        self, topology: Topology, domain: str, rows: Tensor, ungated: Tensor | None = None
    ) -> None:
        self.topology, self.domain, self.ungated = topology, domain, ungated
        self._rows = rows

    @property
    def rows(self) -> Tensor:
        """The value itself `[rows, w]`."""
        return self._rows

    def reduce(self, to: str, how: str, place: str = "") -> Tensor:
        """The value reduced to a coarser domain; of nothing, 0.

        Args:
            to: "edge", "node" or "graph".
            how: "sum", "mean" or "max".
            place: For angles to edges, "source" or "target": over the angles whose vertex is that
                end of the edge and whose first ray is the edge.

        Returns:
            `[rows of to, w]`.
        """
        topology = self.topology
        if place:
            (first, _), ray = topology.angle_rays, topology.rays_of_edges(place)
            # one row more, of nothing, for edges without a ray
            return reduce_rows(self.rows, first, topology.num_rays + 1, how).index_select(0, ray)
        index = topology.index_in(self.domain, to)
        return reduce_rows(self.rows, index, topology.size(to), how)


def reduce_rows(rows: Tensor, index: Tensor, size: int, how: str) -> Tensor:
    """The sum, mean or max of the rows of equal index, `[R, w], [R] -> [size, w]`; of nothing, 0.

    Half types are added in float32.
    """
    rows = at_least_float32(rows)
    one = rows.new_ones(index.shape[0], 1)
    count = rows.new_zeros(size, 1).index_add(0, index, one)
    if how == "max":
        largest = rows.new_full((size, rows.shape[-1]), -torch.inf)
        largest = largest.scatter_reduce(0, index.unsqueeze(-1).expand_as(rows), rows, "amax")
        return torch.where(count > 0, largest, 0.0)
    total = rows.new_zeros(size, rows.shape[-1]).index_add(0, index, rows)
    return total / count.clamp(min=1) if how == "mean" else total


class Reference:
    """The plain way to compute: gather with an index, apply phi, reduce with an index.

    It runs wherever PyTorch does, and says what every faster engine must give.
    """

    #: Whether all angles are in memory at once.
    whole = True
    #: Whether angles are listed also where only sums of product form are read.
    lists_angles = True

    def session(self, module: nn.Module) -> Reference:
        """The engine for one pass through a module, to be closed at its end."""
        return self

    def close(self) -> None:
        """The end of a pass."""

    def gather(self, rows: Tensor, lift: Movement) -> Tensor:
        """Rows to the things that read one each, `[R, w] -> [L, w]`."""
        return rows.index_select(0, lift.reads)

    def total(self, rows: Tensor, lift: Movement) -> Tensor:
        """The sum of the rows of all things that read the same one, `[L, w] -> [R, w]`."""
        return rows.new_zeros(lift.size, rows.shape[-1]).index_add(0, lift.reads, rows)

    def values(self, state: State, domain: str, rows: Tensor) -> Values:
        """A value from its rows `[rows of the domain, w]`."""
        return Values(state.topology, domain, rows)

    def measure(self, given: Measure, state: State) -> Values:
        """A measure of the current coordinates."""
        return self.values(state, given.domain, measure(given, state))

    def update(self, update: Update, state: State) -> Values:
        """The new value of an update."""
        return update.reference(state)

    def edge_products(self, degree: int, state: State) -> Tensor:
        """Those of :mod:`symgnn.nn.edge_products`, `[N, (degree + 1) w]`."""
        assert state.e is not None
        return plain_products(degree, state.e.rows, directions(state), state.topology)

    def __repr__(self) -> str:
        return "reference"


@dataclass
class State:
    """The values of a graph or batch at one moment; None for a value that is not there."""

    topology: Topology
    x: Tensor  # [N, n], the coordinates up to `shift`
    engine: Reference = field(default_factory=Reference)  # how values are computed
    v: Values | None = None
    e: Values | None = None
    a: Values | None = None
    u: Values | None = None
    # what coordinate maps have added to all nodes of a graph alike, [N, n] or [1, n]; kept apart
    # from x, because a large shift would take the digits of all distances away
    shift: Tensor | None = None
    # what a map that takes the shift gave last: the coordinates, and their two parts, x and shift
    apart: tuple[Tensor, Tensor, Tensor | None] | None = None
    unit: Tensor | None = None  # [N, 1], with scaled coordinates: 0 in graphs without extent, or 1
    edge_shift: Tensor | None = None  # [E, n], what is added to the source of each edge
    velocity: Tensor | None = None  # [N, n], for maps that read it
    given: Mapping[str, Values] = field(default_factory=dict)  # the values that came with the graph
    start: tuple[Tensor, Tensor] | None = None  # centroid [G, n] and spread [G, 1], see max_growth
    messages: Values | None = None  # the edge update on all pairs, for maps that read it
    part: Tensor | None = None  # [N], the number of each node's subgraph, where it is read
    functions: Mapping[Input, nn.Module] = field(default_factory=dict)  # of inputs with parameters
    measured: dict[Any, Any] = field(default_factory=dict)  # measures of the current coordinates

    def get(self, given: Input) -> Values:
        """The value of an input where it lives; each measure is computed once."""
        if isinstance(given, Measure):
            found: Values | None = self.measured.get(given)
            if found is None:
                found = self.engine.measure(given, self.seen_by(given))
                self.measured[given] = found
            return found
        if isinstance(given, Operator):
            assert self.v is not None
            operate = self.functions.get(given.home, given.function)
            return self.engine.values(self, "node", operate(self.v.rows, self.seen_by(given)))
        name = VALUE_OF[given.domain]
        value: Values | None = getattr(self, name)
        if isinstance(given, Initial):
            value = self.given.get(name)
        assert value is not None, f"{given} is read but not there"
        return value

    def function(self, given: Measure) -> tuple[Callable[..., Tensor], Callable[..., Any] | None]:
        """The function of a measure, and its function of single rays, if it has one."""
        module = self.functions.get(given.home)
        if module is None:
            return given.function, given.per_ray
        return module, getattr(module, "per_ray", None)

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """The coordinates of the source and the target of each edge `[E, n]`."""
        found = self.measured.get("ends")
        if found is None:
            edges, gather = self.topology.edges, self.engine.gather
            source, target = gather(self.x, edges.source), gather(self.x, edges.target)
            source = source if self.edge_shift is None else source + self.edge_shift
            found = self.measured["ends"] = source, target
        return found

    @property
    def rays(self) -> Tensor:
        """From the target of each edge to its source `[E, n]`."""
        source, target = self.ends
        return source - target

    @property
    def ray_ends(self) -> tuple[Tensor, Tensor]:
        """The coordinates of the neighbour and the vertex of each ray of the angles `[R, n]`."""
        rays, gather = self.topology.rays, self.engine.gather
        assert rays is not None
        neighbour, vertex = gather(self.x, rays.neighbour), gather(self.x, rays.vertex)
        if self.edge_shift is not None:
            neighbour = neighbour + self.topology.on_rays(self.edge_shift)
        return neighbour, vertex

    @property
    def position(self) -> Tensor:
        """The coordinates themselves `[N, n]`."""
        return self.x if self.shift is None else self.x + self.shift

    def seen_by(self, given: Input) -> State:
        """The state with the coordinates that an input reads: without the common shift, if
        translations do not change the input.
        """
        if self.shift is None or "translation" in (given.keeps or EVERYTHING):
            return self
        return replace(self, x=self.position, shift=None, measured={})

    def move(self, x: Tensor, shift: Tensor | None = None) -> None:
        """Set new coordinates, and discard the measures of the old ones."""
        self.x, self.shift, self.measured = x, shift, {}


def measure(given: Measure, state: State) -> Tensor:
    """A measure of the coordinates on all nodes, edges or angles, `[rows, w]`."""
    if given.domain == "node":
        return as_column(state.function(given)[0](state.x))
    if given.domain == "edge":
        return as_column(state.function(given)[0](*state.ends))
    neighbour, vertex = state.ray_ends
    topology = state.topology
    assert topology.pairs is not None
    return measure_angles(given, state, neighbour - vertex, topology.ray_vertex, topology.pairs)


def measure_angles(
    given: Measure,
    state: State,
    rays: Tensor,
    vertex: Tensor,
    pairs: AngleRays,
) -> Tensor:
    """A measure on the angles of some rays `[R, n]` with their vertices `[R]`, `[A, w]`."""
    (function, per_ray), gather = state.function(given), state.engine.gather
    around: tuple = (vertex, state.topology.num_nodes) if given.grouped else ()
    rays = rays if per_ray is None else per_ray(rays, *around)
    of_first, of_second = rays if isinstance(rays, tuple) else (rays, rays)
    if given.grouped:
        around = (vertex.index_select(0, pairs.first.reads), state.topology.num_nodes)
    return as_column(
        function(gather(of_first, pairs.first), gather(of_second, pairs.second), *around)
    )


def as_column(rows: Tensor) -> Tensor:
    """`[R] -> [R, 1]`; `[R, w]` is unchanged."""
    return rows.unsqueeze(-1) if rows.dim() == 1 else rows


def centroid(x: Tensor, state: State) -> Tensor:
    """The mean of the vectors of each graph `[N, n] -> [G, n]`."""
    total = state.engine.total(x, state.topology.graphs)
    return total / state.topology.nodes_of_graph.clamp(min=1).unsqueeze(-1)


def spread(away: Tensor, state: State) -> Tensor:
    """The root mean square length of the vectors of each graph `[N, n] -> [G, 1]`."""
    topology, engine = state.topology, state.engine
    lengths = length(away).unsqueeze(-1)
    # divided by the largest before squaring: coordinates may be 1e-30 or 1e30
    largest = reduce_rows(lengths.detach(), topology.batch, topology.num_graphs, "max")
    largest = torch.where(largest == 0, 1.0, largest)
    relative = lengths / engine.gather(largest, topology.graphs)
    return largest * root(centroid(relative.square(), state))


# ------------------------------------------------------------------ the start of a batch


def start(
    spec: Spec,
    pos: Tensor,
    topology: Topology,
    x: Tensor | None = None,
    edge_attr: Tensor | None = None,
    angle_attr: Tensor | None = None,
    u: Tensor | None = None,
    engine: Reference | None = None,
    functions: Mapping[Input, nn.Module] | None = None,
) -> tuple[State, Tensor | None]:
    """The state of the input, and the factor of its coordinates `[N, 1]`, if they are scaled."""
    check_shape("pos", pos, "[N, n]")
    if pos.shape[0] != topology.num_nodes:
        raise ValueError(
            f"pos: has {pos.shape[0]} rows, but the topology has {topology.num_nodes} nodes; "
            "apply AddTopology again, or del data.topology"
        )
    engine = engine or Reference()
    state = State(topology, at_least_float32(pos), engine, functions=functions or {})
    if topology.edge_shift is not None:
        check_shift_dimension(topology.edge_shift, pos)
        state.edge_shift = topology.edge_shift.to(state.x.dtype)
    scale = None
    if spec.scaling is not None:
        scale, state.unit = _scale(state, spec.scaling)
        if state.edge_shift is not None:
            state.edge_shift = state.edge_shift * engine.gather(scale, topology.edges.target)
        state.move(state.x * scale)
    for name, rows in (("e", edge_attr), ("a", angle_attr), ("u", u)):
        if rows is not None:
            domain = {"e": "edge", "a": "angle", "u": "graph"}[name]
            if spec.envelope is not None and domain != "graph":
                weight = message_weights(spec.envelope, domain, state)
                rows = rows * weight.to(rows.dtype)
            setattr(state, name, engine.values(state, domain, rows))
    state.v = engine.values(state, "node", _first_nodes(spec, state, x))
    values = {"v": state.v, "e": state.e, "a": state.a, "u": state.u}
    state.given = {name: value for name, value in values.items() if value is not None}
    return state, scale


def _scale(state: State, scaling: float) -> tuple[Tensor, Tensor]:
    """`scaling / (longest edge)` of the graph of each node.

    Where no edge has a length, the root mean square distance from the centroid stands in for it.
    Where that is zero too, the graph has no extent: then the distance of its nodes from the origin
    stands in, and if that is zero, 1. So a dilation of the coordinates never changes the result.

    Returns:
        The factors `[N, 1]`, and 1, or 0 for nodes of graphs without extent `[N, 1]`.
    """
    x, topology, gather = state.x, state.topology, state.engine.gather
    batch, graphs = topology.batch, topology.num_graphs
    lengths = length(state.rays).unsqueeze(-1)
    longest = reduce_rows(lengths, topology.index_in("edge", "graph"), graphs, "max")
    extended = torch.ones_like(longest)
    if not may_branch_on_values(longest) or bool((longest <= 0).any()):
        # from one of its nodes, not from the origin: nodes in one place are exactly in one place
        origin = -reduce_rows(-x.detach(), batch, graphs, "max")
        away = x - gather(origin, topology.graphs)
        away = away - gather(centroid(away, state), topology.graphs)
        longest = torch.where(longest <= 0, spread(away, state), longest)
        extended = (longest > 0).to(x.dtype)
        longest = torch.where(longest > 0, longest, spread(x, state))
    none = longest == 0
    factor = torch.where(none, 1.0, scaling / torch.where(none, 1.0, longest))
    return gather(factor, topology.graphs), gather(extended, topology.graphs)


def _first_nodes(spec: Spec, state: State, x: Tensor | None) -> Tensor:
    """The first values of the nodes `[N, w]`: their inputs, or the constant 1 without any."""
    rows = []
    for each in spec.inputs:
        if isinstance(each, Measure):
            if each.make is None or each in state.functions:
                rows.append(state.get(each).rows)
        elif x is not None:
            rows.append(x)
    rows = rows or [state.x.new_ones(1, 1).expand(state.topology.num_nodes, 1)]
    dtype = x.dtype if x is not None else rows[0].dtype
    return rows[0].to(dtype) if len(rows) == 1 else torch.cat([r.to(dtype) for r in rows], -1)
