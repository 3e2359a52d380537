"""Cases of the tests test_from_peer, test_from_peer_refusals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn.models import DimeNet, DimeNetPlusPlus, SchNet

from nn.egnn_layers import CleanLayer, CleanNetwork, RecurrentLayer, VelocityLayer
from nn.peers import directed, molecules, on_graph
from symgnn.nn import from_peer

egnn_pytorch = pytest.importorskip("egnn_pytorch", reason="egnn-pytorch is in the extra 'test'")


def randomised(module: nn.Module) -> nn.Module:
    """Weights that no constructor gives, and that single precision cannot hold."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in module.double().parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.2 * noise)
    return module


def features(width: int, rows: int) -> Tensor:
    generator = torch.Generator().manual_seed(width)
    return torch.randn(rows, width, generator=generator, dtype=torch.float64)


def run_pyg(peer: Any, ours: Any) -> tuple:
    batch = molecules()
    with on_graph(batch.edge_index):
        return (peer(batch.z, batch.pos, batch.batch),), (ours(batch),)


def run_layer(peer: Any, ours: Any, batch: Batch | None = None) -> tuple:
    batch = directed(molecules()) if batch is None else batch
    inputs = peer.node_mlp[0].in_features - peer.edge_mlp[2].out_features
    edges = peer.edge_mlp[0].in_features - 1 - 2 * inputs
    x, edge_attr = features(inputs, 14), features(edges, batch.num_edges) if edges else None
    vel = features(3, 14) if hasattr(peer, "coord_mlp_vel") else None
    theirs = peer(x, batch.edge_index.flip(0), batch.pos, edge_attr, vel)
    return theirs, ours(x, batch.pos, batch.edge_index, edge_attr, batch.batch, vel=vel)


def run_network(peer: Any, ours: Any) -> tuple:
    batch = directed(molecules())
    edges, batch.z = ours.features["e"], None
    batch.x, batch.edge_attr = features(ours.features["v"], 14), None
    if edges:
        batch.edge_attr = features(edges, batch.num_edges)
    theirs, _ = peer(batch.x, batch.pos, batch.edge_index.flip(0), batch.edge_attr)
    return (theirs,), (ours(batch),)


def run_sparse(peer: Any, ours: Any) -> tuple:
    batch = directed(molecules())
    batch.pos = features(peer.pos_dim, 14)
    x, edges = features(peer.feats_dim, 14), ours.features["e"]
    edge_attr = features(edges, batch.num_edges) if edges else None
    out = peer(torch.cat([batch.pos, x], 1), batch.edge_index, edge_attr, batch=batch.batch)
    mine = ours(x, batch.pos, batch.edge_index, edge_attr, batch.batch)
    moved, new = out.split([peer.pos_dim, peer.feats_dim], 1)
    return (new, moved) if peer.update_coors else (new,), mine if peer.update_coors else (mine,)


def run_dense(peer: Any, ours: Any) -> tuple:
    count, edges = 7, ours.features["e"]
    x, pos = features(ours.in_channels, count), features(3, count)
    edge_attr = features(edges, count * count) if edges else None
    square = None if edge_attr is None else edge_attr.view(1, count, count, edges)
    target, source = torch.cartesian_prod(torch.arange(count), torch.arange(count)).T
    theirs = [out[0] for out in peer(x[None], pos[None], square)]
    mine = ours(x, pos, torch.stack([source, target]), edge_attr)
    return (theirs, mine) if isinstance(mine, tuple) else (theirs[:1], (mine,))


@dataclass(frozen=True)
class Peer:
    """A module of other people, the least that it takes, and how both are run on one graph."""

    make: Callable[..., nn.Module]
    sizes: dict[str, Any]
    run: Callable[[Any, Any], tuple]
    changes: dict[str, Any]
    refused: frozenset[str] = frozenset()


def _peer(make: Any, run: Any, sizes: dict, refused: str = "", **changes: Any) -> Peer:
    return Peer(make, sizes, run, changes, frozenset(refused.split()))


LAYER = {
    "input_nf": 7,
    "output_nf": 6,
    "hidden_nf": 11,
    "edges_in_d": 3,
    "act_fn": nn.ReLU(),
    "attention": True,
    "tanh": True,
}


GCL = {**LAYER, "recurrent": False, "coords_weight": 0.3, "norm_diff": True, "nodes_att_dim": 2}


RADIUS = {"cutoff": 4.5, "max_num_neighbors": 3}


DIME = {
    **RADIUS,
    "hidden_channels": 9,
    "out_channels": 3,
    "num_blocks": 2,
    "num_spherical": 3,
    "num_radial": 3,
    "envelope_exponent": 4,
    "num_before_skip": 2,
    "num_after_skip": 1,
    "num_output_layers": 2,
    "act": "relu",
    "output_initializer": "glorot_orthogonal",
}


LAYERS = {
    "edge_dim": 2,
    "m_dim": 7,
    "fourier_features": 3,
    "dropout": 0.5,
    "norm_feats": True,
    "norm_coors": True,
    "norm_coors_scale_init": 0.5,
    "update_feats": False,
    "update_coors": False,
    "coor_weights_clamp_value": 0.02,
}


SMALL = {"hidden_channels": 8, "out_channels": 2, "num_blocks": 1, "num_spherical": 2}


PEERS = {
    "SchNet": _peer(
        SchNet,
        run_pyg,
        {"hidden_channels": 8, "num_filters": 6, "num_interactions": 1, "num_gaussians": 5},
        "interaction_graph dipole mean std atomref",
        **{**RADIUS, "hidden_channels": 10, "num_filters": 7, "num_interactions": 2},
        num_gaussians=9,
        interaction_graph=lambda pos, batch: None,
        readout="mean",
        dipole=True,
        mean=0.0,
        std=2.0,
        atomref=torch.ones(100, 1),
    ),
    "DimeNet": _peer(
        DimeNet,
        run_pyg,
        {**SMALL, "num_bilinear": 3, "num_radial": 2, "output_initializer": "glorot_orthogonal"},
        "act",
        **{**DIME, "output_initializer": "zeros"},
        num_bilinear=2,
    ),
    "DimeNet++": _peer(
        DimeNetPlusPlus,
        run_pyg,
        {**SMALL, "int_emb_size": 4, "basis_emb_size": 3, "out_emb_channels": 6, "num_radial": 2},
        "act",
        **DIME,
        int_emb_size=5,
        basis_emb_size=2,
        out_emb_channels=7,
    ),
    "E_GCL of egnn_clean": _peer(
        CleanLayer,
        run_layer,
        {"input_nf": 6, "output_nf": 6, "hidden_nf": 10},
        "act_fn",
        **LAYER,
        residual=False,
        normalize=True,
        coords_agg="sum",
    ),
    "E_GCL of gcl": _peer(
        RecurrentLayer,
        run_layer,
        {"input_nf": 6, "output_nf": 6, "hidden_nf": 10, "act_fn": nn.SiLU()},
        "act_fn nodes_att_dim",
        **GCL,
        clamp=True,
    ),
    "E_GCL_vel": _peer(
        VelocityLayer,
        run_layer,
        {"input_nf": 6, "output_nf": 6, "hidden_nf": 10, "act_fn": nn.SiLU()},
        "act_fn nodes_att_dim",
        **GCL,
    ),
    "EGNN": _peer(
        CleanNetwork,
        run_network,
        {"in_node_nf": 4, "hidden_nf": 6, "out_node_nf": 2, "n_layers": 2},
        "act_fn",
        in_node_nf=5,
        hidden_nf=7,
        out_node_nf=3,
        in_edge_nf=2,
        device="cpu",
        act_fn=nn.ReLU(),
        n_layers=3,
        residual=False,
        attention=True,
        normalize=True,
        tanh=True,
    ),
    "EGNN_Sparse": _peer(
        egnn_pytorch.EGNN_Sparse,
        run_sparse,
        {"feats_dim": 6, "m_dim": 5},
        "dropout update_feats",
        **{n: v for n, v in LAYERS.items() if n != "edge_dim"},
        feats_dim=5,
        pos_dim=2,
        edge_attr_dim=2,
        soft_edge=1,
        aggr="mean",
    ),
    "egnn_pytorch.EGNN": _peer(
        egnn_pytorch.EGNN,
        run_dense,
        {"dim": 6, "m_dim": 5},
        "dropout update_feats num_nearest_neighbors only_sparse_neighbors valid_radius",
        **LAYERS,
        dim=5,
        num_nearest_neighbors=3,
        init_eps=0.1,
        only_sparse_neighbors=True,
        valid_radius=1.0,
        m_pool_method="mean",
        soft_edges=True,
    ),
}


@torch.no_grad()
def equal(peer: Peer, module: nn.Module) -> None:
    """Values as the peer's, to rounding."""
    theirs, mine = peer.run(module, from_peer(module))
    for one, other in zip(mine, theirs, strict=True):
        assert one.shape == other.shape
        assert float((one - other).abs().max()) < 1e-10 * max(float(other.abs().max()), 1)
