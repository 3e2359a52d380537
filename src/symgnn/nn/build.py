"""`build`: a model from the name of an architecture, or from a specification."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_count, check_flag, check_rate, named
from symgnn.nn._engine.engine import engine_of
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.feature_checks import OPTIONS
from symgnn.nn.form import INITIALISATIONS, Width
from symgnn.nn.inputs import DOMAINS, VALUE_OF
from symgnn.nn.model import Model
from symgnn.nn.named_networks import (
    aggregations,
    coordinate_map_of,
    count_of_types,
    network_named,
    own_options,
    widths_of,
)
from symgnn.nn.network_options import check_own, with_averages, with_length, with_measures
from symgnn.nn.separable import ProductForm
from symgnn.nn.spec import ANSWERS, VECTOR_TASKS, Network, Spec, check_inputs
from symgnn.nn.standardising import FEATURES, Averages
from symgnn.nn.state import Reference
from symgnn.nn.vectors import RAYS

#: Networks of more layers have residual updates, if not told otherwise.
DEEP = 4
#: The end of the error on features that no update reads, by their value.
_READ = {
    "v": "reads node values (v); remove it",
    "e": "reads edge values (e); remove it, and edge_attr from the data",
    "a": "reads angle values (a); remove it, or use an architecture with an angle update: agn",
    "u": "reads graph values (u); remove it, or set graph_state=True",
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
    own = own_options(architecture)
    if residual is not None and "residual" in own:
        options, residual = {**options, "residual": residual}, None
    if cutoff is not None and "cutoff" in own:
        options = {**options, "cutoff": cutoff}
    network = network_named(architecture, options, types, dimension, BUILD_OPTIONS)
    network = with_length(network, scaling)
    if not graph_state:
        network = replace(network, layer=network.layer.without("graph"))
    psi = network.coordinate_map if coordinate_map is None else coordinate_map
    movements = aggregations(network.aggregation if aggregation is None else aggregation)
    network = with_measures(
        network,
        ray_lengths=ray_lengths,
        cosines=cosines,
        envelope=envelope,
        radial=radial,
        cutoff=cutoff,
        psi=psi,
        aggregation=movements,
    )
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
    network = with_averages(network, known)
    drawn = _initialisation(network, init, known)
    for name, wanted in (("residual", residual), ("norm", norm)):
        if wanted is not None and check_flag(name, wanted):
            check_own(network, name, "its updates are those of its own code")
    features = {"v": node_features, "e": edge_features, "a": angle_features, "u": graph_features}
    count = check_count("layers", network.layers if layers is None else layers, 1)
    maps = [coordinate_map_of(psi) for _ in range(count)]
    _check_features(network, features, maps[0], types)
    check_inputs(network.start, "node_features", node_features)
    check_count("outputs", outputs, 1)
    check_count("mlp_layers", mlp_layers, 0)
    last_layers = mlp_layers if readout_layers is None else readout_layers
    check_count("readout_layers", last_layers, 0)
    if dimension is not None:
        check_count("dimension", dimension, 1)
    if chunk is not None:
        check_count("chunk", chunk, 1)
    rays = None if rays is None else named("rays", rays, {name: name for name in RAYS})
    _check_answer(task, maps[0], rays, weight, movements)
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


def _initialisation(network: Network, init: str | None, averages: Averages | None) -> str:
    """By what law the weights are drawn."""
    usual = "torch" if averages is None else network.init
    drawn = named("init", init or usual, {name: name for name in INITIALISATIONS})
    if init is not None and network.init != "variance" and drawn != network.init:
        check_own(network, "init", "it is drawn as in its own code")
    return drawn


def _check_features(
    network: Network, features: Mapping[str, int], psi: CoordinateMap | None, types: int | None
) -> None:
    """Refuse features, and types of nodes, that nothing reads."""
    spec = network.layer
    readable = {value[0] for value in network.reads} | (psi.reads if psi else frozenset())
    if isinstance(spec.forms.get("angle"), ProductForm):
        readable -= {"a"}
    for name, (value, size) in zip(OPTIONS, features.items(), strict=True):
        if check_count(name, size, 0) and value not in readable:
            raise ValueError(f"{name}: is {size}, but no update of {spec.name} {_READ[value]}")
    if types is not None and "v" not in readable:
        raise ValueError(
            f"node_types: is {types}, but no update of {spec.name} reads node values (v); remove it"
        )


def _check_answer(
    task: str,
    psi: CoordinateMap | None,
    rays: str | None,
    weight: float | str | None,
    aggregation: Mapping[str, str],
) -> None:
    """Refuse options that do not go with the task."""
    if task == "coordinates" and psi is None:
        raise ValueError(
            "coordinate_map: is 'identity', so the output would equal the input coordinates; "
            "use 'neighbour-sum' or 'egcn' for task='coordinates'"
        )
    if rays is not None and task not in VECTOR_TASKS:
        raise ValueError(
            f"rays: is {rays!r}, but task={task!r} gives no vectors; remove rays, or use "
            f"task={' or '.join(map(repr, VECTOR_TASKS))}"
        )
    if weight is not None and task != "node":
        raise ValueError(
            f"weight: is {weight!r}, but task={task!r}; conformal fields are on nodes, so use "
            "task='node'"
        )
    if task == "graph-vectors" and aggregation["pool"] == "max":
        raise ValueError(
            "aggregation: pool is 'max', which depends on the axes of a vector; pass 'sum' or "
            "'mean' for it, such as aggregation={'pool': 'sum'}"
        )


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


#: The options of `build` itself.
BUILD_OPTIONS = [
    name for name in inspect.signature(build).parameters if name not in ("architecture", "options")
]
