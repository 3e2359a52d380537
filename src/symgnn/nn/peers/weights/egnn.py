"""The weights of EGNN's own modules and of egnn-pytorch's layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from symgnn.nn.bases import fourier
from symgnn.nn.build import build
from symgnn.nn.conv import Conv
from symgnn.nn.egnn_map import EGNNMap
from symgnn.nn.inputs import Input, d2, e, initial, reduce, v
from symgnn.nn.model import Model
from symgnn.nn.peers.egnn import egnn, normalised
from symgnn.nn.peers.weights.common import Names, refuse, same_swish


def _layer(
    mlps: Mapping[str, tuple[nn.Linear, nn.Linear]],
    psi: EGNNMap | None,
    *,
    network: dict[str, Any],
    order: list[Input],
    edge_dim: int,
    aggregation: str,
    node: Input = v,
) -> tuple[Conv, Names]:
    """A layer of EGNN from its MLPs: edge, node, coordinates."""
    spec = egnn(**network).layer.replace(edge=order, node=[node, reduce(e)])
    conv = Conv(
        spec,
        mlps["node"][1].out_features,
        mlps["node"][1].out_features,
        edge_dim=edge_dim,
        hidden={"edge": mlps["edge"][1].out_features},
        mlp_hidden={name: first.out_features for name, (first, _) in mlps.items()},
        aggregation=aggregation,
        coordinate_map="identity" if psi is None else psi,
    )
    prefix = {
        "edge": "block.updates.edge.phi",
        "node": "block.updates.node.phi",
        "coordinates": "block.map.update.phi",
    }
    names: Names = {}
    for name, (first, last) in mlps.items():
        if name != "coordinates" or psi is not None:
            names |= {f"{prefix[name]}.linears.0": first, f"{prefix[name]}.linears.1": last}
    return conv, names


def egnn_sparse(peer: Any) -> tuple[Conv, Names]:
    """egnn-pytorch's layer for PyG."""
    refuse(
        peer,
        update_feats="False" if not peer.update_feats else "",
        dropout=getattr(peer.dropout, "p", 0),
        aggr="max" if "max" in str(peer.aggr) else "",
    )
    how = "mean" if peer.aggr == "mean" else "sum"
    return _egnn_pytorch(
        peer,
        moves=peer.update_coors,
        gate=peer.edge_weight,
        order=[v.target, v.source, initial(e), _distance(peer)],
        aggregation=how,
        psi={"aggregation": how, "towards": True, "gated": False},
    )


def egnn_dense(peer: Any) -> tuple[Conv, Names]:
    """Its sum over j has j = i in it: give complete graphs with self-loops."""
    refuse(
        peer,
        update_feats="False" if peer.node_mlp is None else "",
        dropout=getattr(peer.edge_mlp[1], "p", 0),
    )
    return _egnn_pytorch(
        peer,
        moves=peer.coors_mlp is not None,
        gate=peer.edge_gate,
        order=[v.target, v.source, _distance(peer), initial(e)],
        aggregation=peer.m_pool_method,
        psi={"aggregation": "sum", "limit": peer.coor_weights_clamp_value},
    )


def _distance(peer: Any) -> Input:
    return fourier(peer.fourier_features) if peer.fourier_features else d2


def _egnn_pytorch(
    peer: Any,
    moves: bool,
    gate: nn.Sequential | None,
    order: list[Input],
    aggregation: str,
    psi: dict[str, Any],
) -> tuple[Conv, Names]:
    """What both layers of egnn-pytorch have in common."""
    parts = {"edge": peer.edge_mlp, "node": peer.node_mlp, "coordinates": peer.coors_mlp}
    if not moves:
        del parts["coordinates"]
    mlps = {name: (mlp[0], mlp[3]) for name, mlp in parts.items()}
    scaled = hasattr(peer.coors_norm, "scale")
    normalise = "scaled" if scaled else False
    width = mlps["node"][1].out_features
    norm = peer.node_norm if getattr(peer.node_norm, "weight", None) is not None else None
    # nn.LayerNorm of each node in the dense layer, PyG's in the sparse one
    whole = getattr(norm, "mode", "node") == "graph"
    conv, names = _layer(
        mlps,
        EGNNMap(normalise=normalise, bias=True, **psi) if moves else None,
        network={"attention": gate is not None},
        order=order,
        edge_dim=mlps["edge"][0].in_features - 1 - 2 * peer.fourier_features - 2 * width,
        aggregation=aggregation,
        node=v if norm is None else normalised(width, whole=whole, eps=norm.eps),
    )
    if norm is not None:
        names["measures.normalised(v)"] = norm
    if gate is not None:
        names["block.updates.edge.gate"] = gate[0]
    if scaled and moves:
        names["block.map.scale"] = peer.coors_norm.scale
    return conv, names


def e_gcl(peer: Any) -> tuple[Conv, Names]:
    """EGNN's own layer, with velocities or without."""
    return _layer(
        _e_gcl_mlps(peer),
        EGNNMap(**_e_gcl_map(peer)),
        network=_e_gcl_options(peer),
        order=[v.target, v.source, d2, initial(e)],
        edge_dim=peer.edge_mlp[0].in_features - 1 - 2 * peer.node_mlp[2].out_features,
        aggregation="sum",
    )[0], _e_gcl_names(peer, "block")


def _e_gcl_mlps(peer: Any) -> dict[str, tuple[nn.Linear, nn.Linear]]:
    return {
        "edge": (peer.edge_mlp[0], peer.edge_mlp[2]),
        "node": (peer.node_mlp[0], peer.node_mlp[2]),
        "coordinates": (peer.coord_mlp[0], peer.coord_mlp[2]),
    }


def _e_gcl_options(peer: Any) -> dict[str, Any]:
    same_swish(peer, peer.edge_mlp[1])
    residual = getattr(peer, "residual", getattr(peer, "recurrent", True))
    return {"attention": bool(peer.attention), "residual": bool(residual)}


def _e_gcl_map(peer: Any) -> dict[str, Any]:
    normalise: bool | str = bool(getattr(peer, "normalize", False))
    if getattr(peer, "norm_diff", False):
        normalise = "plus one"
    return {
        "aggregation": getattr(peer, "coords_agg", "mean"),
        "normalise": normalise,
        "tanh": bool(peer.tanh),
        "velocity": hasattr(peer, "coord_mlp_vel"),
        "clamp": 100.0 if getattr(peer, "clamp", False) else None,
    }


def _e_gcl_names(peer: Any, block: str) -> Names:
    names: Names = {}
    for name, (first, last) in _e_gcl_mlps(peer).items():
        part = "map.update.phi" if name == "coordinates" else f"updates.{name}.phi"
        names |= {f"{block}.{part}.linears.0": first, f"{block}.{part}.linears.1": last}
    if peer.attention:
        names[f"{block}.updates.edge.gate"] = peer.att_mlp[0]
    if hasattr(peer, "coord_mlp_vel"):
        names[f"{block}.map.speed.phi.linears.0"] = peer.coord_mlp_vel[0]
        names[f"{block}.map.speed.phi.linears.1"] = peer.coord_mlp_vel[2]
    return names


def egnn_network(peer: Any) -> tuple[Model, Names]:
    """EGNN's own network; its coordinates are not read out by the task "node"."""
    layers = [peer._modules[f"gcl_{k}"] for k in range(peer.n_layers)]
    first = layers[0]
    nodes = peer.embedding_in.out_features
    model = build(
        "egnn",
        task="node",
        outputs=peer.embedding_out.out_features,
        node_features=peer.embedding_in.in_features,
        edge_features=first.edge_mlp[0].in_features - 1 - 2 * nodes,
        hidden={"node": nodes, "edge": first.edge_mlp[2].out_features},
        mlp_hidden={name: one.out_features for name, (one, _) in _e_gcl_mlps(first).items()},
        layers=len(layers),
        coordinate_map=EGNNMap(**_e_gcl_map(first)),
        **_e_gcl_options(first),
    )
    names: Names = {
        "blocks.0.updates.node.phi.linear": peer.embedding_in,
        "readouts.0.updates.node.phi.linear": peer.embedding_out,
    }
    for k, layer in enumerate(layers, 1):
        names |= _e_gcl_names(layer, f"blocks.{k}")
    ours = dict(model.named_parameters())
    # the last layer moves coordinates that nobody reads
    return model, {n: t for n, t in names.items() if any(o.startswith(n) for o in ours)}
