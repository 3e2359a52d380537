"""What an update can read: values lifted to its domain, measures of coordinates, reductions.

The names are the paper's. In a specification they read as its formulas do::

    edge = [v.source, v.target, e, d2, u]  # phi^e(v_j, v_i, e_ji, |x_i - x_j|^2, u)
    node = [v, reduce(e), u]  # phi^v(v_i, rho({e_ji}), u)

Values are those of the moment: a block updates angle, edge, node, coordinates and graph in this
order, so an update reads the new values of what comes before it and the old ones of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from symgnn.geometry import measures
from symgnn.geometry.symmetry import ANGLES, LENGTHS, MOEBIUS, PERMUTATIONS, Symmetry

if TYPE_CHECKING:
    from symgnn.nn.state import State

#: Domains from fine to coarse, which is also the order of the updates.
DOMAINS = ("angle", "edge", "node", "graph")
VALUE_OF = {"angle": "a", "edge": "e", "node": "v", "graph": "u"}
DOMAIN_OF = {value: domain for domain, value in VALUE_OF.items()}

#: Where a source of a domain may stand in an update of another: (home, reader) -> places.
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
class Source:
    """Something that lives on `domain` and is read at `place` of the reading update.

    Where its function has parameters, `make` makes the function as a module. Equal sources are one
    input: a model has one module of it for all layers and places. Sources with equal names and
    different fields, such as `gaussians(10, 2.0)` and `gaussians(10, 50.0)`, are two inputs.
    """

    name: str
    domain: str
    place: str = ""
    make: Callable[[], nn.Module] | None = None

    def at(self, place: str) -> Source:
        """The same source, read at another place."""
        return replace(self, place=place)

    @property
    def home(self) -> Source:
        """The source where it lives, whatever the place it is read at: its identity."""
        return self.at("") if self.place else self

    source = property(lambda self: self.at("source"), doc="At the source node of an edge.")
    target = property(lambda self: self.at("target"), doc="At the target node of an edge.")
    vertex = property(lambda self: self.at("vertex"), doc="At the vertex of an angle.")
    first = property(lambda self: self.at("first"), doc="On the first ray of an angle.")
    second = property(lambda self: self.at("second"), doc="On the second ray of an angle.")

    @property
    def incoming(self) -> Source:
        """On a ray of an angle: of the edge that comes to the vertex, 0 where there is none."""
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
        """What it is invariant to; None for a value, which is as invariant as what made it."""
        return None

    def __repr__(self) -> str:
        return f"{self.name}.{self.place}" if self.place else self.name


@dataclass(frozen=True, repr=False)
class Measure(Source):
    """A quantity computed from coordinates, with the transformations that leave it as it is.

    Signature of `function`, by domain (n is the dimension, w the width; `[...]` may stand for
    `[..., 1]`):

    - node: `(x [N, n]) -> [N, w]`
    - edge: `(x_source [E, n], x_target [E, n]) -> [E, w]`; on a ray of an angle, the neighbour
      is the source and the vertex the target
    - angle: `(first [A, n], second [A, n]) -> [A, w]`, the rays from the vertex to the two
      neighbours, each first passed through `per_ray [R, n] -> [R, p]`, once per ray; where it
      gives a pair of tensors, one is for first rays and one for second rays

    What `make` gives may have `per_ray` as a method.

    With `both_ways`, a measure on edges is the same for an edge and its reverse, as lengths are: a
    form may then work on it once for both.

    With `grouped`, functions on angles and rays get two more arguments, the number of each
    one's vertex `[A]` or `[R]` and of all vertices, to compare what stands around one vertex.
    """

    function: Callable[..., Tensor] = torch.Tensor.clone
    symmetry: Symmetry = PERMUTATIONS
    width: int | None = 1  # None: as many as there are coordinates
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
class Operator(Source):
    """A node value made of v and, unless told otherwise, of the coordinates around, such as a
    derivative of v.

    Signature of `function`: `(v [N, w], state) -> [N, w]`; it may keep in `state.measured` what
    depends on coordinates alone.
    """

    function: Callable[[Tensor, State], Tensor] = lambda rows, state: rows
    symmetry: Symmetry = PERMUTATIONS
    of: str = "vx"

    @property
    def needs(self) -> frozenset[str]:
        """V and the coordinates, or as told."""
        return frozenset(self.of)

    @property
    def keeps(self) -> Symmetry:
        """As declared."""
        return self.symmetry


@dataclass(frozen=True, repr=False)
class Initial(Source):
    """A value as it came with the graph, whatever the updates have made of it since."""

    @property
    def reads(self) -> str:
        """Its own name: v0, e0, a0 or u0."""
        return f"{VALUE_OF[self.domain]}0"


@dataclass(frozen=True, repr=False)
class Reduction(Source):
    """The reduction of a source on a finer domain; `domain` is set by the update that reads it."""

    of: Source = Source("", "")

    @property
    def home(self) -> Source:
        """What is reduced."""
        return self.of

    @property
    def reads(self) -> str:
        """As what is reduced."""
        return self.of.reads

    @property
    def needs(self) -> frozenset[str]:
        """As what is reduced."""
        return self.of.needs

    @property
    def keeps(self) -> Symmetry | None:
        """As what is reduced."""
        return self.of.keeps

    def movement(self, to: str) -> str:
        """Its name, by which an aggregation is chosen: `e->v`, `a->u`, `x->u`, ..."""
        return f"{self.reads if self.reads == 'x' else VALUE_OF[self.of.domain]}->{VALUE_OF[to]}"


def initial(source: Source) -> Initial:
    """The value of v, e, a or u that came with the graph, in every layer."""
    if type(source) is not Source:
        raise ValueError(f"initial: takes v, e, a or u, not {source}")
    return Initial(f"{source.name}0", source.domain, source.place)


def reduce(source: Source, at: str = "") -> Reduction:
    """The reduction of `source` by sum, mean or max, as chosen for this movement.

    In an edge update `reduce(a, "target")` is over the angles whose vertex is the edge's target
    and whose first ray is the edge, and `reduce(a, "source")` the same at its other end.
    """
    if isinstance(source, Reduction) or source.place:
        raise ValueError(f"reduce: takes a source where it lives, such as e or theta, not {source}")
    return Reduction(f"reduce({source.name})", "", at, of=source)


@dataclass(frozen=True)
class Applied:
    """A function with its first arguments given, as `functools.partial`, but compared by value.

    Sources are compared by their functions: with this, the same basis made twice is one input.

    >>> Applied(pow, (2,)) == Applied(pow, (2,)), Applied(pow, (2,))(3)
    (True, 8)
    """

    function: Callable[..., Any]
    given: tuple[Any, ...]

    def __call__(self, *rest: Any) -> Any:
        return self.function(*self.given, *rest)


v = Source("v", "node")
e = Source("e", "edge")
a = Source("a", "angle")
u = Source("u", "graph")

#: Raw coordinates: they keep nothing but the order of the nodes free.
position = Measure("x", "node", function=torch.Tensor.clone, symmetry=PERMUTATIONS, width=None)
#: Squared edge lengths: every map that keeps the lengths of the edges leaves them as they are.
d2 = Measure("d2", "edge", function=measures.squared_distance, symmetry=LENGTHS, both_ways=True)
#: Angles: kept by every map that keeps the angles at the vertices.
theta = Measure(
    "theta",
    "angle",
    function=measures.angle_of_directions,
    symmetry=ANGLES,
    per_ray=measures.direction,
)
#: The Moebius invariant of a pair of rays; it depends on one vertex and its neighbours at a time,
#: and a torsion moves those rigidly, so torsions keep it too.
kappa = Measure(
    "kappa",
    "angle",
    function=measures.kappa_of_inverted,
    symmetry=MOEBIUS | Symmetry(["torsion"]),
    per_ray=measures.inverted_rays,
    grouped=True,
)
