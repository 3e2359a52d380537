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
from symgnn.nn.fields import Field, accumulate, centroid, lift, spread
from symgnn.nn.movements import can_look, move
from symgnn.nn.parameters import reset_all
from symgnn.nn.sources import Source, e, u, v
from symgnn.nn.spec import Spec
from symgnn.nn.state import State
from symgnn.nn.update import Update, Width
from symgnn.topology import Topology


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

    @property
    def takes_shift(self) -> bool:
        """Whether `forward` reads `state.shift`, and gives the new one in `state.apart`."""
        return False

    def move(self, state: State) -> None:
        """Give the state its new coordinates."""
        if self.takes_shift:
            moved = self(state)
            assert state.apart is not None
            result, *parts = state.apart
            state.move(*(parts if moved is result else [moved]))
        elif "translation" in self.commutes:
            state.move(self(state), state.shift)  # a common shift goes through unchanged
        else:
            state.move(state.position)
            state.move(self(state))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        reset_all(self)


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
        last = self.update.phi.linears[-1]
        nn.init.constant_(last.bias, self.start)  # type: ignore[arg-type]

    def reset_parameters(self) -> None:
        """Back to the start."""
        if self.of == "u":
            self.update.reset_parameters()
            self._start_update()
        else:
            nn.init.constant_(self.coefficients, self.start)

    @property
    def takes_shift(self) -> bool:
        """Unless a subclass has a forward of its own."""
        return type(self).forward is _Common.forward

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """The new coordinates without what is added to all nodes alike, and that."""
        raise TypeError(f"{type(self).__name__} has to say where it moves the nodes")

    def forward(self, state: State) -> Tensor:
        """Move all nodes alike."""
        x, shift = self.parts(state)
        moved = x if shift is None else x + shift
        state.apart = moved, x, shift
        return moved

    def per_node(self, state: State) -> Tensor:
        """The coefficients of each node's graph, `[N, c]` or `[1, c]`."""
        if self.of == "parameters":
            return self.coefficients.unsqueeze(0).to(state.x.dtype)
        return lift(self.update(state).rows, state.topology.batch).to(state.x.dtype)


class Scale(_Common):
    """`x_i+ = a x_i`; a function of u is held between -100 and 100."""

    start = 1.0
    commutes = SIMILARITIES & Symmetry(["permutation", "rotation", "reflection", "dilation"])

    def count(self, n: int) -> int:
        """One."""
        return 1

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Scale about the origin."""
        factor = self.per_node(state)
        factor = factor.clamp(-100, 100) if self.of == "u" else factor
        return factor * state.x, None if state.shift is None else factor * state.shift


class Shift(_Common):
    """`x_i+ = x_i + a`."""

    commutes = PERMUTATIONS | Symmetry(["translation"])

    def count(self, n: int) -> int:
        """One per coordinate."""
        return n

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Shift all nodes alike."""
        return _shifted(state, state.x, state.shift, self.per_node(state))


class Rigid(_Common):
    """`x_i+ = Q x_i + a`, Q orthogonal: the exponential of a skew-symmetric matrix.

    The entries above the diagonal of that matrix are the coefficients; where they are longer than
    10 together, they are shortened to that, as the exponential loses its digits further out.
    """

    commutes = PERMUTATIONS

    def count(self, n: int) -> int:
        """Those of the skew-symmetric matrix, then those of the shift."""
        return n * (n - 1) // 2 + n

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Rotate about the origin and shift."""
        n = state.x.shape[1]
        coefficients = self.per_node(state)
        turn, shift = coefficients[:, : n * (n - 1) // 2], coefficients[:, n * (n - 1) // 2 :]
        if n > 1:
            turn = turn * (10 / length(turn).clamp(min=10)).unsqueeze(-1)
        row, column = torch.triu_indices(n, n, 1, device=state.x.device)
        skew = turn.new_zeros(turn.shape[0], n * n).index_copy(1, row * n + column, turn)
        skew = skew.unflatten(1, (n, n))
        # a single matrix goes through a series that is off by 5e-5 (pytorch issue 196592)
        pair = torch.cat([skew, skew[:1]])
        rotation = torch.linalg.matrix_exp(pair - pair.mT)[:-1]
        turned = None if state.shift is None else _apply(rotation, state.shift)
        return _shifted(state, _apply(rotation, state.x), turned, shift)


def _apply(matrices: Tensor, vectors: Tensor) -> Tensor:
    """A matrix for each vector, or one for all, `[N, n, n], [N, n] -> [N, n]`."""
    return (matrices @ vectors.unsqueeze(-1)).squeeze(-1)


def _shifted(
    state: State, x: Tensor, old: Tensor | None, new: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The coordinates x and their common shift, with more added to it.

    The shift is kept apart as a number, and x has its derivative: so the parameters of a shift have
    a gradient also where nothing depends on it, as training on several devices expects.

    Where coordinates are scaled by the size of their graph, what is added is in units of it, and
    nothing in a graph without a size: the limit of ever smaller ones.
    """
    new = new if state.unit is None else new * state.unit
    number = new.detach()
    return x + (new - number), number if old is None else old + number


class _Neighbours(CoordinateMap):
    """Moves a node along the rays to its neighbours, each with a coefficient of its edge.

    `max_growth` keeps coordinates from exploding in deep stacks. Take the root mean square
    distance of a graph's nodes from where its centroid was when it first came to such a map: it
    may become at most that many times what it was then, and where it would be more, the graph is
    shrunk towards that centroid. The map stays equivariant to similarities, and short of the
    bound nothing changes, to the last digit. None turns it off.
    """

    sources: tuple[Source, ...] = ()

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
        self.update = Update("edge", self.sources, sizes, 1, width.for_map, {})

    def moved(self, state: State, edges: State, sign: int) -> Tensor:
        """`x_i + sign sum_j a_ji (x_j - x_i)` over the edges of `edges`, within the bound."""
        x = state.x
        coefficient = sign * self.update(edges).rows.to(x.dtype)
        along = edges.rays
        if self.max_growth is None:
            return x + _pull(along, coefficient, edges.topology)
        if state.start is None:
            centre = centroid(x, state.topology)
            state.start = centre, spread(x - lift(centre, state.topology.batch), state.topology)
        if can_look(coefficient):
            with torch.no_grad():
                outside, _ = self._bounded(state, edges.topology, along, coefficient)
            if not outside.any():
                return x + _pull(along, coefficient, edges.topology)
        return self._bounded(state, edges.topology, along, coefficient)[1]

    def _bounded(
        self, state: State, edges: Topology, along: Tensor, coefficient: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Which graphs would grow beyond the bound `[G, 1]`, and where their nodes go instead."""
        assert self.max_growth is not None
        assert state.start is not None
        x, topology, (centre, width) = state.x, state.topology, state.start
        # Divided by a power of two, which is exact, no step on the way to the bound overflows.
        target = edges.edge_index[1]
        size = accumulate(coefficient.detach().abs(), target, x.shape[0], "max")
        size = accumulate(size, topology.batch, topology.num_graphs, "max").clamp(min=1)
        power = torch.exp2(size.log2().ceil())
        of_node = lift(power, topology.batch)
        pull = _pull(along, coefficient / lift(of_node, target), edges)
        away = (x - lift(centre, topology.batch)) / of_node + pull
        reach = spread(away, topology)
        outside = reach > self.max_growth * width / power
        shrink = self.max_growth * width / torch.where(outside, reach, 1.0)
        inside = x + pull * lift(torch.where(outside, 0.0, power), topology.batch)
        shrunk = away * lift(torch.where(outside, shrink, 0.0), topology.batch)
        shrunk = shrunk + lift(centre, topology.batch)
        return outside, torch.where(lift(outside, topology.batch), shrunk, inside)


class NeighbourSum(_Neighbours):
    """`x_i+ = x_i + sum_j a_ji (x_j - x_i)`, with `a_ji = phi_x(e_ji+, v_j+, v_i+, u)`.

    The sum is over the edges j -> i, and is a sum also where the block aggregates by mean.
    """

    reads = frozenset("xveu")
    sources = (e, v.source, v.target, u)

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
    sources = (e,)

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

    def forward(self, state: State) -> Tensor:
        """Move along all pairs or the edges."""
        edges = State(state.topology, state.x, e=state.e, at_edges=state.at_edges)
        if self.all_pairs:
            assert state.messages is not None
            edges = State(state.messages.topology, state.x, e=state.messages)
        return self.moved(state, edges, -1)


def _pull(rays: Tensor, coefficient: Tensor, topology: Topology) -> Tensor:
    """`sum_j a_ji (x_j - x_i)`, `[N, n]`."""
    return move(coefficient * rays, topology.edges.near.T)


def all_pairs_state(state: State) -> State:
    """The state on the graph of all pairs, with zeros for the edges that are not there."""
    pairs = state.topology.all_pairs
    assert pairs is not None
    edges = None if state.e is None else _on_pairs(state.e, state.topology)
    given = dict(state.given)
    if "e" in given:
        given["e"] = _on_pairs(given["e"], state.topology)
    return State(
        pairs,
        state.x,
        v=state.v,
        e=edges,
        u=state.u,
        given=given,
        modules=state.modules,
        shift=state.shift,
    )


def _on_pairs(edges: Field, topology: Topology) -> Field:
    """A value of edges on all pairs: the mean of parallel edges, 0 where there is none."""
    pairs, edge_pair = topology.all_pairs, topology.edge_pair
    assert pairs is not None
    assert edge_pair is not None
    rows, count = edges.rows, pairs.num_edges + 1  # the last row takes the self-loops
    total = accumulate(rows, edge_pair, count, "sum")
    parallel = accumulate(rows.new_ones(rows.shape[0], 1), edge_pair, count, "sum")
    return Field(pairs, "edge", (total / parallel.clamp(min=1))[:-1].to(rows.dtype))


def _check_all_pairs(spec: Spec) -> None:
    """The edge update can be evaluated on pairs that are no edges, before the coordinates move."""
    reason = ""
    if not spec.edge:
        reason = f"{spec.name} has none"
    elif angles := [s for s in spec.edge if s.domain == "edge" and s.place]:
        reason = f"that of {spec.name} reads {angles[0]}"
    elif spec.order.index("edge") > spec.order.index("coordinates"):
        reason = f"that of {spec.name} comes after the coordinates"
    if reason:
        raise ValueError(
            "coordinate_map: egcn over all pairs needs an edge update that reads no angles and "
            f"comes before the coordinates, but {reason}; use egcn-neighbours"
        )
