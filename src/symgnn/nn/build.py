"""`build`: a model from the name of an architecture, or from a specification."""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

from symgnn.nn._engine.engine import engine_of
from symgnn.nn.architectures import ARCHITECTURES
from symgnn.nn.coordinate_maps import CoordinateMap, Rigid, Scale, Shift
from symgnn.nn.feature_checks import OPTIONS
from symgnn.nn.form import Width
from symgnn.nn.inputs import DOMAINS, VALUE_OF
from symgnn.nn.model import Model
from symgnn.nn.neighbour_maps import EGCN, NeighbourSum
from symgnn.nn.node_types import ATOMS
from symgnn.nn.part_maps import OTHER_MAPS
from symgnn.nn.peers import FORMULAS, PEERS
from symgnn.nn.rungs import RUNGS
from symgnn.nn.spec import ANSWERS, VECTOR_TASKS, Network, Spec, check_inputs, network_of
from symgnn.nn.state import Reference
from symgnn.nn.vectors import RAYS

AGGREGATIONS = ("sum", "mean", "max")
#: Movements for which an aggregation can be chosen; "pool" is that of the graph read-out.
MOVEMENTS = ("e->v", "a->v", "a->e", "v->u", "e->u", "a->u", "x->v", "x->e", "x->u", "pool")

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


def build(
    architecture: str | Spec | Network,
    *,
    task: str = "graph",
    outputs: int = 1,
    node_features: int = 0,
    edge_features: int = 0,
    angle_features: int = 0,
    graph_features: int = 0,
    node_types: int | str | None = None,
    dimension: int | None = None,
    hidden: int | Mapping[str, int] | None = None,
    layers: int | None = None,
    mlp_hidden: int | Mapping[str, int] | None = None,
    mlp_layers: int = 1,
    readout_layers: int | None = None,
    dropout: float = 0.0,
    aggregation: str | Mapping[str, str] | None = None,
    coordinate_map: str | CoordinateMap | None = None,
    graph_state: bool = True,
    scaling: float | None = None,
    chunk: int | None = None,
    rays: str | None = None,
    weight: float | str | None = None,
    engine: str | Reference = "fast",
    **options: Any,
) -> Model:
    """Build a graph network.

    Args:
        architecture: "gn", "dgn", "sdgn", "agn", "agn+edges", "agn+distances", "agn-to-edges",
            "agn-raw", "combined", "cgn"; "tgn", "stgn", "ugn", "ugn+flips"; "egnn",
            "schnet", "dimenet", "dimenet++", "isogcn"; "dimenet-formula", "isognn-formula"; or a
            :class:`Spec` or :class:`Network` of your own.
        task: "graph", "node" or "edge", for one row of outputs each; "coordinates", for points
            `[N, n]`; "node-vectors" or "graph-vectors", for vectors such as forces `[N, n]` or
            dipoles `[G, n]`, which turn with the coordinates and do not move with them.
        outputs: How many numbers come out: classes or regression targets; of vectors, how many
            vectors: k > 1 of them are `[N, k, n]` or `[G, k, n]`.
        node_features: Width of `data.x`. With 0, every node starts with the constant 1.
        edge_features: Width of `data.edge_attr`.
        angle_features: Width of `data.angle_attr`, in the order of `Topology.angle_index`.
        graph_features: Width of `data.u`.
        node_types: How many types `data.z` has: whole numbers from 0 to `node_types - 1`, one per
            node, such as atomic numbers; "atoms" is 119. Nodes then start with a learned vector
            for their type, `hidden` numbers wide, after `data.x` where there is any. None where
            `data.z` is not read. Networks that embed types anyway (SchNet, DimeNet) take it for
            their own number of types.
        dimension: The number of coordinates; only "gn", "tgn", "stgn" and the maps
            "shift", "rigid", "mirror" and "linear" need it.
        hidden: Width of the embeddings of nodes, edges, angles and graphs, 32 if not given, or
            one for each, such as `{"node": 64, "edge": 16}`.
        layers: How many blocks; 2 if not given.
        mlp_hidden: Width of the hidden layers of the MLPs; twice `hidden` if not given; or one
            for each of "angle", "edge", "node", "graph" and "coordinates".
        mlp_layers: How many hidden layers each MLP has.
        readout_layers: How many those of the read-out have; as many if not given.
        dropout: Rate of the dropout after each hidden layer.
        aggregation: "sum", "mean" or "max", or one for each movement, such as
            `{"e->v": "sum", "pool": "mean"}`; movements that are not named take "mean".
        coordinate_map: "identity" (if not given or None), "scale", "shift", "rigid", "mirror",
            "linear" (each also with coefficients of u: "scale-u", ...), "neighbour-sum",
            "part-sum" (within `data.part`), "egcn" (over all pairs), "egcn-neighbours", or a
            :class:`CoordinateMap`, of which each layer gets a copy.
        graph_state: Whether the graph has an embedding u of its own that each layer updates; with
            False, u is what `graph_features` give, and stays.
        scaling: The length to which "sdgn" scales the longest edge; 1 if not given.
        chunk: How many angles may be in memory at once; None for all.
        rays: What vectors are made of: "plain" rays (if not given) give vectors that grow with
            the coordinates, as displacements do; "unit" rays give vectors that do not, such as
            normals (see :class:`symgnn.nn.vectors.Vectors`).
        weight: The scaling dimension D of node outputs that are conformal fields, or "learned": a
            conformal map of local scale W multiplies them by `W^-D`, see
            :class:`symgnn.nn.ConformalField`. None for invariants.
        engine: "fast"; or "reference", which computes every update as it is written, and is what
            the fast one is tested against.
        options: What a peer's network takes besides, such as `cutoff` (see :mod:`symgnn.nn.peers`).
            A peer also has other defaults for the above, those of its own code.
    """
    types = None if node_types is None else count_of_types(node_types)
    network = network_named(architecture, options, types)
    spec = network.layer
    if scaling is not None:
        if spec.scaling is None:
            raise ValueError(f"scaling: {spec.name} does not scale its coordinates; use sdgn")
        spec = spec.replace(scaling=_positive("scaling", scaling))
    if not graph_state:
        spec = spec.without("graph")
    network = replace(network, layer=spec)
    task = _named("task", task, {name: name for name in ANSWERS})
    network.readout_of(task)  # raises if there is none
    if network.types:
        if check_count("node_features", node_features, 0):
            raise ValueError(
                f"node_features: is {node_features}, but {network.name} reads the types of nodes, "
                "data.z; leave it out"
            )
        node_features, types = 1, None
    features = {"v": node_features, "e": edge_features, "a": angle_features, "u": graph_features}
    psi = network.coordinate_map if coordinate_map is None else coordinate_map
    count = check_count("layers", network.layers if layers is None else layers, 1)
    maps = [coordinate_map_of(psi) for _ in range(count)]
    readable = {value[0] for value in network.reads} | (maps[0].reads if maps[0] else frozenset())
    for name, (value, size) in zip(OPTIONS, features.items(), strict=True):
        if check_count(name, size, 0) and value not in readable:
            raise ValueError(f"{name}: is {size}, but {spec.name} reads no {value}; leave it out")
    if types is not None and "v" not in readable:
        raise ValueError(f"node_types: is {types}, but {spec.name} reads no v; leave it out")
    check_inputs(network.start, "node_features", node_features)
    check_count("outputs", outputs, 1)
    check_count("mlp_layers", mlp_layers, 0)
    last_layers = mlp_layers if readout_layers is None else readout_layers
    check_count("readout_layers", last_layers, 0)
    if dimension is not None:
        check_count("dimension", dimension, 1)
    if chunk is not None:
        check_count("chunk", chunk, 1)
    if task == "coordinates" and maps[0] is None:
        raise ValueError(
            "coordinate_map: is 'identity', so coordinates would come out as they went in; "
            "use 'neighbour-sum' or 'egcn' for task='coordinates'"
        )
    if rays is not None:
        rays = _named("rays", rays, {name: name for name in RAYS})
        if task not in VECTOR_TASKS:
            raise ValueError(
                f"rays: is {rays!r}, but task={task!r} gives no vectors; leave rays out, or use "
                f"task={' or '.join(map(repr, VECTOR_TASKS))}"
            )
    if weight is not None and task != "node":
        raise ValueError(
            f"weight: is {weight!r}, but task={task!r}; conformal fields are on nodes, so use "
            "task='node'"
        )
    movements = aggregations(network.aggregation if aggregation is None else aggregation)
    if task == "graph-vectors" and movements["pool"] == "max":
        raise ValueError(
            "aggregation: pool is 'max', which depends on the axes of a vector; pass 'sum' or "
            "'mean' for it, such as aggregation={'pool': 'sum'}"
        )
    embedding = widths_of("hidden", network.hidden if hidden is None else hidden, network.hidden)
    if mlp_hidden is None:
        mlp_hidden = network.mlp_hidden
    if mlp_hidden is None:
        mlp_hidden = {place: 2 * size for place, size in embedding.items()}
    widths = widths_of("mlp_hidden", mlp_hidden, embedding)
    return Model(
        network,
        features=features,
        types=types,
        embedding={VALUE_OF[domain]: embedding[domain] for domain in DOMAINS},
        layers=count,
        width=Width(widths, mlp_layers, check_rate(dropout)),
        readout_layers=last_layers,
        aggregation=movements,
        coordinate_maps=maps,
        task=task,
        outputs=outputs,
        dimension=dimension,
        engine=engine_of(engine, chunk),
        rays=rays or "plain",
        weight=weight,
    )


def widths_of(
    name: str, given: int | Mapping[str, int], default: int | Mapping[str, int]
) -> dict[str, int]:
    """A width for each domain and the coordinates."""
    places = (*DOMAINS, "coordinates")
    if not isinstance(given, Mapping):
        return dict.fromkeys(places, check_count(name, given, 1))
    for place, size in given.items():
        _named(name, place, dict.fromkeys(places))
        check_count(f"{name}[{place!r}]", size, 1)
    rest = default if isinstance(default, Mapping) else dict.fromkeys(places, default)
    first = next(iter(given.values()))
    return {place: given.get(place, rest.get(place, first)) for place in places}


def count_of_types(node_types: int | str) -> int:
    """How many types of nodes there are, by number or name."""
    if isinstance(node_types, str):
        return int(_named("node_types", node_types, {"atoms": ATOMS}))
    return check_count("node_types", node_types, 1)


def network_named(
    architecture: str | Spec | Network, options: Mapping[str, Any], types: int | None = None
) -> Network:
    """A network by its name, or the one given; `types` is for a network that embeds them."""
    found: Any = architecture
    if isinstance(architecture, str):
        found = _named(
            "architecture", architecture, {**ARCHITECTURES, **RUNGS, **FORMULAS, **PEERS}
        )
    elif not isinstance(architecture, Spec | Network):
        raise TypeError(f"architecture: is {architecture!r}; give a name, a Spec or a Network")
    takes = list(inspect.signature(found).parameters) if callable(found) else []
    for option in options:
        if option not in takes:
            near = difflib.get_close_matches(option, takes + BUILD_OPTIONS, 1, 0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            name = architecture if isinstance(architecture, str) else architecture.name
            raise TypeError(f"build: {name} takes no option {option!r}{hint}")
    if types is not None and "types" in takes:
        if options.get("types", types) != types:
            raise ValueError(f"node_types: is {types}, but types is {options['types']}; give one")
        options = {**options, "types": types}
    return network_of(found(**options) if callable(found) else found)


def spec_of(architecture: str | Spec) -> Spec:
    """A specification by its name, or the one given."""
    return (
        architecture
        if isinstance(architecture, Spec)
        else _named("architecture", architecture, {**ARCHITECTURES, **RUNGS})
    )


def coordinate_map_of(coordinate_map: str | CoordinateMap) -> CoordinateMap | None:
    """A new map by its name, or a copy of the one given; None for the identity."""
    if isinstance(coordinate_map, CoordinateMap):
        return copy.deepcopy(coordinate_map)
    make = _named("coordinate_map", coordinate_map, {**COORDINATE_MAPS, **OTHER_MAPS})
    return make() if make else None


def aggregations(aggregation: str | Mapping[str, str]) -> dict[str, str]:
    """The aggregation of every movement."""
    chosen = dict.fromkeys(MOVEMENTS, "mean")
    if not isinstance(aggregation, Mapping):
        aggregation = dict.fromkeys(MOVEMENTS, aggregation)
    for movement, how in aggregation.items():
        _named("aggregation", movement, chosen)
        chosen[movement.lower()] = _named("aggregation", how, {a: a for a in AGGREGATIONS})
    return chosen


#: What `build` itself takes.
BUILD_OPTIONS = [
    name for name in inspect.signature(build).parameters if name not in ("architecture", "options")
]


def _named(field: str, name: Any, table: Mapping[str, Any]) -> Any:
    """The entry of a table, or an error that names the nearest right one."""
    if isinstance(name, str) and name.lower() in table:
        return table[name.lower()]
    near = difflib.get_close_matches(str(name).lower(), table, 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else "it is not known;"
    raise ValueError(f"{field}: {name!r}: {hint} choose from {', '.join(table)}")


def check_count(name: str, value: int, least: int) -> int:
    """A whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: is {value!r}; give a whole number of at least {least}")
    return int(value)


def check_rate(dropout: float) -> float:
    """A rate of dropout."""
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout: is {dropout}; give a rate from 0 to below 1")
    return dropout


def _positive(name: str, value: float) -> float:
    if not value > 0 or value == float("inf"):
        raise ValueError(f"{name}: is {value!r}; give a positive number")
    return float(value)
