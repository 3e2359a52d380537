"""Handedness: node inputs that change sign under reflections, in any dimension n.

The first moment of a value (of an edge or of its source) at a node is a vector: the sum of the
directions of the d edges that end at the node, weighted by the value and divided by the square root
of d. The determinant of n such vectors, each with its own learned weights, is invariant to
rotations and changes its sign under reflections.

Equal weights give parallel vectors, so only the differences between the edges of a node matter.
Therefore values are taken relative to their mean over these edges and divided by their root mean
square deviation. Determinants then have the size 1, regardless of the size of the values and the
number of edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from symgnn.geometry.conformal_rays import conformal_rays
from symgnn.geometry.measures import at_least_float32, direction
from symgnn.geometry.symmetry import ANGLES, MOEBIUS, REVERSING, STARS, Symmetry
from symgnn.nn.form import MLP, Width, linear
from symgnn.nn.inputs import Applied, Input, Operator, kappa
from symgnn.nn.separable import conformal_product
from symgnn.nn.spec import Spec
from symgnn.nn.state import State

if TYPE_CHECKING:
    from symgnn.nn.update import Update


#: Added to the variance of values before the root is taken.
EPSILON = 1e-6


def determinant(vectors: Tensor) -> Tensor:
    """The determinant of n vectors of n numbers, `[..., n, n] -> [...]`.

    By minors, as a polynomial: all its derivatives are finite, also where it is 0.

    Example:
        >>> determinant(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(-2.)
    """
    n = vectors.shape[-1]
    minors: dict[tuple[int, ...], Tensor] = {
        (column,): vectors[..., 0, column] for column in range(n)
    }
    for row in range(1, n):
        grown: dict[tuple[int, ...], Tensor] = {}
        for columns in combinations(range(n), row + 1):
            total = None
            for k, column in enumerate(columns):
                rest = columns[:k] + columns[k + 1 :]
                term = vectors[..., row, column] * minors[rest]
                term = term if (row - k) % 2 == 0 else -term
                total = term if total is None else total + term
            assert total is not None
            grown[columns] = total
        minors = grown
    return minors[tuple(range(n))]


def first_moments(conformal: bool, rows: Tensor, state: State) -> Tensor:
    """The first moments of 1, of v at the source and of e, over the edges that end at each node.

    Values are centred and normalised over these edges, all together.

    Args:
        conformal: Whether the directions are those of :func:`conformal_rays`.
        rows: v, `[N, w]`.
        state: With the edges and the coordinates.

    Returns:
        `[N, n * (1 + w + width of e)]`, one vector after the other.
    """
    topology, engine = state.topology, state.engine
    key = ("directions", conformal)
    if key not in state.measured:
        rays = state.rays
        around = (topology.edge_index[1], topology.num_nodes)
        state.measured[key] = conformal_rays(rays, *around) if conformal else direction(rays)
    vectors: Tensor = state.measured[key]
    values = [engine.gather(at_least_float32(rows), topology.edges.source)]
    if state.e is not None:
        values.append(at_least_float32(state.e.rows))
    kind = torch.promote_types(vectors.dtype, values[0].dtype)
    vectors = vectors.to(kind)
    target, count = (
        topology.edges.target,
        topology.edges_of_node.clamp(min=1).unsqueeze(-1).to(kind),
    )
    weights = torch.cat([each.to(kind) for each in values], 1)
    weights = weights - engine.gather(engine.total(weights, target) / count, target)
    variance = engine.total(weights.square().mean(1, keepdim=True), target) / count
    weights = weights * engine.gather((variance + EPSILON).rsqrt(), target)
    weights = torch.cat([vectors.new_ones(vectors.shape[0], 1), weights], 1)
    moments = (weights.unsqueeze(2) * vectors.unsqueeze(1)).flatten(1)
    return engine.total(moments, target) / count.sqrt()


def _width(dimension: int, sizes: Mapping[str, int], _: int | None) -> int:
    return dimension * (1 + sizes["v"] + sizes["e"])


def moments_input(dimension: int, conformal: bool = False) -> Operator:
    """The first moments as an input of node updates that are :class:`Chiral`."""
    kept = (MOEBIUS | STARS if conformal else ANGLES) - REVERSING
    if dimension == 2:  # in the plane, a torsion mirrors one side of the graph
        kept -= Symmetry(["torsion", "part-motion"])
    return Operator(
        "moments",
        "node",
        function=Applied(first_moments, (conformal,)),
        symmetry=kept,
        of="vex",
        width_in=Applied(_width, (dimension,)),
    )


class Chiral(MLP):
    """An MLP that reads determinants of learned combinations of the first moments.

    There are as many determinants as numbers come out.

    Args:
        widths, out, hidden: As those of an MLP.
        inputs: What is read, the first moments among it.
        width: The number of hidden layers, and their dropout.
        dimension: The number of coordinates n.

    Shapes:
        `weights [n * out, 1 + w + width of e]`.
    """

    takes_update = True

    def __init__(
        self,
        widths: Sequence[int],
        out: int,
        hidden: int,
        inputs: Sequence[Input],
        width: Width,
        dimension: int,
    ) -> None:
        place = next(k for k, each in enumerate(inputs) if each.name == "moments")
        read = [out if k == place else width for k, width in enumerate(widths)]
        super().__init__(read, out, hidden, layers=width.layers, dropout=width.dropout)
        self.place, self.dimension = place, dimension
        self.weights = nn.Parameter(torch.empty(dimension * out, widths[place] // dimension))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initialise all weights."""
        for each in self.linears:
            each.reset_parameters()  # type: ignore[operator]
        nn.init.normal_(self.weights, std=self.weights.shape[1] ** -0.5)

    def home(self, *values: Tensor) -> list[Tensor]:
        """As that of an MLP, with determinants in place of the first moments."""
        return super().home(
            *(self.handedness(v) if k == self.place else v for k, v in enumerate(values))
        )

    def handedness(self, moments: Tensor) -> Tensor:
        """The determinants `[N, out]` of the first moments `[N, n * (1 + w + width of e)]`."""
        n = self.dimension
        with torch.autocast(moments.device.type, enabled=False):
            moments = at_least_float32(moments)
            vectors = moments.unflatten(1, (moments.shape[1] // n, n)).mT  # [N, n, values]
            mixed = linear(vectors, self.weights.to(moments.dtype))  # [N, n, n * out]
            return determinant(mixed.unflatten(2, (n, self.out)).permute(0, 3, 2, 1))


@dataclass(frozen=True)
class ChiralForm:
    """Makes a :class:`Chiral`, as the form of a node update in a :class:`Spec`."""

    dimension: int
    takes_update: ClassVar[bool] = True

    def __call__(
        self,
        widths: Sequence[int],
        out: int,
        hidden: int,
        *,
        update: Update,
        width: Width,
    ) -> Chiral:
        """The form of the inputs of an update."""
        return Chiral(widths, out, hidden, update.inputs, width, self.dimension)


def chiral(spec: Spec, dimension: int | None) -> Spec:
    """A specification whose nodes read the handedness of their neighbours.

    The symmetry loses reflections, and of conformal blocks inversions, which reverse orientation
    too. In the plane it also loses torsions, which mirror one side of the graph there.

    Args:
        spec: Any specification with a node update that is an MLP, such as `AGN`.
        dimension: The number of coordinates.

    Returns:
        The specification `NAME-chiral`.

    Example:
        >>> from symgnn.nn import AGN
        >>> chiral(AGN, 3).node
        (v, reduce(e), reduce(a), u, moments)
    """
    if dimension is None:
        raise ValueError(
            "dimension: chiral=True takes determinants of as many vectors as there are "
            "coordinates; pass dimension=3"
        )
    if not spec.node or "node" in spec.forms:
        raise ValueError(
            f"chiral: {spec.name} has no node update that is an MLP, which would read handedness"
        )
    conformal = any(each.home in (conformal_product, kappa) for each in spec.angle)
    node = [*spec.node, moments_input(dimension, conformal)]
    forms = {**spec.forms, "node": ChiralForm(dimension)}
    return spec.replace(name=f"{spec.name}-chiral", node=node, forms=forms)
