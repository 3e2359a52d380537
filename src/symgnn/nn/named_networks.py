"""Networks, coordinate maps, aggregations and widths by the names that `build` takes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from symgnn._argument_checks import check_count, closest, named
from symgnn.nn.architectures import ARCHITECTURES
from symgnn.nn.coordinate_maps import CoordinateMap, Rigid, Scale, Shift
from symgnn.nn.directional import DIRECTIONAL
from symgnn.nn.filtered import FILTERED
from symgnn.nn.inputs import DOMAINS
from symgnn.nn.neighbour_maps import EGCN, NeighbourSum
from symgnn.nn.node_types import ATOMS
from symgnn.nn.part_maps import OTHER_MAPS
from symgnn.nn.peers import FORMULAS, PEERS
from symgnn.nn.rungs import RUNGS
from symgnn.nn.spec import Network, Spec, network_of
from symgnn.nn.variants import SEPARABLE, variant_of

AGGREGATIONS = ("sum", "mean", "max")
#: Movements for which an aggregation can be chosen; "pool" is that of the graph read-out.
MOVEMENTS = ("e->v", "a->v", "a->e", "v->u", "e->u", "a->u", "x->v", "x->e", "x->u", "pool")

#: The blocks by name; peers are networks with options of their own.
BLOCKS: dict[str, Any] = {**ARCHITECTURES, **SEPARABLE, **FILTERED, **DIRECTIONAL, **RUNGS}

#: The coordinate maps by the names that `build` takes; None for the identity.
COORDINATE_MAPS: dict[str, Callable[[], CoordinateMap] | None] = {
    "identity": None,
    "scale": Scale,
    "scale-u": lambda: Scale(of="u"),
    "shift": Shift,
    "shift-u": lambda: Shift(of="u"),
    "rigid": Rigid,
    "rigid-u": lambda: Rigid(of="u"),
    "neighbour-sum": NeighbourSum,
    "egcn": EGCN,
    "egcn-neighbours": lambda: EGCN(over="neighbours"),
}


def network_named(
    architecture: str | Spec | Network,
    options: Mapping[str, Any],
    types: int | None = None,
    dimension: int | None = None,
    others: Sequence[str] = (),
) -> Network:
    """A network by its name, or the one given.

    Args:
        architecture: The name.
        options: Those of the network.
        types: The number of node types, for a network that embeds them.
        dimension: Of the coordinates, where a variant needs it.
        others: Options that a wrong name may have meant as well.
    """
    found: Any = architecture
    if isinstance(architecture, str):
        found = named("architecture", architecture, {**BLOCKS, **FORMULAS, **PEERS})
    elif not isinstance(architecture, Spec | Network):
        raise TypeError(f"architecture: is {architecture!r}; give a name, a Spec or a Network")
    if isinstance(found, Spec):
        found = partial(variant_of, found, dimension=dimension)
    takes = list(inspect.signature(found).parameters) if callable(found) else []
    for option in options:
        if option not in takes:
            near = closest(option, [*takes, *others])
            hint = f"; did you mean {near!r}?" if near else ""
            name = architecture if isinstance(architecture, str) else architecture.name
            raise TypeError(f"build: {name} takes no option {option!r}{hint}")
    if types is not None and "types" in takes:
        if options.get("types", types) != types:
            raise ValueError(f"node_types: is {types}, but types is {options['types']}; give one")
        options = {**options, "types": types}
    return network_of(found(**options) if callable(found) else found)


def own_options(architecture: Any) -> list[str]:
    """The options of a peer's network, which may have the names of those of `build`."""
    peers = {**FORMULAS, **PEERS}
    peer = peers.get(architecture.lower()) if isinstance(architecture, str) else None
    return list(inspect.signature(peer).parameters) if callable(peer) else []


def spec_of(architecture: str | Spec) -> Spec:
    """A specification by its name, or the one given."""
    if isinstance(architecture, Spec):
        return architecture
    return named("architecture", architecture, BLOCKS)


def coordinate_map_of(coordinate_map: str | CoordinateMap) -> CoordinateMap | None:
    """A new map by its name, or a copy of the one given; None for the identity."""
    if isinstance(coordinate_map, CoordinateMap):
        return copy.deepcopy(coordinate_map)
    make = named("coordinate_map", coordinate_map, {**COORDINATE_MAPS, **OTHER_MAPS})
    return make() if make else None


def aggregations(aggregation: str | Mapping[str, str]) -> dict[str, str]:
    """The aggregation of every movement."""
    chosen = dict.fromkeys(MOVEMENTS, "sum")
    if not isinstance(aggregation, Mapping):
        aggregation = dict.fromkeys(MOVEMENTS, aggregation)
    for movement, how in aggregation.items():
        named("aggregation", movement, chosen)
        chosen[movement.lower()] = named("aggregation", how, {a: a for a in AGGREGATIONS})
    return chosen


def widths_of(
    name: str, given: int | Mapping[str, int], default: int | Mapping[str, int]
) -> dict[str, int]:
    """A width for each domain and the coordinates."""
    places = (*DOMAINS, "coordinates")
    if not isinstance(given, Mapping):
        return dict.fromkeys(places, check_count(name, given, 1))
    for place, size in given.items():
        named(name, place, dict.fromkeys(places))
        check_count(f"{name}[{place!r}]", size, 1)
    rest = default if isinstance(default, Mapping) else dict.fromkeys(places, default)
    first = next(iter(given.values()))
    return {place: given.get(place, rest.get(place, first)) for place in places}


def count_of_types(node_types: int | str) -> int:
    """How many types of nodes there are, by number or name."""
    if isinstance(node_types, str):
        return int(named("node_types", node_types, {"atoms": ATOMS}))
    return check_count("node_types", node_types, 1)
