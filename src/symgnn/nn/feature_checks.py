"""Checks that a graph has the features that a model reads; errors are one line with the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from symgnn.graphs import Topology
from symgnn.graphs.checks import check_shape


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


#: The options of `build` for the widths of x, edge_attr, angle_attr and u.
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
