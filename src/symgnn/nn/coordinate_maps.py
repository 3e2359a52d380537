"""The map psi that moves the coordinates at the end of a block.

A map has two symmetries. `keeps`: the transformations of the input coordinates under which a
measure (distance, angle, kappa) of the output coordinates is invariant whenever the same measure of
the input coordinates is. `commutes`: the transformations to which the map is equivariant, which
matters for a network that predicts coordinates. A common scale, shift or rigid motion keeps all
transformations and commutes with few; the neighbour-sum keeps, and commutes with, affine maps only.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import length
from symgnn.geometry.symmetry import DISPLACEMENTS, EVERYTHING, PERMUTATIONS, Symmetry
from symgnn.nn.form import MLP, Width
from symgnn.nn.inputs import u
from symgnn.nn.parameters import reset_all
from symgnn.nn.spec import Spec
from symgnn.nn.state import State
from symgnn.nn.update import Update


class CoordinateMap(nn.Module):
    """A coordinate map psi: `forward(state) -> x+ [N, n]`.

    A subclass declares the values that it `reads` and its symmetries `keeps` and `commutes`.
    """

    reads: frozenset[str] = frozenset()
    keeps: Symmetry = EVERYTHING
    commutes: Symmetry = EVERYTHING
    all_pairs = False
    velocity = False
    within_parts = False
    turns = False  # the axes of space, which whatever reads along one notices

    def make(
        self, sizes: Mapping[str, int], width: Width, spec: Spec, dimension: int | None
    ) -> None:
        """Create the parameters, once the widths of the values are known."""

    def forward(self, state: State) -> Tensor:
        """The new coordinates."""
        return state.x

    @property
    def takes_shift(self) -> bool:
        """Whether `forward` reads `state.shift` and puts the new shift into `state.apart`."""
        return False

    def before_edges(self, update: Update, state: State) -> None:
        """Called before the edge update of the block, for maps that evaluate it on other pairs."""

    def edge_shift(self, state: State) -> Tensor | None:
        """The shift of the source of each edge in the next layers `[E, n]`. The cell is unchanged
        if nodes move within it, and transforms with the coordinates if they all transform.
        """
        return state.edge_shift

    def move(self, state: State) -> None:
        """Give the state its new coordinates."""
        edge_shift = self.edge_shift(state)
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
        state.edge_shift = edge_shift

    def reset_parameters(self) -> None:
        """Re-initialise all parameters."""
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
        assert isinstance(self.update.phi, MLP)
        nn.init.constant_(self.update.phi.linears[-1].bias, self.start)  # type: ignore[arg-type]

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
        """The new coordinates without the common shift of all nodes, and that shift."""
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
        rows = self.update(state).rows.to(state.x.dtype)
        return state.engine.gather(rows, state.topology.graphs)

    def per_edge(self, state: State) -> Tensor:
        """The coefficients of each edge's graph, `[E, c]` or `[1, c]`."""
        rows = self.per_node(state)
        return rows if self.of == "parameters" else rows[state.topology.edge_index[1]]


class Scale(_Common):
    """`x_i+ = a x_i`; if a is a function of u, it is limited to [-100, 100]."""

    start = 1.0
    # a torsion is about a place of the graph, not of space
    commutes = Symmetry(["permutation", "rotation", "reflection", "dilation", "torsion"])

    def count(self, n: int) -> int:
        """One."""
        return 1

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Scale about the origin."""
        factor = self._held(self.per_node(state))
        return factor * state.x, None if state.shift is None else factor * state.shift

    def edge_shift(self, state: State) -> Tensor | None:
        """Scaled alike."""
        if state.edge_shift is None:
            return None
        return self._held(self.per_edge(state)) * state.edge_shift

    def _held(self, factor: Tensor) -> Tensor:
        return factor.clamp(-100, 100) if self.of == "u" else factor


class Shift(_Common):
    """`x_i+ = x_i + a`."""

    # and with whatever moves each node by a given vector
    commutes = Symmetry(["permutation", "translation", "torsion", *DISPLACEMENTS])

    def count(self, n: int) -> int:
        """One per coordinate."""
        return n

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Shift all nodes alike."""
        return _shifted(state, state.x, state.shift, self.per_node(state))


class Rigid(_Common):
    """`x_i+ = Q x_i + a`, Q orthogonal: the exponential of a skew-symmetric matrix.

    The entries above the diagonal of that matrix are the coefficients. A vector of coefficients
    longer than 10 is shortened to length 10: the exponential of larger matrices is inaccurate.
    """

    commutes = PERMUTATIONS
    turns = True

    def count(self, n: int) -> int:
        """Those of the skew-symmetric matrix, then those of the shift."""
        return n * (n - 1) // 2 + n

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Rotate about the origin and shift."""
        rotation, shift = self._motion(self.per_node(state), state.x.shape[1])
        turned = None if state.shift is None else _apply(rotation, state.shift)
        return _shifted(state, _apply(rotation, state.x), turned, shift)

    def edge_shift(self, state: State) -> Tensor | None:
        """Rotated alike."""
        if state.edge_shift is None:
            return None
        rotation, _ = self._motion(self.per_edge(state), state.x.shape[1])
        return _apply(rotation, state.edge_shift)

    def _motion(self, coefficients: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Q `[rows, n, n]` and a `[rows, n]`."""
        turn, shift = coefficients[:, : n * (n - 1) // 2], coefficients[:, n * (n - 1) // 2 :]
        if n > 1:
            turn = turn * (10 / length(turn).clamp(min=10)).unsqueeze(-1)
        row, column = torch.triu_indices(n, n, 1, device=turn.device)
        skew = turn.new_zeros(turn.shape[0], n * n).index_copy(1, row * n + column, turn)
        skew = skew.unflatten(1, (n, n))
        # a single matrix goes through a series that is off by 5e-5 (pytorch issue 196592)
        pair = torch.cat([skew, skew[:1]])
        return torch.linalg.matrix_exp(pair - pair.mT)[:-1], shift


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
