"""The plan of an update: everything that does not depend on the graph, made once in `__init__`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from symgnn.nn.form import MLP, After, Form
from symgnn.nn.inputs import Input, Measure, Reduction, a

if TYPE_CHECKING:
    from symgnn.nn.separable import Separable
    from symgnn.nn.update import Update


class Term(NamedTuple):
    """A value that an update reads, at one place or several."""

    home: Input  # the input without its place, or the reduction
    inputs: tuple[int | None, ...]  # for each place, the number of the input; None if not read
    incoming: bool = False  # on rays: of the edge that comes to the vertex
    how: str = ""  # of reductions: sum, mean or max

    @property
    def first(self) -> int:
        """The number of the first input."""
        return next(number for number in self.inputs if number is not None)


@dataclass(frozen=True)
class Plan:
    """How an update is computed.

    Of an update whose form is additive (its second half depends on the sum of the first halves
    only, as that of an MLP), `own`, `graph`, `node` and `ray` are its inputs by where they are
    mapped. The results are added on the way up: graphs to nodes, nodes to edges or rays, rays to
    angles.
    """

    additive: bool
    concatenates: bool  # whether all inputs are read by nodes, edges or graphs, and there are some
    homes: tuple[Input, ...]  # each input without its place

    own: tuple[Term, ...]  # on the domain of the update, reductions among them
    graph: tuple[Term, ...]
    node: tuple[Term, ...]
    ray: tuple[Term, ...]
    places: int  # how many times the hidden width a node adds: one for each place
    ends: int  # 2 if both ends of an edge, or both rays of an angle, are read; else 1
    climbs: bool  # whether anything comes from a coarser domain
    folds: bool  # whether the last map is better multiplied by the maps of its readers
    tiles: bool  # whether there is a way in tiles
    rows_read: bool  # whether the result is read other than by sums and means
    on_lines: bool  # whether the first half is the same for an edge and its reverse
    has_total: bool  # whether the form has a faster sum over second rays
    on_rays: bool  # whether it is a product of factors of the rays, see :class:`Form`
    factors: int  # how many different factors: 2, or 1 if both rays are mapped alike; else 0
    plain: bool  # whether nothing is done to the result
    adds: bool  # whether the old value is added to it, by terms (see `LazyValues`), and no more


#: Up to how many layers a value that adds to its old one is kept as a sum of terms, each with its
#: own last map: a reader multiplies every term, L (L - 1) / 2 products in L layers, where making
#: the rows and reading them takes 2 (L - 1).
TERMS = 4


def plan_of(update: Update) -> Plan:
    """The plan of an update."""
    phi, domain = update.phi, update.domain
    mlp = update.is_mlp
    reads = list(enumerate(update.inputs)) if mlp else []
    two = any(
        given.place.startswith(("source", "second"))
        for _, given in reads
        if not isinstance(given, Reduction)
    )
    slots = {
        "edge": {"target": 0, "source": 1} if two else {"target": 0},
        "angle": {"vertex": 0, "first": 2, "second": 3} if two else {"vertex": 0, "first": 1},
    }.get(domain, {})
    places = {"edge": 2 if two else 1, "angle": 4 if two else 2}.get(domain, 1)
    own, graph = [], []
    node: list[tuple[Input, int, int, bool]] = []
    ray: list[tuple[Input, int, int, bool]] = []
    for number, given in reads:
        home = given if isinstance(given, Reduction) else given.home
        if given.domain == domain:
            how = update.how(given) if isinstance(given, Reduction) else ""
            own.append(Term(home, (number,), how=how))
        elif given.domain == "graph":
            graph.append(Term(home, (number,)))
        elif given.domain == "node":
            node.append((home, slots[given.place], number, False))
        else:
            place, _, incoming = given.place.partition(" ")
            ray.append((home, int(place == "second"), number, bool(incoming)))
    of_nodes, of_rays, factors = places, 2 if two else 1, 0
    if phi.on_rays:
        factors = 1 if cast("Separable", phi).tied else 2
        graph, node, ray = _factors(update.inputs, factors)
        of_nodes, of_rays = 2 * factors, factors
    nodes, rays = _grouped(node, of_nodes), _grouped(ray, of_rays)
    last = phi.last if isinstance(phi, MLP) and mlp else None
    plain = update.after == After()
    adds = (
        domain in ("edge", "angle")
        and last is not None
        and update.after == After(residual=True)
        and update.depth <= TERMS
    )
    return Plan(
        mlp,
        mlp and domain != "angle" and bool(reads),
        tuple(each.home for each in update.inputs),
        tuple(own),
        tuple(graph),
        nodes,
        rays,
        2 if phi.on_rays else places,
        2 if two else 1,
        bool(graph or nodes or rays),
        domain in ("edge", "angle")
        and last is not None
        and last.in_features <= last.out_features
        and (plain or adds),
        domain == "angle"
        and update.envelope is None
        and isinstance(phi, MLP)
        and mlp
        and type(phi).finish is MLP.finish
        and len(phi.linears) == 2,
        update.rows_read or not (plain or adds),
        _on_lines(update),
        domain == "angle" and type(phi).total is not Form.total,
        phi.on_rays,
        factors,
        plain,
        adds,
    )


def lists_angles(updates: Sequence[Update]) -> bool:
    """Whether updates of a block read or make the values of single angles."""
    made = [update for update in updates if update.domain == "angle"]
    read = [each.of for update in updates for each in update.inputs if isinstance(each, Reduction)]
    return any(not update.plan.on_rays for update in made) or any(
        each.domain == "angle" and (each != a or not made) for each in read
    )


#: The inputs that nodes or rays are read for: the input, its place, its map, if incoming.
Reads = list[tuple[Input, int, int, bool]]


def _factors(inputs: Sequence[Input], factors: int) -> tuple[list[Term], Reads, Reads]:
    """The inputs of a form on rays: of graphs, of nodes and of rays.

    Its maps are those of g and of h for each input, one after the other. A node has four places:
    as the vertex for g and h, as the neighbour for g and h. Where g and h are one factor, it has
    two, and what the second ray reads is what the first does.
    """
    graph: list[Term] = []
    node: Reads = []
    ray: Reads = []
    for number, given in enumerate(inputs):
        place, _, incoming = given.place.partition(" ")
        read_by = {"first": (0,), "second": (1,)}.get(place, (0, 1))
        halves = [half for half in read_by if half < factors]
        if given.domain == "graph":
            graph.append(Term(given.home, tuple(2 * number + half for half in halves)))
        elif given.domain == "node":
            first = 0 if place == "vertex" else factors
            node += [(given.home, first + half, 2 * number + half, False) for half in halves]
        elif given.domain == "edge":
            ray += [(given.home, half, 2 * number + half, bool(incoming)) for half in halves]
    return graph, node, ray


def _grouped(reads: Sequence[tuple[Input, int, int, bool]], places: int) -> tuple[Term, ...]:
    """One term for all places of an input; another where it is read twice at one place."""
    found: list[tuple[Input, bool, list[int | None]]] = []
    for home, slot, number, incoming in reads:
        for other, into, taken in found:
            if (other, into) == (home, incoming) and taken[slot] is None:
                taken[slot] = number
                break
        else:
            new: list[int | None] = [None] * places
            new[slot] = number
            found.append((home, incoming, new))
    return tuple(Term(home, tuple(taken), incoming) for home, incoming, taken in found)


def _on_lines(update: Update) -> bool:
    """Whether everything that a form reads of edges is the same for an edge and its reverse, so
    that its first half needs to be computed only once for both, and is worth matching them.
    """
    own = [given for given in update.inputs if given.domain == "edge"]
    return (
        update.domain == "edge"
        and not update.is_mlp
        and update.phi.on_lines
        and type(update.phi).home is not Form.home
        and bool(own)
        and all(isinstance(given, Measure) and given.both_ways for given in own)
    )
