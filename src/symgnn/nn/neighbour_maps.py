"""Coordinate maps along the rays to the neighbours of a node, or to all other nodes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from symgnn._argument_checks import check_at_least
from symgnn.geometry.symmetry import AFFINE, SIMILARITIES
from symgnn.nn._engine.torch_private import may_branch_on_values
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.form import Width
from symgnn.nn.inputs import Input, e, u, v
from symgnn.nn.spec import Spec
from symgnn.nn.state import State, Values, centroid, reduce_rows, spread
from symgnn.nn.update import Update


class _Neighbours(CoordinateMap):
    """Moves a node along the rays to its neighbours, each with a coefficient of its edge.

    `max_growth` keeps coordinates from exploding in deep stacks. Take the root mean square
    distance of a graph's nodes from where its centroid was when it first came to such a map: it
    may become at most that many times what it was then, and where it would be more, the graph is
    shrunk towards that centroid. The map stays equivariant to similarities, and short of the
    bound nothing changes, to the last digit. None turns it off.
    """

    inputs: tuple[Input, ...] = ()
    divisor: Tensor | None

    def __init__(self, max_growth: float | None = 100.0) -> None:
        super().__init__()
        if max_growth is not None:
            check_at_least("max_growth", max_growth, 1, "or None")
        self.max_growth = max_growth
        self.keeps = self.commutes = AFFINE if max_growth is None else SIMILARITIES

    def make(
        self, sizes: Mapping[str, int], width: Width, spec: Spec, dimension: int | None
    ) -> None:
        """phi_x on edges, with one output."""
        self.update = Update("edge", self.inputs, sizes, 1, width.for_map, {})
        terms = self.terms(width.terms)
        self.register_buffer("divisor", None if terms is None else torch.tensor(float(terms)))

    def terms(self, averages: Mapping[str, float]) -> float | None:
        """The average number of rays of a node in the training graphs, if it is known."""
        return averages.get("edge->node")

    def moved(self, state: State, edges: State, sign: int) -> Tensor:
        """`x_i + sign sum_j a_ji (x_j - x_i)` over the edges of `edges`, within the bound."""
        x = state.x
        coefficient = sign * self.update(edges).rows.to(x.dtype)
        if self.divisor is not None:
            coefficient = coefficient / self.divisor.to(x.dtype)
        along = edges.rays
        if self.max_growth is None:
            return x + _pull(along, coefficient, edges)
        if state.start is None:
            centre = centroid(x, state)
            away = x - state.engine.gather(centre, state.topology.graphs)
            state.start = centre, spread(away, state)
        if may_branch_on_values(coefficient):
            with torch.no_grad():
                outside, _ = self._bounded(state, edges, along, coefficient)
            if not outside.any():
                return x + _pull(along, coefficient, edges)
        return self._bounded(state, edges, along, coefficient)[1]

    def _bounded(
        self, state: State, edges: State, along: Tensor, coefficient: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Which graphs would grow beyond the bound `[G, 1]`, and where their nodes go instead."""
        assert self.max_growth is not None
        assert state.start is not None
        x, topology, (centre, width) = state.x, state.topology, state.start
        gather, graphs, target = state.engine.gather, topology.graphs, edges.topology.edges.target
        # Divided by a power of two, which is exact, no step on the way to the bound overflows.
        index = edges.topology.index_in("edge", "graph")
        size = reduce_rows(coefficient.detach().abs(), index, topology.num_graphs, "max")
        power = torch.exp2(size.clamp(min=1).log2().ceil())
        of_node = gather(power, graphs)
        pull = _pull(along, coefficient / gather(of_node, target), edges)
        away = (x - gather(centre, graphs)) / of_node + pull
        reach = spread(away, state)
        outside = reach > self.max_growth * width / power
        shrink = self.max_growth * width / torch.where(outside, reach, 1.0)
        inside = x + pull * gather(torch.where(outside, 0.0, power), graphs)
        shrunk = away * gather(torch.where(outside, shrink, 0.0), graphs)
        shrunk = shrunk + gather(centre, graphs)
        return outside, torch.where(outside[topology.batch], shrunk, inside)


class NeighbourSum(_Neighbours):
    """`x_i+ = x_i + sum_j a_ji (x_j - x_i)`, with `a_ji = phi_x(e_ji+, v_j+, v_i+, u)`.

    The sum runs over the edges j -> i; it is a sum even if the block aggregates by mean.
    """

    reads = frozenset("xveu")
    inputs = (e, v.source, v.target, u)

    def forward(self, state: State) -> Tensor:
        """Move along the edges."""
        return self.moved(state, state, 1)


class EGCN(_Neighbours):
    """EGNN's coordinate update `x_i+ = x_i + sum_j (x_i - x_j) phi_x(e_ji+)`.

    With `over="all"`, as in the EGNN paper, j runs over all other nodes of the graph; the block's
    edge update is then evaluated on all pairs, with zeros for the features of missing edges. With
    `over="neighbours"`, j runs over the edges j -> i. Deviation from the paper: phi_x reads the
    updated e_ji+, as in EGNN's code; the paper's formula has e_ji.
    """

    reads = frozenset("xe")
    inputs = (e,)

    def __init__(self, over: str = "all", max_growth: float | None = 100.0) -> None:
        super().__init__(max_growth)
        if over not in ("all", "neighbours"):
            raise ValueError(f"over: is {over!r}; the sum is over 'all' pairs or 'neighbours'")
        self.all_pairs = over == "all"

    def make(
        self, sizes: Mapping[str, int], width: Width, spec: Spec, dimension: int | None
    ) -> None:
        """phi_x on edges, with one output."""
        if self.all_pairs:
            _check_all_pairs(spec)
        super().make(sizes, width, spec, dimension)

    def terms(self, averages: Mapping[str, float]) -> float | None:
        """That of all other nodes, or of the neighbours."""
        if not self.all_pairs:
            return super().terms(averages)
        nodes = averages.get("node->graph")
        return None if nodes is None else max(nodes - 1, 1.0)

    def before_edges(self, update: Update, state: State) -> None:
        """The edge update on all pairs."""
        if self.all_pairs:
            state.messages = update(all_pairs_state(state))

    def forward(self, state: State) -> Tensor:
        """Move along all pairs or the edges."""
        edges = state
        if self.all_pairs:
            assert state.messages is not None
            topology = state.messages.topology
            edges = State(topology, state.x, state.engine, e=state.messages)
        return self.moved(state, edges, -1)


def _pull(rays: Tensor, coefficient: Tensor, edges: State) -> Tensor:
    """`sum_j a_ji (x_j - x_i)`, `[N, n]`."""
    return edges.engine.total(coefficient * rays, edges.topology.edges.target)


def all_pairs_state(state: State) -> State:
    """The state on the graph of all pairs, with zeros for the edges that are not there."""
    pairs = state.topology.all_pairs
    assert pairs is not None
    given = dict(state.given)
    if "e" in given:
        given["e"] = _on_pairs(given["e"], state)
    return State(
        pairs,
        state.x,
        state.engine,
        v=state.v,
        e=None if state.e is None else _on_pairs(state.e, state),
        u=state.u,
        given=given,
        functions=state.functions,
        shift=state.shift,
    )


def _on_pairs(edges: Values, state: State) -> Values:
    """An edge value on all pairs of nodes: the mean of parallel edges, 0 for missing edges."""
    pairs, edge_pair = state.topology.all_pairs, state.topology.edge_pair
    assert pairs is not None
    assert edge_pair is not None
    rows = edges.rows
    # the last row takes the self-loops
    mean = reduce_rows(rows, edge_pair, pairs.num_edges + 1, "mean")[:-1]
    return state.engine.values(State(pairs, state.x), "edge", mean.to(rows.dtype))


def _check_all_pairs(spec: Spec) -> None:
    """The edge update can be evaluated on pairs that are no edges, before the coordinates move."""
    reason = ""
    if not spec.edge:
        reason = f"{spec.name} has none"
    elif angles := [each for each in spec.edge if each.domain == "edge" and each.place]:
        reason = f"that of {spec.name} reads {angles[0]}"
    elif spec.order.index("edge") > spec.order.index("coordinates"):
        reason = f"that of {spec.name} comes after the coordinates"
    if reason:
        raise ValueError(
            "coordinate_map: egcn over all pairs needs an edge update that reads no angles and "
            f"comes before the coordinates, but {reason}; use egcn-neighbours"
        )
