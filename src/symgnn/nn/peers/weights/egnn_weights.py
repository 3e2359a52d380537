"""The weights of EGNN's own modules and of egnn-pytorch's layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from symgnn.nn.bases import fourier
from symgnn.nn.build import build
from symgnn.nn.conv import Conv
from symgnn.nn.egnn_map import EGNNMap
from symgnn.nn.inputs import Input, d2, e, initial, reduce, v
from symgnn.nn.peers.egnn import egnn, normalised
from symgnn.nn.peers.weights.transfer import (
    Names,
    Reading,
    cannot,
    known_attributes,
    must_be,
    refuse,
    same_swish,
)

# The attributes of each module; all of them are carried over, refused or without effect.
E_GCL = """residual recurrent attention normalize norm_diff coords_agg coords_weight tanh clamp
    epsilon coords_range edge_mlp node_mlp coord_mlp att_mlp coord_mlp_vel"""
NETWORK = "hidden_nf device n_layers embedding_in embedding_out"
DENSE = """fourier_features edge_gate m_pool_method num_nearest_neighbors only_sparse_neighbors
    valid_radius coor_weights_clamp_value init_eps edge_mlp node_norm coors_norm node_mlp
    coors_mlp"""
SPARSE = """fourier_features feats_dim pos_dim m_dim soft_edge norm_feats norm_coors update_coors
    update_feats coor_weights_clamp_value edge_input_dim edge_weight node_norm dropout edge_mlp
    coors_norm node_mlp coors_mlp decomposed_layers propagate"""


def _layer(
    mlps: Mapping[str, tuple[nn.Linear, nn.Linear]],
    psi: EGNNMap | None,
    *,
    network: dict[str, Any],
    order: list[Input],
    edge_dim: int,
    aggregation: str,
    node: Input = v,
    inputs: int | None = None,
) -> tuple[Conv, Names]:
    """A layer of EGNN from its MLPs: edge, node, coordinates."""
    spec = egnn(**network).layer.replace(edge=order, node=[node, reduce(e)])
    conv = Conv(
        spec,
        mlps["node"][1].out_features if inputs is None else inputs,
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


def egnn_sparse(peer: Any) -> Reading:
    """egnn-pytorch's layer for PyG."""
    known_attributes(peer, SPARSE, MessagePassing)
    aggregation = {"add": "sum", "sum": "sum", "mean": "mean"}.get(str(peer.aggr))
    refuse(
        peer,
        dropout=getattr(peer.dropout, "p", 0),
        aggr=None if aggregation else peer.aggr,
        coor_weights_clamp_value=peer.coor_weights_clamp_value,
    )
    must_be(
        peer,
        update_feats=(peer.update_feats, True),
        flow=(peer.flow, "source_to_target"),
        node_dim=(peer.node_dim, -2),
        decomposed_layers=(getattr(peer, "decomposed_layers", 1), 1),
    )
    assert aggregation is not None
    return _egnn_pytorch(
        peer,
        moves=peer.update_coors,
        gate=peer.edge_weight,
        order=[v.target, v.source, initial(e), _distance(peer)],
        aggregation=aggregation,
        psi={"aggregation": aggregation, "towards": True, "gated": False},
    )


def egnn_dense(peer: Any) -> Reading:
    """Its sum over j has j = i in it: give complete graphs with self-loops."""
    known_attributes(peer, DENSE)
    refuse(
        peer,
        update_feats="False" if peer.node_mlp is None else "",
        dropout=getattr(peer.edge_mlp[1], "p", 0),
        num_nearest_neighbors=peer.num_nearest_neighbors,
        only_sparse_neighbors=peer.only_sparse_neighbors,
        valid_radius=peer.valid_radius if peer.valid_radius < float("inf") else None,
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
) -> Reading:
    """The parts that both layers of egnn-pytorch have."""
    parts = {"edge": peer.edge_mlp, "node": peer.node_mlp, "coordinates": peer.coors_mlp}
    if not moves:
        del parts["coordinates"]
    mlps = {name: (mlp[0], mlp[3]) for name, mlp in parts.items()}
    same_swish(peer, *(mlp[2] for mlp in parts.values()), peer.edge_mlp[4])
    scaled = hasattr(peer.coors_norm, "scale")
    if scaled:
        must_be(peer, coors_norm_eps=(peer.coors_norm.eps, 1e-8))
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
    # without a coordinate map, the norm of the rays is not read
    return Reading(conv, names, () if moves else (peer.coors_norm,))


def e_gcl(peer: Any) -> Reading:
    """EGNN's own layer, with velocities or without."""
    network, inputs = _e_gcl_options(peer), _e_gcl_inputs(peer)
    conv, _ = _layer(
        _e_gcl_mlps(peer),
        EGNNMap(**_e_gcl_map(peer)),
        network=network,
        order=[v.target, v.source, d2, initial(e)],
        edge_dim=peer.edge_mlp[0].in_features - 1 - 2 * inputs,
        aggregation="sum",
        inputs=inputs,
    )
    return Reading(conv, _e_gcl_names(peer, "block"))


def _e_gcl_mlps(peer: Any) -> dict[str, tuple[nn.Linear, nn.Linear]]:
    return {
        "edge": (peer.edge_mlp[0], peer.edge_mlp[2]),
        "node": (peer.node_mlp[0], peer.node_mlp[2]),
        "coordinates": (peer.coord_mlp[0], peer.coord_mlp[2]),
    }


def _e_gcl_inputs(peer: Any) -> int:
    """The width of the nodes that come in; further node features have no counterpart."""
    read = peer.node_mlp[0].in_features - peer.edge_mlp[2].out_features
    inputs = peer.node_mlp[2].out_features if _residual(peer) else read
    if hasattr(peer, "coord_mlp_vel"):
        inputs = peer.coord_mlp_vel[0].in_features
    refuse(peer, nodes_att_dim=read - inputs)
    return int(inputs)


def _residual(peer: Any) -> bool:
    return bool(getattr(peer, "residual", getattr(peer, "recurrent", True)))


def _e_gcl_options(peer: Any) -> dict[str, Any]:
    known_attributes(peer, E_GCL)
    acts = [peer.edge_mlp[1], peer.edge_mlp[3], peer.node_mlp[1], peer.coord_mlp[1]]
    acts += [peer.coord_mlp_vel[1]] if hasattr(peer, "coord_mlp_vel") else []
    same_swish(peer, *acts)
    must_be(peer, epsilon=(getattr(peer, "epsilon", 1e-8), 1e-8))
    # models/gcl.py makes a tensor of it, and does not read it; copies that read it have a number
    coords_range = getattr(peer, "coords_range", None)
    refuse(peer, coords_range=None if isinstance(coords_range, Tensor) else coords_range)
    if getattr(peer, "normalize", False):
        refuse(peer, norm_diff=getattr(peer, "norm_diff", False))
    return {"attention": bool(peer.attention), "residual": _residual(peer)}


def _e_gcl_map(peer: Any) -> dict[str, Any]:
    normalise: bool | str = bool(getattr(peer, "normalize", False))
    if getattr(peer, "norm_diff", False):
        normalise = "plus one"
    # the layer with `recurrent` (models/gcl.py) clamps always, the other one (egnn_clean.py) never
    clamps = hasattr(peer, "recurrent") or getattr(peer, "clamp", False)
    return {
        "aggregation": getattr(peer, "coords_agg", "mean"),
        "normalise": normalise,
        "tanh": bool(peer.tanh),
        "velocity": hasattr(peer, "coord_mlp_vel"),
        "clamp": 100.0 if clamps else None,
        "weight": float(getattr(peer, "coords_weight", 1.0)),
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


def egnn_network(peer: Any) -> Reading:
    """EGNN's own network; its coordinates are not read out by the task "node"."""
    if not hasattr(peer, "embedding_in"):
        raise TypeError(
            "from_peer: cannot read this EGNN; it reads the EGNN of EGNN's egnn_clean.py and that "
            "of egnn-pytorch; give its layers, E_GCL, one by one"
        )
    known_attributes(peer, " ".join([NETWORK, *(f"gcl_{k}" for k in range(peer.n_layers))]))
    layers = [peer._modules[f"gcl_{k}"] for k in range(peer.n_layers)]
    if not layers:
        raise cannot(peer, "n_layers=0")
    first = layers[0]
    for layer in layers:
        for key, value in (_e_gcl_options(first) | _e_gcl_map(first)).items():
            found = (_e_gcl_options(layer) | _e_gcl_map(layer))[key]
            must_be(peer, **{f"layers of different {key}": (found, value)})
    nodes = peer.embedding_in.out_features
    refuse(first, nodes_att_dim=_e_gcl_inputs(first) - nodes)
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
    # the last layer moves coordinates that are not read
    used = {n: t for n, t in names.items() if any(o.startswith(n) for o in ours)}
    last = layers[-1]
    return Reading(model, used, [last.coord_mlp, getattr(last, "coord_mlp_vel", nn.Identity())])
