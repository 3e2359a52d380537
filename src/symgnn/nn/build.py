"""`build`: a model from the name of an architecture, or from a specification."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any

from symgnn.nn.architectures import ARCHITECTURES
from symgnn.nn.coordinate_maps import EGCN, CoordinateMap, NeighbourSum, Rigid, Scale, Shift
from symgnn.nn.model import TASKS, Model
from symgnn.nn.spec import Spec
from symgnn.nn.update import Width

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
    architecture: str | Spec,
    *,
    task: str = "graph",
    outputs: int = 1,
    node_features: int = 0,
    edge_features: int = 0,
    angle_features: int = 0,
    graph_features: int = 0,
    dimension: int | None = None,
    hidden: int = 32,
    layers: int = 2,
    mlp_hidden: int | None = None,
    mlp_layers: int = 1,
    dropout: float = 0.0,
    aggregation: str | Mapping[str, str] = "mean",
    coordinate_map: str | CoordinateMap = "identity",
    graph_state: bool = True,
    scaling: float | None = None,
    chunk: int | None = None,
) -> Model:
    """Build a graph network.

    Args:
        architecture: "gn", "dgn", "sdgn", "agn", "agn+edges", "agn+distances", "agn-to-edges",
            "agn-raw", "combined", "cgn", or a :class:`Spec` of your own.
        task: "graph", "node" or "edge", for one row of outputs each, or "coordinates".
        outputs: How many numbers come out: classes or regression targets.
        node_features: Width of `data.x`. With 0, every node starts with the constant 1.
        edge_features: Width of `data.edge_attr`.
        angle_features: Width of `data.angle_attr`, in the order of `Topology.angle_index`.
        graph_features: Width of `data.u`.
        dimension: The number of coordinates; only "gn" and the maps "shift" and "rigid" need it.
        hidden: Width of the embeddings of nodes, edges, angles and graphs.
        layers: How many blocks.
        mlp_hidden: Width of the hidden layers of the MLPs; twice `hidden` if not given.
        mlp_layers: How many hidden layers each MLP has.
        dropout: Rate of the dropout after each hidden layer.
        aggregation: "sum", "mean" or "max", or one for each movement, such as
            `{"e->v": "sum", "pool": "mean"}`; movements that are not named take "mean".
        coordinate_map: "identity", "scale", "shift", "rigid" (each also with coefficients of u:
            "scale-u", ...), "neighbour-sum", "egcn" (over all pairs), "egcn-neighbours", or a
            :class:`CoordinateMap`, of which each layer gets a copy.
        graph_state: Whether the graph has an embedding u of its own that each layer updates; with
            False, u is what `graph_features` give, and stays.
        scaling: The length to which "sdgn" scales the longest edge; 1 if not given.
        chunk: How many angles may be in memory at once; None for all.
    """
    spec = spec_of(architecture)
    if scaling is not None:
        if spec.scaling is None:
            raise ValueError(f"scaling: {spec.name} does not scale its coordinates; use sdgn")
        spec = spec.but(scaling=_positive("scaling", scaling))
    if not graph_state:
        spec = spec.but(graph=())
    task = _named("task", task, {name: name for name in TASKS})
    features = {"v": node_features, "e": edge_features, "a": angle_features, "u": graph_features}
    names = ("node_features", "edge_features", "angle_features", "graph_features")
    maps = [coordinate_map_of(coordinate_map) for _ in range(check_count("layers", layers, 1))]
    readable = spec.reads | (maps[0].reads if maps[0] else frozenset())
    for name, (value, count) in zip(names, features.items(), strict=True):
        if check_count(name, count, 0) and value not in readable:
            raise ValueError(f"{name}: is {count}, but {spec.name} reads no {value}; leave it out")
    for name, count in (("outputs", outputs), ("hidden", hidden)):
        check_count(name, count, 1)
    check_count("mlp_layers", mlp_layers, 0)
    if dimension is not None:
        check_count("dimension", dimension, 1)
    if chunk is not None:
        check_count("chunk", chunk, 1)
    if task == "coordinates" and maps[0] is None:
        raise ValueError(
            "coordinate_map: is 'identity', so coordinates would come out as they went in; "
            "use 'neighbour-sum' or 'egcn' for task='coordinates'"
        )
    return Model(
        spec,
        features=features,
        embedding=hidden,
        layers=layers,
        width=Width(
            check_count("mlp_hidden", 2 * hidden if mlp_hidden is None else mlp_hidden, 1),
            mlp_layers,
            check_rate(dropout),
        ),
        aggregation=aggregations(aggregation),
        coordinate_maps=maps,
        task=task,
        outputs=outputs,
        dimension=dimension,
        chunk=chunk,
    )


def spec_of(architecture: str | Spec) -> Spec:
    """A specification by its name, or the one given."""
    return (
        architecture
        if isinstance(architecture, Spec)
        else _named("architecture", architecture, ARCHITECTURES)
    )


def coordinate_map_of(coordinate_map: str | CoordinateMap) -> CoordinateMap | None:
    """A new map by its name, or a copy of the one given; None for the identity."""
    if isinstance(coordinate_map, CoordinateMap):
        return copy.deepcopy(coordinate_map)
    make = _named("coordinate_map", coordinate_map, COORDINATE_MAPS)
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
