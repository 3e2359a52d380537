"""The map psi that moves the coordinates at the end of a block.

Two symmetries belong to a map. `keeps`: if the coordinates that go in are transformed by one of
these, whatever distance, angle or kappa is measured on those that come out stays as it was.
`commutes`: what comes out is transformed in the same way as what went in, which a network that
predicts coordinates needs. A common scale, shift or rigid motion keeps everything and commutes
with little; the neighbour-sum commutes with all affine maps and keeps only those.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import length
from symgnn.geometry.symmetry import (
    AFFINE,
    EVERYTHING,
    PERMUTATIONS,
    SIMILARITIES,
    Symmetry,
)
from symgnn.nn._engine.torch_private import may_branch_on_values
from symgnn.nn.form import MLP, Width
from symgnn.nn.inputs import Input, e, u, v
from symgnn.nn.spec import Spec
from symgnn.nn.state import State, centroid, reduce_rows, spread
from symgnn.nn.update import Update


class CoordinateMap(nn.Module):
    """A map psi: `forward(state) -> x+ [N, n]`. A subclass says what it reads and keeps."""

    reads: frozenset[str] = frozenset()
    keeps: Symmetry = EVERYTHING
    commutes: Symmetry = EVERYTHING
    all_pairs = False
    velocity = False

    def make(
        self, sizes: Mapping[str, int], width: Width, spec: Spec, dimension: int | None
    ) -> None:
        """Make the parameters, once the widths of the values are known."""

    def forward(self, state: State) -> Tensor:
        """The new coordinates."""
        return state.x

    def shift(self, state: State) -> Tensor | None:
        """What is added to the source of each edge from now on `[E, n]`: a cell stays as it is
        where nodes move in it, and moves with the coordinates where all of these do.
        """
        return state.shift

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]


class _Common(CoordinateMap):
    """One motion for all nodes of a graph, by parameters or by a function of u.

    With `of="u"` the coefficients are phi(u), per graph; `start` is what they begin with (the
    parameters exactly, phi by its last bias), so that a new network leaves coordinates in place.
    """

    start = 0.0

    def __init__(self, of: str = "parameters") -> None:
        super().__init__()
        if of not in ("parameters", "u"):
            raise ValueError(f"of: is {of!r}; coefficients are 'parameters' or functions of 'u'")
        self.of = of
        self.reads = frozenset("xu") if of == "u" else frozenset("x")

    def count(self, n: int) -> int:
        """How many coefficients there are in n dimensions."""
        raise TypeError(f"{type(self).__name__} has to say how many coefficients it has")

    def make(
        self, sizes: Mapping[str, int], width: Width, spec: Spec, dimension: int | None
    ) -> None:
        """Parameters `[c]`, or phi(u) with c outputs."""
        if dimension is None:
            count = self.count(1)
            if count != self.count(2):
                raise ValueError(
                    f"dimension: {type(self).__name__} has parameters for each coordinate; give "
                    "their number, such as dimension=3"
                )
        else:
            count = self.count(dimension)
        if self.of == "parameters":
            self.coefficients = nn.Parameter(torch.full((count,), self.start))
            return
        # in a first layer without graph features there is no u: then phi() is its bias
        self.update = Update("graph", [u], sizes, count, width.for_map, {})
        self._start_update()

    def _start_update(self) -> None:
        assert isinstance(self.update.phi, MLP)
        nn.init.constant_(self.update.phi.linears[-1].bias, self.start)  # type: ignore[arg-type]

    def reset_parameters(self) -> None:
        """Back to the start."""
        if self.of == "u":
            self.update.reset_parameters()
            self._start_update()
        else:
            nn.init.constant_(self.coefficients, self.start)

    def per_node(self, state: State) -> Tensor:
        """The coefficients of each node's graph, `[N, c]` or `[1, c]`."""
        if self.of == "parameters":
            return self.coefficients.unsqueeze(0).to(state.x.dtype)
        rows = self.update(state).rows.to(state.x.dtype)
        return state.engine.gather(rows, state.topology.graphs)

    def per_edge(self, state: State) -> Tensor:
        """The coefficients of each edge's graph, `[E, c]` or `[1, c]`."""
        rows = self.per_node(state)
        return rows if self.of == "parameters" else rows[state.topology.edge_index[1]]


class Scale(_Common):
    """`x_i+ = a x_i`; a function of u is held between -100 and 100."""

    start = 1.0
    commutes = SIMILARITIES & Symmetry(["permutation", "rotation", "reflection", "dilation"])

    def count(self, n: int) -> int:
        """One."""
        return 1

    def forward(self, state: State) -> Tensor:
        """Scale about the origin."""
        return self._held(self.per_node(state)) * state.x

    def shift(self, state: State) -> Tensor | None:
        """Scaled alike."""
        return None if state.shift is None else self._held(self.per_edge(state)) * state.shift

    def _held(self, factor: Tensor) -> Tensor:
        return factor.clamp(-100, 100) if self.of == "u" else factor


class Shift(_Common):
    """`x_i+ = x_i + a`."""

    commutes = PERMUTATIONS | Symmetry(["translation"])

    def count(self, n: int) -> int:
        """One per coordinate."""
        return n

    def forward(self, state: State) -> Tensor:
        """Shift all nodes alike."""
        return state.x + self.per_node(state)


class Rigid(_Common):
    """`x_i+ = Q x_i + a`, Q orthogonal: the exponential of a skew-symmetric matrix.

    The entries above the diagonal of that matrix are the coefficients; where they are longer than
    10 together, they are shortened to that, as the exponential loses its digits further out.
    """

    commutes = PERMUTATIONS

    def count(self, n: int) -> int:
        """Those of the skew-symmetric matrix, then those of the shift."""
        return n * (n - 1) // 2 + n

    def forward(self, state: State) -> Tensor:
        """Rotate about the origin and shift."""
        rotation, shift = self._motion(self.per_node(state), state.x.shape[1])
        return (rotation @ state.x.unsqueeze(-1)).squeeze(-1) + shift

    def shift(self, state: State) -> Tensor | None:
        """Rotated alike."""
        if state.shift is None:
            return None
        rotation, _ = self._motion(self.per_edge(state), state.x.shape[1])
        return (rotation @ state.shift.unsqueeze(-1)).squeeze(-1)

    def _motion(self, coefficients: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Q `[rows, n, n]` and a `[rows, n]`."""
        turn, shift = coefficients[:, : n * (n - 1) // 2], coefficients[:, n * (n - 1) // 2 :]
        if n > 1:
            turn = turn * (10 / length(turn).clamp(min=10)).unsqueeze(-1)
        row, column = torch.triu_indices(n, n, 1, device=turn.device)
        skew = turn.new_zeros(turn.shape[0], n * n).index_copy(1, row * n + column, turn)
        skew = skew.view(-1, n, n)
        # a single matrix goes through a series that is off by 5e-5 (pytorch issue 196592)
        pair = torch.cat([skew, skew[:1]])
        return torch.linalg.matrix_exp(pair - pair.mT)[:-1], shift


class _Neighbours(CoordinateMap):
    """Moves a node along the rays to its neighbours, each with a coefficient of its edge.

    `max_growth` keeps coordinates from exploding in deep stacks. Take the root mean square
    distance of a graph's nodes from where its centroid was when it first came to such a map: it
    may become at most that many times what it was then, and where it would be more, the graph is
    shrunk towards that centroid. The map stays equivariant to similarities, and short of the
    bound nothing changes, to the last digit. None turns it off.
    """

    inputs: tuple[Input, ...] = ()

    def __init__(self, max_growth: float | None = 100.0) -> None:
        super().__init__()
        if max_growth is not None and not 1 <= max_growth < float("inf"):
            raise ValueError(f"max_growth: is {max_growth}; give a number of at least 1, or None")
        self.max_growth = max_growth
        self.keeps = self.commutes = AFFINE if max_growth is None else SIMILARITIES

    def make(
        self, sizes: Mapping[str, int], width: Width, spec: Spec, dimension: int | None
    ) -> None:
        """phi_x on edges, with one output."""
        self.update = Update("edge", self.inputs, sizes, 1, width.for_map, {})

    def moved(self, state: State, edges: State, sign: int) -> Tensor:
        """`x_i + sign sum_j a_ji (x_j - x_i)` over the edges of `edges`, within the bound."""
        x = state.x
        coefficient = sign * self.update(edges).rows.to(x.dtype)
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
        gather, graphs, target = state.engine.gather, topology.graphs, edges.topology.edges.near
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

    The sum is over the edges j -> i, and is a sum also where the block aggregates by mean.
    """

    reads = frozenset("xveu")
    inputs = (e, v.source, v.target, u)

    def forward(self, state: State) -> Tensor:
        """Move along the edges."""
        return self.moved(state, state, 1)


class EGCN(_Neighbours):
    """`x_i+ = x_i + sum_j (x_i - x_j) phi_x(e_ji+)`, over all pairs or over the neighbours.

    With `over="all"`, as in the EGNN paper, j runs over all other nodes of the graph; the block's
    edge update is then evaluated on all pairs, with zeros for the features of edges that are not
    there. With `over="neighbours"`, j runs over the edges j -> i. The paper's formula has e_ji
    where EGNN's code, and this, has the updated e_ji+.
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
        if self.all_pairs and (
            not spec.edge or any(s.domain == "edge" and s.place for s in spec.edge)
        ):
            raise ValueError(
                "coordinate_map: egcn over all pairs needs an edge update that reads no angles; "
                "use egcn-neighbours"
            )
        super().make(sizes, width, spec, dimension)

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
    return edges.engine.total(coefficient * rays, edges.topology.edges.near)


def all_pairs_state(state: State) -> State:
    """The state on the graph of all pairs, with zeros for the edges that are not there."""
    topology = state.topology
    pairs = topology.all_pairs
    assert pairs is not None
    complete = State(pairs, state.x, state.engine, v=state.v, u=state.u, functions=state.functions)
    if state.e is not None:
        assert topology.edge_pair is not None
        rows = state.e.rows
        # the last row takes the self-loops
        mean = reduce_rows(rows, topology.edge_pair, pairs.num_edges + 1, "mean")[:-1]
        complete.e = state.engine.values(complete, "edge", mean.to(rows.dtype))
    return complete
