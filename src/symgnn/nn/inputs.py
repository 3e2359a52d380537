"""Inputs of updates, from which specifications are written.

An input is a value (v, e, a, u) or a measure of the coordinates. It lives on one domain and is read
at a place of another domain. The names are the paper's, and a specification mirrors its formulas::

    edge = [v.source, v.target, e, d2, u]  # phi^e(v_j, v_i, e_ji, |x_i - x_j|^2, u)
    node = [v, reduce(e), u]  # phi^v(v_i, rho({e_ji}), u)

An update reads current values: a block updates angle, edge, node, coordinates and graph in this
order, so an update reads the new values of earlier steps and the old values of later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from symgnn.geometry import measures
from symgnn.geometry.symmetry import ANGLES, LENGTHS, MOEBIUS, PERMUTATIONS, STARS, Symmetry

if TYPE_CHECKING:
    from symgnn.nn.state import State

#: Domains from fine to coarse, which is also the order of the updates.
DOMAINS = ("angle", "edge", "node", "graph")
VALUE_OF = {"angle": "a", "edge": "e", "node": "v", "graph": "u"}
DOMAIN_OF = {value: domain for domain, value in VALUE_OF.items()}

#: The places at which an update may read an input: (domain of the input, of the update) -> places.
PLACES: dict[tuple[str, str], tuple[str, ...]] = {
    ("angle", "angle"): ("",),
    ("edge", "angle"): ("first", "second", "first in", "second in"),
    ("node", "angle"): ("vertex", "first", "second"),
    ("graph", "angle"): ("",),
    ("edge", "edge"): ("",),
    ("node", "edge"): ("source", "target"),
    ("graph", "edge"): ("",),
    ("node", "node"): ("",),
    ("graph", "node"): ("",),
    ("graph", "graph"): ("",),
}


@dataclass(frozen=True)
class Input:
    """A quantity on `domain`, read at `place` of the update that reads it.

    Two inputs are equal if all their fields except the place are equal; a model has one module for
    an input in all layers and places. Bases with different sizes or cutoffs, such as
    `gaussians(10, 2.0)` and `gaussians(10, 50.0)`, are different inputs with the same name.

    Args:
        name: The name in specifications and messages.
        domain: "angle", "edge", "node" or "graph".
        place: One of `PLACES` for its domain and that of the update; "" on the same domain.
        make: Creates the function of the input as a module, if it has parameters; a model has
            one such module for all its layers.
    """

    name: str
    domain: str
    place: str = ""
    make: Callable[[], nn.Module] | None = None

    def at(self, place: str) -> Input:
        """The same input, read at another place."""
        return self if place == self.place else replace(self, place=place)

    @property
    def home(self) -> Input:
        """The input on its own domain, regardless of the place; used to compare inputs."""
        return self.at("")

    source = property(lambda self: self.at("source"), doc="At the source node of an edge.")
    target = property(lambda self: self.at("target"), doc="At the target node of an edge.")
    vertex = property(lambda self: self.at("vertex"), doc="At the vertex of an angle.")
    first = property(lambda self: self.at("first"), doc="On the first ray of an angle.")
    second = property(lambda self: self.at("second"), doc="On the second ray of an angle.")

    @property
    def incoming(self) -> Input:
        """On a ray of an angle: the value of the edge into the vertex, 0 if there is none."""
        return self.at(f"{self.place} in")

    @property
    def reads(self) -> str:
        """Which of v, e, a, u, x it depends on."""
        return VALUE_OF[self.domain]

    @property
    def needs(self) -> frozenset[str]:
        """All of v, e, a, u, x that it depends on."""
        return frozenset([self.reads])

    @property
    def keeps(self) -> Symmetry | None:
        """The transformations that leave it unchanged.

        None for state values; their symmetry follows from the updates that produced them.
        """
        return None

    def __repr__(self) -> str:
        return f"{self.name}.{self.place}" if self.place else self.name


@dataclass(frozen=True, repr=False)
class Measure(Input):
    """A quantity computed from coordinates, with the transformations that leave it unchanged.

    Signature of `function`, by domain (n is the dimension, w the width; `[...]` may stand for
    `[..., 1]`):

    - node: `(x [N, n]) -> [N, w]`
    - edge: `(x_source [E, n], x_target [E, n]) -> [E, w]`; on a ray of an angle, the neighbour
      is the source and the vertex the target
    - angle: `(first [A, n], second [A, n]) -> [A, w]`, the rays from the vertex to the two
      neighbours

    Args:
        function: As above.
        symmetry: The transformations that leave the measure unchanged.
        width: The number of columns w; None for the dimension n.
        per_ray: For angles: a function `[R, n] -> [R, p]` that is applied to each ray before
            `function`, once per ray. It may return a pair, for first rays and for second rays. The
            module that `make` creates may have it as a method.
        grouped: For angles: `function` and `per_ray` get two more arguments, the vertex of each
            angle `[A]` or ray `[R]` and the number of vertices, for measures that compare the rays
            of a vertex.
        both_ways: For edges: the measure is equal for an edge and its reverse, like a length,
            so it may be computed once for both.
    """

    function: Callable[..., Tensor] = torch.Tensor.clone
    symmetry: Symmetry = PERMUTATIONS
    width: int | None = 1
    per_ray: Callable[..., Tensor] | None = None
    grouped: bool = False
    both_ways: bool = False

    @property
    def reads(self) -> str:
        """Coordinates."""
        return "x"

    @property
    def keeps(self) -> Symmetry:
        """As declared."""
        return self.symmetry


@dataclass(frozen=True, repr=False)
class Operator(Input):
    """A node value computed from v and, by default, from the coordinates, such as a derivative.

    Signature of `function`: `(v [N, w], state) -> [N, w]`; it may cache results that depend on
    coordinates alone in `state.measured`. If its result is not as wide as v, `width_in` computes
    the width from the widths of all values and the dimension. `fades` states that the contribution
    of an edge goes to 0 with the value of the edge.
    """

    function: Callable[[Tensor, State], Tensor] = lambda rows, state: rows
    symmetry: Symmetry = PERMUTATIONS
    of: str = "vx"
    width_in: Callable[[Mapping[str, int], int | None], int] | None = None
    fades: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """The names in `of`."""
        return frozenset(self.of)

    @property
    def keeps(self) -> Symmetry:
        """As declared."""
        return self.symmetry


@dataclass(frozen=True, repr=False)
class Initial(Input):
    """A value as it came with the graph, in every layer."""

    @property
    def reads(self) -> str:
        """Its own name: v0, e0, a0 or u0."""
        return f"{VALUE_OF[self.domain]}0"


@dataclass(frozen=True, repr=False)
class Reduction(Input):
    """The reduction of an input on a finer domain; `domain` is set by the update that reads it."""

    of: Input = Input("", "")

    @property
    def home(self) -> Input:
        """The input that is reduced."""
        return self.of

    @property
    def reads(self) -> str:
        """As the reduced input."""
        return self.of.reads

    @property
    def needs(self) -> frozenset[str]:
        """As the reduced input."""
        return self.of.needs

    @property
    def keeps(self) -> Symmetry | None:
        """As the reduced input."""
        return self.of.keeps

    def movement(self, to: str) -> str:
        """Its name, by which an aggregation is chosen: `e->v`, `a->u`, `x->u`, ..."""
        return f"{self.reads if self.reads == 'x' else VALUE_OF[self.of.domain]}->{VALUE_OF[to]}"


@dataclass(frozen=True)
class Applied:
    """A function with its first arguments fixed, like `functools.partial`, but compared by value.

    Inputs are compared by their functions: with this class, the same basis created twice is one
    input.

    >>> Applied(pow, (2,)) == Applied(pow, (2,)), Applied(pow, (2,))(3)
    (True, 8)
    """

    function: Callable[..., Any]
    given: tuple[Any, ...]

    def __call__(self, *rest: Any) -> Any:
        """The function of all arguments."""
        return self.function(*self.given, *rest)


def initial(value: Input) -> Initial:
    """The initial value of v, e, a or u (the features of the input graph), in every layer.

    Args:
        value: One of the inputs `v`, `e`, `a` and `u`, at the place where it is read.

    Returns:
        An input.

    Example:
        >>> from symgnn.nn.inputs import e, v
        >>> spec = symgnn.nn.Spec("mine", edge=[v.source, symgnn.nn.initial(e)], node=[v])
        >>> str(spec.edge[1])
        'e0'
    """
    if type(value) is not Input:
        raise ValueError(f"initial: takes v, e, a or u, not {value}")
    return Initial(f"{value.name}0", value.domain, value.place)


def reduce(value: Input, at: str = "") -> Reduction:
    """The aggregation of an input by sum, mean or max, as chosen for this movement.

    In an edge update, `reduce(a, "target")` aggregates the angles whose vertex is the edge's target
    and whose first ray is the edge; `reduce(a, "source")` does the same at the edge's source.

    Args:
        value: The input that is aggregated, such as `e` in a node update.
        at: "source" or "target", for angles in an edge update.

    Returns:
        An input.

    Example:
        >>> from symgnn.nn.inputs import e, v
        >>> spec = symgnn.nn.Spec("mine", edge=[v.source], node=[v, symgnn.nn.reduce(e)])
        >>> print(symgnn.nn.build(spec, node_features=1).symmetry)
        every map of the coordinates, permutations
    """
    if isinstance(value, Reduction) or value.place:
        raise ValueError(f"reduce: takes an input without a place, such as e or theta, not {value}")
    return Reduction(f"reduce({value.name})", "", at, of=value)


#: The value of a node.
v = Input("v", "node")
#: The value of an edge.
e = Input("e", "edge")
#: The value of an angle.
a = Input("a", "angle")
#: The value of a graph.
u = Input("u", "graph")

#: Raw coordinates: no transformation but a new order of the nodes leaves them unchanged.
position = Measure("x", "node", function=torch.Tensor.clone, symmetry=PERMUTATIONS, width=None)
#: Squared edge lengths: unchanged by every map that keeps the lengths of the edges.
d2 = Measure("d2", "edge", function=measures.squared_distance, symmetry=LENGTHS, both_ways=True)
#: Angles: unchanged by every map that keeps the angles at the vertices.
theta = Measure(
    "theta",
    "angle",
    function=measures.angle_of_directions,
    symmetry=ANGLES,
    per_ray=measures.direction,
)
#: The Moebius invariant of a pair of rays. It depends on one vertex and its neighbours at a time,
#: and torsions and motions of parts move those rigidly, so they keep it too.
kappa = Measure(
    "kappa",
    "angle",
    function=measures.kappa_of_inverted,
    symmetry=MOEBIUS | STARS,
    per_ray=measures.inverted_rays,
    grouped=True,
)
