"""Weights from other people's modules, and back.

Nothing is imported from the peers: their modules are known by the names of their classes and
parts. Which of our parameters is which of theirs is said once, for both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from symgnn.nn.bases import Spherical
from symgnn.nn.build import build
from symgnn.nn.conv import Conv
from symgnn.nn.coordinate_maps import EGNNMap
from symgnn.nn.model import Model
from symgnn.nn.peers.egnn import egnn
from symgnn.nn.sources import d2, e, initial, v

#: Our module's name (a part with weight and bias, or a parameter) -> theirs.
Names = dict[str, Any]


def from_peer(module: nn.Module) -> Model | Conv:
    """A model with the weights of PyG's `SchNet`, `DimeNet` or `DimeNetPlusPlus` or of EGNN's own
    `EGNN`; or a layer, with those of its `E_GCL` and `E_GCL_vel` or of egnn-pytorch's
    `EGNN_Sparse` and `EGNN`.

    It gives the same values on the same graph. What cannot be carried over is an error that says
    what it is. The graph is not built in forward: give the edges that the peer would make. EGNN's
    own modules sum over the second node of an edge for the first; for ours, which sum at the
    target, flip their `edge_index`.
    """
    model, names = _reader(module)(module)
    ours = _parameters(model)
    for name, theirs in _pairs(names):
        parameter = ours.pop(name)
        with torch.no_grad():
            parameter.copy_(theirs.view_as(parameter))
    left = [name for name, parameter in ours.items() if parameter.requires_grad]
    assert not left, f"from_peer: nothing was read for {left}"
    like = next(module.parameters())
    return model.to(like.device, like.dtype)


def to_peer(model: Model | Conv, module: nn.Module) -> nn.Module:
    """Copy the weights of a model into a peer's module of the same sizes, and give that."""
    fitting, names = _reader(module)(module)
    ours, expected = _parameters(model), _parameters(fitting)
    for name, parameter in expected.items():
        if name not in ours or ours[name].shape != parameter.shape:
            raise ValueError(
                f"to_peer: {name} does not fit; the {type(module).__name__} was made for another "
                "network or for other sizes"
            )
    for name, theirs in _pairs(names):
        with torch.no_grad():
            theirs.copy_(ours[name].view_as(theirs))
    return module


def _parameters(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_parameters())


def _reader(module: nn.Module) -> Callable[[Any], tuple[Model | Conv, Names]]:
    name = type(module).__name__
    if name == "EGNN" and hasattr(module, "edge_mlp"):
        return _egnn_dense
    if name not in _READERS:
        raise TypeError(f"from_peer: cannot read a {name}; it reads {', '.join(_READERS)}")
    return _READERS[name]


def _pairs(names: Names) -> list[tuple[str, Tensor]]:
    """Our parameters and theirs, one by one."""
    pairs = []
    for name, theirs in names.items():
        if isinstance(theirs, Tensor):
            pairs.append((name, theirs))
        else:
            pairs += [(f"{name}.{part}", value) for part, value in theirs.named_parameters()]
    return pairs


def _refuse(module: nn.Module, **options: object) -> None:
    """Options that have no counterpart here: an error where one is set."""
    for name, value in options.items():
        if value:
            raise ValueError(
                f"from_peer: {type(module).__name__} was made with {name}={value}, which cannot be "
                "carried over"
            )


def _same_swish(module: nn.Module, act: Callable[[Tensor], Tensor]) -> None:
    x = torch.linspace(-3, 3, 7)
    if not torch.allclose(act(x), nn.functional.silu(x)):
        raise ValueError(f"from_peer: {type(module).__name__} has another activation than swish")


def _schnet(peer: Any) -> tuple[Model, Names]:
    _refuse(
        peer,
        dipole=peer.dipole,
        mean=peer.mean is not None,
        std=peer.std is not None,
        atomref=peer.atomref is not None,
        scale=peer.scale is not None,
    )
    how = "mean" if "mean" in type(peer.readout).__name__.lower() else "sum"
    model = build(
        "schnet",
        hidden=peer.hidden_channels,
        layers=peer.num_interactions,
        filters=peer.num_filters,
        basis=peer.num_gaussians,
        cutoff=peer.cutoff,
        types=peer.embedding.num_embeddings,
        aggregation={"e->v": "sum", "pool": how},
    )
    names = {
        "blocks.0.updates.node.phi.embedding": peer.embedding,
        "readouts.0.updates.node.phi.first": peer.lin1,
        "readouts.0.updates.node.phi.second": peer.lin2,
    }
    for k, layer in enumerate(peer.interactions, 1):
        edge, node = (f"blocks.{k}.updates.{domain}.phi" for domain in ("edge", "node"))
        names |= {
            f"{edge}.nodes": layer.conv.lin1,
            f"{edge}.first": layer.mlp[0],
            f"{edge}.second": layer.mlp[2],
            f"{node}.first": layer.conv.lin2,
            f"{node}.second": layer.lin,
        }
    return model, names


def _dimenet(peer: Any) -> tuple[Model, Names]:
    plus = hasattr(peer.interaction_blocks[0], "lin_down")
    _same_swish(peer, peer.emb.act)
    block, output = peer.interaction_blocks[0], peer.output_blocks[0]
    options: dict[str, Any] = {
        "degrees": peer.sbf.num_spherical,
        "basis": peer.sbf.num_radial,
        "cutoff": peer.cutoff,
        "exponent": peer.rbf.envelope.p - 1,
        "before_skip": len(block.layers_before_skip),
        "after_skip": len(block.layers_after_skip),
        "output_layers": len(output.lins),
        "types": peer.emb.emb.num_embeddings,
    }
    if plus:
        options |= {
            "interaction": block.lin_down.out_features,
            "basis_embedding": block.lin_rbf1.out_features,
            "output_embedding": output.lin_up.out_features,
        }
    else:
        options["bilinear"] = block.lin_sbf.out_features
    model = build(
        "dimenet++" if plus else "dimenet",
        hidden=block.lin.out_features,
        layers=len(peer.interaction_blocks),
        outputs=output.lin.out_features,
        **options,
    )
    basis = model.measures["spherical"]
    assert isinstance(basis, Spherical)
    basis.tabulate(_closed_forms(peer.sbf))
    names: Names = {
        "measures.bessel.frequencies": peer.rbf.freq,
        "blocks.0.updates.node.phi.embedding": peer.emb.emb,
        "blocks.1.updates.edge.phi.basis": peer.emb.lin_rbf,
        "blocks.1.updates.edge.phi.linear": peer.emb.lin,
    }
    for k, block in enumerate(peer.interaction_blocks, 2):
        names |= _interaction(f"blocks.{k}.updates", block, plus)
    for k, output in enumerate(peer.output_blocks):
        node = f"readouts.{k}.updates.node.phi"
        names[f"readouts.{k}.updates.edge.phi.radial"] = output.lin_rbf
        names |= {f"{node}.linears.{i}": linear for i, linear in enumerate(output.lins)}
        names[f"{node}.last"] = output.lin
        if plus:
            names[f"{node}.up"] = output.lin_up
    return model, names


def _interaction(name: str, block: Any, plus: bool) -> Names:
    angle, edge = f"{name}.angle.phi", f"{name}.edge.phi"
    names = {
        f"{angle}.message": block.lin_kj,
        f"{edge}.message": block.lin_ji,
        f"{edge}.linear": block.lin,
    }
    for ours, theirs in (("before", block.layers_before_skip), ("after", block.layers_after_skip)):
        for i, layer in enumerate(theirs):
            names[f"{edge}.{ours}.{i}.first"] = layer.lin1
            names[f"{edge}.{ours}.{i}.second"] = layer.lin2
    if not plus:
        return names | {
            f"{angle}.radial": block.lin_rbf,
            f"{angle}.angular": block.lin_sbf,
            f"{angle}.weight": block.W,
        }
    return names | {
        f"{angle}.radial.0": block.lin_rbf1,
        f"{angle}.radial.1": block.lin_rbf2,
        f"{angle}.angular.0": block.lin_sbf1,
        f"{angle}.angular.1": block.lin_sbf2,
        f"{angle}.down": block.lin_down,
        f"{edge}.up": block.lin_up,
    }


def _closed_forms(peer: Any) -> tuple[np.ndarray, np.ndarray]:
    """The peer's radial functions as `sum_m (c_m sin(z x) + d_m cos(z x)) / x^m`.

    They are j_l up to single precision, in which the peer computes its constants; to be equal in
    double precision, the constants are found again from the functions. Gives z `[l, k]` and the
    factors `[l, k, 2, l]`.
    """
    degrees, count = peer.num_spherical, peer.num_radial
    zeros = Spherical(degrees, count, 1.0, 5, "vertex").zeros.numpy()
    zeros = zeros.astype(np.float32).astype(np.float64)
    factors = np.zeros((degrees, count, 2, degrees))
    # further in, the closed forms themselves lose their digits
    x = torch.linspace(0.2, 1.0, 400, dtype=torch.float64)
    for degree in range(degrees):
        powers = x.numpy()[:, None] ** -np.arange(1, degree + 2)
        for k in range(count):
            values = peer.bessel_funcs[degree * count + k](x).numpy()
            phase = zeros[degree, k] * x.numpy()[:, None]
            columns = np.concatenate([np.sin(phase) * powers, np.cos(phase) * powers], 1)
            size = np.abs(columns).max(0)
            found = np.linalg.lstsq(columns / size, values, rcond=None)[0] / size
            if np.abs(columns @ found - values).max() > 1e-10 * np.abs(values).max():
                raise ValueError("from_peer: the peer's spherical basis is not that of DimeNet")
            factors[degree, k, :, : degree + 1] = found.reshape(2, degree + 1)
    return zeros, factors


def _layer(
    peer: Any, mlps: Mapping[str, tuple[nn.Linear, nn.Linear]], psi: EGNNMap | None, **options: Any
) -> tuple[Conv, Names]:
    """A layer of EGNN from its MLPs: edge, node, coordinates."""
    edge_dim, order = options.pop("edge_dim"), options.pop("order")
    spec = egnn(**options.pop("network")).layer.but(edge=order)
    conv = Conv(
        spec,
        mlps["node"][1].out_features,
        mlps["node"][1].out_features,
        edge_dim=edge_dim,
        hidden={"edge": mlps["edge"][1].out_features},
        mlp_hidden={name: first.out_features for name, (first, _) in mlps.items()},
        aggregation=options.pop("aggregation"),
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


def _mlps(peer: Any) -> dict[str, tuple[nn.Linear, nn.Linear]]:
    """The MLPs of egnn-pytorch's layers."""
    parts = {"edge": peer.edge_mlp, "node": peer.node_mlp, "coordinates": peer.coors_mlp}
    return {name: (mlp[0], mlp[3]) for name, mlp in parts.items() if mlp is not None}


def _egnn_sparse(peer: Any) -> tuple[Conv, Names]:
    _refuse(
        peer,
        fourier_features=peer.fourier_features,
        norm_feats=peer.node_norm is not None,
        update_feats="False" if not peer.update_feats else "",
        dropout=getattr(peer.dropout, "p", 0),
        aggr="max" if "max" in str(peer.aggr) else "",
    )
    how = "mean" if peer.aggr == "mean" else "sum"
    scaled = hasattr(peer.coors_norm, "scale")
    psi = EGNNMap(
        aggregation=how,
        normalise="scaled" if scaled else False,
        towards=True,
        bias=True,
        gated=False,
    )
    mlps = {
        "edge": (peer.edge_mlp[0], peer.edge_mlp[3]),
        "node": (peer.node_mlp[0], peer.node_mlp[3]),
    }
    if peer.update_coors:
        mlps["coordinates"] = (peer.coors_mlp[0], peer.coors_mlp[3])
    conv, names = _layer(
        peer,
        mlps,
        psi if peer.update_coors else None,
        network={"attention": peer.edge_weight is not None},
        order=[v.target, v.source, initial(e), d2],
        edge_dim=peer.edge_input_dim - 1 - 2 * peer.feats_dim,
        aggregation=how,
    )
    if peer.edge_weight is not None:
        names["block.updates.edge.gate"] = peer.edge_weight[0]
    if scaled and peer.update_coors:
        names["block.map.scale"] = peer.coors_norm.scale
    return conv, names


def _egnn_dense(peer: Any) -> tuple[Conv, Names]:
    """Its sum over j has j = i in it: give complete graphs with self-loops."""
    _refuse(
        peer,
        fourier_features=peer.fourier_features,
        norm_feats=isinstance(peer.node_norm, nn.LayerNorm),
        update_feats="False" if peer.node_mlp is None else "",
        dropout=getattr(peer.edge_mlp[1], "p", 0),
    )
    scaled = hasattr(peer.coors_norm, "scale")
    psi = EGNNMap(
        aggregation="sum",
        normalise="scaled" if scaled else False,
        bias=True,
        limit=peer.coor_weights_clamp_value,
    )
    mlps = {
        "edge": (peer.edge_mlp[0], peer.edge_mlp[3]),
        "node": (peer.node_mlp[0], peer.node_mlp[3]),
    }
    if peer.coors_mlp is not None:
        mlps["coordinates"] = (peer.coors_mlp[0], peer.coors_mlp[3])
    width = peer.node_mlp[3].out_features
    conv, names = _layer(
        peer,
        mlps,
        psi if peer.coors_mlp is not None else None,
        network={"attention": peer.edge_gate is not None},
        order=[v.target, v.source, d2, initial(e)],
        edge_dim=peer.edge_mlp[0].in_features - 1 - 2 * width,
        aggregation=peer.m_pool_method,
    )
    if peer.edge_gate is not None:
        names["block.updates.edge.gate"] = peer.edge_gate[0]
    if scaled and peer.coors_mlp is not None:
        names["block.map.scale"] = peer.coors_norm.scale
    return conv, names


def _e_gcl(peer: Any) -> tuple[Conv, Names]:
    """EGNN's own layer, with velocities or without."""
    return _layer(
        peer,
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
    _same_swish(peer, peer.edge_mlp[1])
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


def _egnn(peer: Any) -> tuple[Model, Names]:
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
    ours = _parameters(model)
    # the last layer moves coordinates that nobody reads
    return model, {n: t for n, t in names.items() if any(o.startswith(n) for o in ours)}


_READERS: dict[str, Callable[[Any], tuple[Model | Conv, Names]]] = {
    "SchNet": _schnet,
    "DimeNet": _dimenet,
    "DimeNetPlusPlus": _dimenet,
    "EGNN": _egnn,
    "E_GCL": _e_gcl,
    "E_GCL_vel": _e_gcl,
    "EGNN_Sparse": _egnn_sparse,
}
