"""`build`: a model from the name of an architecture, or from a specification."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data

from symgnn._argument_checks import (
    check_count,
    check_flag,
    check_positive,
    check_rate,
    closest,
    named,
)
from symgnn.nn._engine.engine import engine_of
from symgnn.nn.architectures import ARCHITECTURES
from symgnn.nn.bases import bessel
from symgnn.nn.coordinate_maps import CoordinateMap, Rigid, Scale, Shift
from symgnn.nn.directional import DIRECTIONAL
from symgnn.nn.envelopes import with_cosines, with_envelope, with_ray_lengths
from symgnn.nn.feature_checks import OPTIONS
from symgnn.nn.filtered import FILTERED
from symgnn.nn.form import INITIALISATIONS, Width
from symgnn.nn.inputs import DOMAINS, VALUE_OF, d2
from symgnn.nn.model import Model
from symgnn.nn.neighbour_maps import EGCN, NeighbourSum
from symgnn.nn.node_types import ATOMS
from symgnn.nn.part_maps import OTHER_MAPS
from symgnn.nn.peers import FORMULAS, PEERS
from symgnn.nn.rungs import RUNGS
from symgnn.nn.separable import ProductForm
from symgnn.nn.spec import ANSWERS, VECTOR_TASKS, Network, Spec, check_inputs, network_of
from symgnn.nn.standardising import FEATURES, Averages, standardised
from symgnn.nn.state import Reference
from symgnn.nn.variants import SEPARABLE, variant_of
from symgnn.nn.vectors import RAYS

AGGREGATIONS = ("sum", "mean", "max")
#: Networks of more layers have residual updates, if not told otherwise.
DEEP = 4
#: Movements for which an aggregation can be chosen; "pool" is that of the graph read-out.
MOVEMENTS = ("e->v", "a->v", "a->e", "v->u", "e->u", "a->u", "x->v", "x->e", "x->u", "pool")

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
    init: str | None = None,
    averages: Averages | Mapping[str, Any] | None = None,
    residual: bool | None = None,
    norm: bool = False,
    radial: int | None = None,
    cutoff: float | None = None,
    envelope: bool = False,
    cosines: bool = False,
    ray_lengths: bool = False,
    **options: Any,
) -> Model:
    """Build a graph network.

    Args:
        architecture: "gn", "dgn", "sdgn", "agn", "agn+edges", "agn+distances", "agn-to-edges",
            "agn-raw", "combined", "cgn"; "agn-separable", and so on for all of these with an angle
            update; "dgn-filtered", "sdgn-filtered", "combined-filtered"; "dimenet-separable";
            "tgn", "stgn", "ugn", "ugn+flips"; "egnn", "schnet", "dimenet", "dimenet++", "isogcn";
            "dimenet-formula", "isognn-formula"; or a :class:`Spec` or :class:`Network` of your own.
        task: "graph", "node" or "edge", for one row of outputs each; "coordinates", for points
            `[N, n]`; "node-vectors" or "graph-vectors", for vectors such as forces `[N, n]` or
            dipoles `[G, n]`, which rotate with the coordinates and are invariant to translations.
        outputs: The number of outputs: classes or regression targets; for vectors, the number of
            vectors: k > 1 vectors have the shape `[N, k, n]` or `[G, k, n]`.
        node_features: Width of `data.x`. With 0, every node starts with the constant 1.
        edge_features: Width of `data.edge_attr`.
        angle_features: Width of `data.angle_attr`, in the order of `Topology.angle_index`.
        graph_features: Width of `data.u`.
        node_types: The number of node types: `data.z` has one integer from 0 to `node_types - 1`
            per node, such as the atomic number; "atoms" is 119. The initial node values are then
            `data.x`, if there is any, and a learned embedding of the type, of width `hidden`. None
            if `data.z` is not read. For networks that always embed types (SchNet, DimeNet) it is
            their number of types.
        dimension: The number of coordinates; only "gn", "tgn", "stgn" and the maps
            "shift", "rigid", "mirror" and "linear" need it.
        hidden: Width of the embeddings of nodes, edges, angles and graphs, 32 if not given, or
            one for each, such as `{"node": 64, "edge": 16}`.
        layers: The number of blocks; 2 if not given.
        mlp_hidden: Width of the hidden layers of the MLPs; twice `hidden` if not given; or one
            for each of "angle", "edge", "node", "graph" and "coordinates".
        mlp_layers: The number of hidden layers of each MLP.
        readout_layers: The number of hidden layers in the read-out; `mlp_layers` if not given.
        dropout: The dropout rate after each hidden layer.
        aggregation: "sum", "mean" or "max", or one for each movement, such as
            `{"e->v": "sum", "pool": "mean"}`; the default for each movement is "sum".
        coordinate_map: "identity" (if not given or None), "scale", "shift", "rigid", "mirror",
            "linear" (each also with coefficients of u: "scale-u", ...), "neighbour-sum",
            "part-sum" (within `data.part`), "egcn" (over all pairs), "egcn-neighbours", or a
            :class:`CoordinateMap`, of which each layer gets a copy.
        graph_state: Whether the graph has an embedding u that each layer updates; with
            False, u is `data.u` in all layers.
        scaling: The length to which "sdgn" scales the longest edge; 1 if not given.
        chunk: The maximum number of angles in memory at once; None for no limit.
        rays: The rays that vector outputs are sums of: "plain" rays (if not given) give vectors
            that grow with the coordinates, like displacements; "unit" rays give vectors that do
            not, such as normals (see :class:`symgnn.nn.vectors.Vectors`).
        weight: The scaling dimension D of node outputs that are conformal fields, or "learned": a
            conformal map of local scale W multiplies them by `W^-D`, see
            :class:`symgnn.nn.ConformalField`. None for invariant outputs.
        engine: "fast"; or "reference", which computes every update literally, and against which
            the fast engine is tested.
        init: The initialisation of the weights: "variance" (the default with `averages`) preserves
            the size of values from layer to layer if sums are divided by their number of terms;
            "torch" (the default without) is that of `torch.nn.Linear`. Peers keep the
            initialisation of their own code.
        averages: Statistics of the training graphs (:func:`symgnn.nn.averages`): sums are divided
            by their average number of terms, measures and features are standardised. None for
            neither.
        residual: Whether each update adds its result to the old value, if both have the same
            width; by default in networks of more than four layers.
        norm: Whether `torch.nn.LayerNorm` is applied to the result of each update.
        radial: The number of functions of a smooth radial basis that replaces squared distances:
            `envelope(d / cutoff) sin(k pi d / cutoff)`, with learned frequencies. None for the
            squared distances themselves, which are a poor input if edges differ much in length,
            as on complete graphs.
        cutoff: The distance beyond which the radial basis and the envelope are 0, in units of the
            coordinates.
        envelope: Whether edge and angle values go smoothly to 0 at the cutoff, so that outputs are
            continuous, with two continuous derivatives, when a neighbour crosses it
            (:mod:`symgnn.nn.envelopes`). This requires sums: means and maxima of edges and angles
            are refused.
        cosines: Whether cosines of angles are read instead of angles, which have a cusp if two rays
            are opposite, as is common in periodic cells. The symmetry is the same.
        ray_lengths: Whether the angle update also reads the lengths of its two rays, in the radial
            basis if there is one; for blocks whose edge update reads lengths, such as "combined".
            The symmetry is the same.
        options: For the blocks, `separable=True` (angle updates in product form, whose cost grows
            with the number of edges) with its `degree`, `basis`, `channels` and `tied`,
            `filtered=True` (messages are nodes times a filter of the lengths of edges) and
            `chiral=True` (the node update reads handedness), see
            :func:`symgnn.nn.variants.variant_of`; for a peer's network its own options, such as
            `cutoff` (see :mod:`symgnn.nn.peers`).
            A peer also has other defaults for the above, those of its own code.

    Returns:
        A model; `model(data)` computes the outputs, `model.symmetry` is their symmetry.

    Shapes:
        See :class:`Model`.

    Example:
        >>> model = symgnn.nn.build("dgn", outputs=3)
        >>> print(model.symmetry)
        E(n), torsions, flexes, permutations
        >>> model(symgnn.data.polytope("hypercube", 3)).shape
        torch.Size([1, 3])
    """
    types = None if node_types is None else count_of_types(node_types)
    own = _own_options(architecture)
    if residual is not None and "residual" in own:
        options, residual = {**options, "residual": residual}, None
    if cutoff is not None and "cutoff" in own:
        options = {**options, "cutoff": cutoff}
    network = network_named(architecture, options, types, dimension)
    spec = network.layer
    if scaling is not None:
        if spec.scaling is None:
            raise ValueError(f"scaling: {spec.name} does not scale its coordinates; use sdgn")
        spec = spec.replace(scaling=check_positive("scaling", scaling))
    if not graph_state:
        spec = spec.without("graph")
    network = replace(network, layer=spec)
    if check_flag("ray_lengths", ray_lengths):
        network = with_ray_lengths(network)
    if check_flag("cosines", cosines):
        network = with_cosines(network)
    if check_flag("envelope", envelope):
        psi = network.coordinate_map if coordinate_map is None else coordinate_map
        how = aggregations(network.aggregation if aggregation is None else aggregation)
        network = _with_envelope(network, cutoff, psi, how)
    if radial is not None or (cutoff is not None and network.init == "variance" and not envelope):
        network = _with_radial(network, radial, cutoff)
    spec = network.layer
    task = named("task", task, {name: name for name in ANSWERS})
    network.readout_of(task)  # raises if there is none
    if network.types:
        if check_count("node_features", node_features, 0):
            raise ValueError(
                f"node_features: is {node_features}, but {network.name} reads the types of nodes, "
                "data.z; remove node_features"
            )
        node_features, types = 1, None
    known = None if averages is None else Averages.of(averages)
    if known is not None:
        _check_peer(network, "averages", "its sums and inputs are those of its own code")
        network = standardised(network, known)
        spec = network.layer
    usual = "torch" if known is None else network.init
    drawn = named("init", init or usual, {name: name for name in INITIALISATIONS})
    if init is not None and network.init != "variance" and drawn != network.init:
        _check_peer(network, "init", "it is drawn as in its own code")
    for name, wanted in (("residual", residual), ("norm", norm)):
        if wanted is not None and check_flag(name, wanted):
            _check_peer(network, name, "its updates are those of its own code")
    features = {"v": node_features, "e": edge_features, "a": angle_features, "u": graph_features}
    psi = network.coordinate_map if coordinate_map is None else coordinate_map
    count = check_count("layers", network.layers if layers is None else layers, 1)
    maps = [coordinate_map_of(psi) for _ in range(count)]
    readable = {value[0] for value in network.reads} | (maps[0].reads if maps[0] else frozenset())
    if isinstance(spec.forms.get("angle"), ProductForm):
        readable -= {"a"}
    for name, (value, size) in zip(OPTIONS, features.items(), strict=True):
        if check_count(name, size, 0) and value not in readable:
            raise ValueError(f"{name}: is {size}, but no update of {spec.name} {_READ[value]}")
    if types is not None and "v" not in readable:
        raise ValueError(
            f"node_types: is {types}, but no update of {spec.name} reads node values (v); remove it"
        )
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
            "coordinate_map: is 'identity', so the output would equal the input coordinates; "
            "use 'neighbour-sum' or 'egcn' for task='coordinates'"
        )
    if rays is not None:
        rays = named("rays", rays, {name: name for name in RAYS})
        if task not in VECTOR_TASKS:
            raise ValueError(
                f"rays: is {rays!r}, but task={task!r} gives no vectors; remove rays, or use "
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
    model = Model(
        network,
        features=features,
        types=types,
        embedding={VALUE_OF[domain]: embedding[domain] for domain in DOMAINS},
        layers=count,
        width=Width(
            widths,
            mlp_layers,
            check_rate("dropout", dropout),
            drawn,
            depth=count,
            terms={} if known is None else known.terms,
        ),
        readout_layers=last_layers,
        aggregation=movements,
        coordinate_maps=maps,
        task=task,
        outputs=outputs,
        dimension=dimension,
        engine=engine_of(engine, chunk),
        rays=rays or "plain",
        residual=count > DEEP and network.init == "variance" if residual is None else residual,
        norm=norm,
        averages=known,
        weight=weight,
    )
    if drawn == "variance" and known is not None and known.example is not None:
        model.calibrate(_as_read(known.example, model))
    return model


def _as_read(example: Data, model: Model) -> Data:
    """The example with the attributes that a model reads."""
    read = {"pos": True, "edge_index": True, "edge_shift": True, "batch": True}
    read |= {"part": model.needs_part}
    read |= {name: bool(model.features[value]) for value, name in FEATURES.items()}
    read |= {"z": model.needs_types, "vel": model.needs_velocity}
    if model.network.types:
        read["x"] = False
    found = Data()
    for name, wanted in read.items():
        value = example.get(name) if wanted else None
        if value is None and wanted and name not in ("edge_shift", "part"):
            raise ValueError(
                f"averages: were measured on graphs without {name}, which this model reads; "
                f"measure them on graphs with {name}"
            )
        if value is not None:
            found[name] = value
    found.pos = found.pos.to(torch.get_default_dtype())
    found.num_nodes = len(found.pos)
    return found


def _with_envelope(
    network: Network, cutoff: float | None, psi: Any, aggregation: Mapping[str, str]
) -> Network:
    """The network with an envelope of all messages."""
    _check_peer(network, "envelope", "it has a cutoff of its own")
    if cutoff is None:
        raise ValueError("cutoff: is missing, but envelope is True; give the radius of the graphs")
    if psi != "identity":
        raise ValueError(
            f"coordinate_map: is {psi!r}, which is discontinuous when a neighbour crosses the "
            "cutoff; use 'identity' with envelope=True"
        )
    if network.layer.scaling is not None:
        raise ValueError(
            f"envelope: {network.name} scales each graph by its longest edge, which is "
            "discontinuous when an edge crosses the cutoff; use dgn"
        )
    for movement, how in aggregation.items():
        if how != "sum" and movement[0] in "eax":
            raise ValueError(
                f"aggregation: is {how!r} for {movement}, which is discontinuous when an edge "
                "crosses the cutoff; use 'sum' for edges and angles with envelope=True, such as "
                "aggregation={'pool': 'mean'}"
            )
    return with_envelope(network, check_positive("cutoff", cutoff))


def _with_radial(network: Network, radial: int | None, cutoff: float | None) -> Network:
    """The network with a radial basis in place of squared distances."""
    _check_peer(network, "radial", "it has a basis of its own")
    if radial is None or cutoff is None:
        given, missing = ("cutoff", "radial") if radial is None else ("radial", "cutoff")
        hint = "; give both, or envelope=True" if radial is None else "; give both"
        raise ValueError(f"{missing}: is missing, but {given} is given{hint}")
    basis = bessel(check_count("radial", radial, 1), check_positive("cutoff", cutoff))
    read = {each.home for each in network.layer.all_inputs}
    if d2 not in read:
        raise ValueError(f"radial: {network.name} reads no distances; remove radial")
    return network.reading({d2: basis})


def _check_peer(network: Network, option: str, reason: str) -> None:
    """Refuse an option for a peer."""
    if network.init != "variance":
        raise ValueError(f"{option}: is for the blocks of symgnn, not {network.name}; {reason}")


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


def _own_options(architecture: Any) -> list[str]:
    """The options of a peer's network."""
    peers = {**FORMULAS, **PEERS}
    peer = peers.get(architecture.lower()) if isinstance(architecture, str) else None
    return list(inspect.signature(peer).parameters) if callable(peer) else []


def network_named(
    architecture: str | Spec | Network,
    options: Mapping[str, Any],
    types: int | None = None,
    dimension: int | None = None,
) -> Network:
    """A network by its name, or the one given; `types` is for a network that embeds them."""
    found: Any = architecture
    if isinstance(architecture, str):
        blocks = {**ARCHITECTURES, **SEPARABLE, **FILTERED, **DIRECTIONAL, **RUNGS}
        table: dict[str, Any] = {**blocks, **FORMULAS, **PEERS}
        found = named("architecture", architecture, table)
    elif not isinstance(architecture, Spec | Network):
        raise TypeError(f"architecture: is {architecture!r}; give a name, a Spec or a Network")
    if isinstance(found, Spec):
        found = partial(variant_of, found, dimension=dimension)
    takes = list(inspect.signature(found).parameters) if callable(found) else []
    for option in options:
        if option not in takes:
            near = closest(option, takes + BUILD_OPTIONS)
            hint = f"; did you mean {near!r}?" if near else ""
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
        else named(
            "architecture",
            architecture,
            {**ARCHITECTURES, **SEPARABLE, **FILTERED, **DIRECTIONAL, **RUNGS},
        )
    )


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


#: The end of the error on features that no update reads, by their value.
_READ = {
    "v": "reads node values (v); remove it",
    "e": "reads edge values (e); remove it, and edge_attr from the data",
    "a": "reads angle values (a); remove it, or use an architecture with an angle update: agn",
    "u": "reads graph values (u); remove it, or set graph_state=True",
}

#: The options of `build` itself.
BUILD_OPTIONS = [
    name for name in inspect.signature(build).parameters if name not in ("architecture", "options")
]
