"""The first state: what the graph brings, checked against what the model was built for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32, length
from symgnn.nn.angle_fields import AngleField
from symgnn.nn.chunks import Chunks
from symgnn.nn.fields import Field, accumulate, centroid, lift, spread
from symgnn.nn.movements import can_look
from symgnn.nn.sources import Measure, Source
from symgnn.nn.spec import Spec, width_of
from symgnn.nn.state import State
from symgnn.topology import Part, Topology
from symgnn.topology.checks import check_shape


def start(
    spec: Spec,
    pos: Tensor,
    topology: Topology,
    x: Tensor | None = None,
    edge_attr: Tensor | None = None,
    angle_attr: Tensor | None = None,
    u: Tensor | None = None,
    chunks: Chunks | None = None,
    modules: Mapping[Source, nn.Module] | None = None,
) -> tuple[State, Tensor | None]:
    """The state of the input, and by what its coordinates were scaled `[N, 1]`, if they were."""
    check_shape("pos", pos, "[N, n]")
    if pos.shape[0] != topology.num_nodes:
        raise ValueError(
            f"pos: has {pos.shape[0]} rows, but the topology has {topology.num_nodes} nodes; "
            "apply AddTopology again, or del data.topology"
        )
    coordinates, scale, unit = scaled(at_least_float32(pos), topology, spec.scaling)
    state = State(topology, coordinates, chunks=chunks, modules=modules or {}, unit=unit)
    if edge_attr is not None:
        state.e = Field(topology, "edge", edge_attr)
    if angle_attr is not None:
        state.a = _given_angles(topology, angle_attr, chunks)
    if u is not None:
        state.u = Field(topology, "graph", u)
    state.v = _first_nodes(spec, state, x)
    values = {"v": state.v, "e": state.e, "a": state.a, "u": state.u}
    state.given = {name: value for name, value in values.items() if value is not None}
    return state, scale


def inputs_read(spec: Spec, reads: frozenset[str]) -> tuple[Source, ...]:
    """The inputs of the nodes, if the first values of the nodes are among what is read."""
    return tuple(spec.inputs) if reads & {"v", "v0"} else ()


def check_inputs(spec: Spec, option: str, size: int) -> None:
    """Refuse node features, of width `size`, that are none of the inputs of the nodes."""
    if size and not any(type(source) is Source for source in spec.inputs):
        raise ValueError(
            f"{option}: is {size}, but {spec.name} does not start its nodes with v; leave it out, "
            "or add v to inputs"
        )


def first_sizes(spec: Spec, features: Mapping[str, int], dimension: int | None) -> dict[str, int]:
    """How wide each value is at the start, and stays where it is read as it came."""
    sizes = {value: features.get(value, 0) for value in "veau"}
    sizes["v"] = sum(width_of(source, sizes, dimension) for source in spec.inputs) or 1
    return sizes | {f"{value}0": size for value, size in sizes.items()}


def scaled(
    x: Tensor, topology: Topology, scaling: float | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Coordinates times `scaling / (longest edge)` of their graph.

    Where no edge has a length, the root mean square distance from the centroid stands in for it.
    Where that is zero too, the graph has no extent: then the distance of its nodes from the origin
    stands in, and if that is zero, 1. So a dilation of the coordinates never changes the result.

    Args:
        x: Coordinates `[N, n]`.
        topology: Of the same nodes.
        scaling: None to leave the coordinates as they are.

    Returns:
        The coordinates `[N, n]`, the factors `[N, 1]`, and 1, or 0 for nodes of graphs without
        extent `[N, 1]`; None for both without `scaling`.
    """
    if scaling is None:
        return x, None, None
    source, target = topology.edge_index
    edges = length(lift(x, source) - lift(x, target)).unsqueeze(-1)
    nodes = accumulate(edges, target, topology.num_nodes, "max")
    longest = accumulate(nodes, topology.batch, topology.num_graphs, "max")
    extended = torch.ones_like(longest)
    if not can_look(longest) or bool((longest <= 0).any()):  # -inf where there are no edges
        # from one of its nodes, not from the origin: nodes in one place are exactly in one place
        origin = lift(_some_node(x, topology), topology.batch)
        away = x - origin
        away = spread(away - lift(centroid(away, topology), topology.batch), topology)
        longest = torch.where(longest <= 0, away, longest)
        extended = (longest > 0).to(x.dtype)
        longest = torch.where(longest > 0, longest, spread(x, topology))
    none = longest == 0
    factor = torch.where(none, 1.0, scaling / torch.where(none, 1.0, longest))
    factor = lift(factor, topology.batch)
    return x * factor, factor, lift(extended, topology.batch)


def _some_node(x: Tensor, topology: Topology) -> Tensor:
    """For each graph the smallest of each coordinate `[N, n] -> [G, n]`, as a constant."""
    return -accumulate(-x.detach(), topology.batch, topology.num_graphs, "max")


def _first_nodes(spec: Spec, state: State, x: Tensor | None) -> Field:
    """What the nodes start with: their inputs, or the constant 1 if they have none."""
    rows = []
    for source in spec.inputs:
        if isinstance(source, Measure):
            if source.make is None or source in state.modules:
                rows.append(state.get(source).rows)
        elif x is not None:
            rows.append(x)
    rows = rows or [state.x.new_ones(state.topology.num_nodes, 1)]
    dtype = x.dtype if x is not None else rows[0].dtype
    return Field(state.topology, "node", torch.cat([r.to(dtype) for r in rows], -1))


def _given_angles(topology: Topology, angle_attr: Tensor, chunks: Chunks | None) -> AngleField:
    """Angle features `[A, w]`, in the order of `topology.angle_index`."""
    read = angle_attr.__getitem__ if chunks is None else chunks.table(angle_attr).rows

    def compute(part: Part) -> Tensor:
        return read(part.cut.angles)

    like = angle_attr.new_empty(0, angle_attr.shape[1])
    return AngleField(topology, compute, like, chunks=chunks)


def check_dimension(pos: Tensor, dimension: int | None) -> None:
    """The coordinates are as many as the model was built for."""
    if dimension is not None and pos.shape[-1] != dimension:
        raise ValueError(
            f"pos: has {pos.shape[-1]} coordinates; the model was built with dimension={dimension}"
        )


def check_unread_velocity() -> None:
    """Refuse velocities that the model does not read, nor any features that may hold them."""
    raise ValueError(
        "vel: holds velocities, which the model would not read; build it with "
        "coordinate_map=EGNNMap(velocity=True), or set vel to None"
    )


def check_velocity(velocity: Tensor | None, x: Tensor, scale: Tensor | None = None) -> Tensor:
    """The velocities `[N, n]`, scaled as the coordinates x `[N, n]` are."""
    if velocity is None:
        raise ValueError("vel: is missing, but the coordinate map reads velocities")
    if velocity.shape != x.shape:
        raise ValueError(f"vel: has shape {list(velocity.shape)}; pos has {list(x.shape)}")
    velocity = velocity.to(x.dtype)
    return velocity if scale is None else velocity * scale


#: What the widths of x, edge_attr, angle_attr and u are called in `build`.
OPTIONS = ("node_features", "edge_features", "angle_features", "graph_features")


def check_features(
    topology: Topology,
    features: Mapping[str, int],
    x: Tensor | None,
    edge_attr: Tensor | None,
    angle_attr: Tensor | None = None,
    u: Tensor | None = None,
    options: Sequence[str] = OPTIONS,
) -> None:
    """Every value that is given is read, and every one that is read is given, in its shape."""
    node, edge, angle, graph = options
    _check("x", x, node, features.get("v", 0), topology.num_nodes)
    _check("edge_attr", edge_attr, edge, features.get("e", 0), topology.num_edges)
    angles = 0 if angle_attr is None else topology.num_angles
    _check("angle_attr", angle_attr, angle, features.get("a", 0), angles)
    if u is not None and u.dim() == 1:
        raise ValueError(
            f"u: has shape {list(u.shape)}; store it as [1, F] in each graph (use .unsqueeze(0)), "
            "so that a batch has [G, F]"
        )
    _check("u", u, graph, features.get("u", 0), topology.num_graphs)


def _check(name: str, value: Tensor | None, option: str, width: int, rows: int) -> None:
    if value is None:
        if width:
            raise ValueError(f"{name}: is missing, but the model was built with {option}={width}")
        return
    check_shape(name, value, f"[{rows}, {width or 'F'}]")
    if not width:
        raise ValueError(
            f"{name}: has {value.shape[1]} features that the model would not read; build it with "
            f"{option}={value.shape[1]}, or set {name} to None"
        )
    if value.shape[0] != rows or value.shape[1] != width:
        raise ValueError(
            f"{name}: has shape {list(value.shape)}; the graph and {option}={width} ask for "
            f"[{rows}, {width}]"
        )
