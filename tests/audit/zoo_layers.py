"""Networks and layers of PyTorch Geometric and of lucidrains, built by their own packages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from audit.exhibit import Given, atoms, noisy
from audit.faulty import molecule

# ---------------------------------------------------------------- PyTorch Geometric


def search(pos: Tensor, r: float, batch: Tensor | None = None, loop: bool = False, **_: object):
    """All neighbours, in place of the compiled search of `torch_cluster`."""
    points = pos.detach()
    near = (points[:, None] - points).square().sum(-1) < r * r
    if batch is not None:
        near &= batch[:, None] == batch
    if not loop:
        near.fill_diagonal_(False)
    return near.nonzero().T.flip(0)


def triplets(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, ...]:
    """All pairs of edges k -> j -> i with k != i, in place of the one of `torch_sparse`."""
    row, col = edge_index
    ji, kj = (row[:, None] == col[None, :]).nonzero().T
    there = col[ji] != row[kj]
    ji, kj = ji[there], kj[there]
    return col, row, col[ji], row[ji], row[kj], kj, ji


def pyg_model(name: str, **options: Any) -> Callable[..., Any]:
    """A network of PyG, without its compiled extensions."""
    from torch_geometric.nn import models

    torch.manual_seed(0)
    model = getattr(models, name)(**options)

    def call(z: Tensor, pos: Tensor, batch: Tensor | None = None) -> Any:
        home = "torch_geometric.nn.models."
        with ExitStack() as stack:
            for module in ("dimenet", "schnet", "visnet"):
                stack.enter_context(patch(f"{home}{module}.radius_graph", search))
            stack.enter_context(patch(f"{home}dimenet.triplets", triplets))
            return model(z, pos, torch.zeros_like(z) if batch is None else batch)

    return call


def schnet() -> Given:
    model = pyg_model("SchNet", hidden_channels=16, num_filters=16, num_interactions=2, cutoff=5.0)
    return Given(model, atoms())


def dimenet(name: str) -> Given:
    sizes = {"hidden_channels": 16, "out_channels": 1, "num_blocks": 1, "cutoff": 5.0}
    sizes |= {"num_spherical": 3, "num_radial": 4, "output_initializer": "glorot_orthogonal"}
    if name == "DimeNet":
        sizes |= {"num_bilinear": 4}
    else:
        sizes |= {"int_emb_size": 8, "basis_emb_size": 5, "out_emb_channels": 8}
    return Given(pyg_model(name, **sizes), atoms(), {"elements": 3, "search": 16})


def visnet() -> Given:
    sizes = {"hidden_channels": 16, "num_heads": 4, "num_layers": 1, "num_rbf": 8}
    model = pyg_model("ViSNet", derivative=True, **sizes)
    return Given(model, atoms(), {"outputs": {"0": "invariant", "1": "vector"}})


def pyg_layer(name: str) -> Given:
    from torch_geometric import nn as pyg

    torch.manual_seed(0)
    mlp = partial(lambda a, b: nn.Sequential(nn.Linear(a, 16), nn.SiLU(), nn.Linear(16, b)))
    data = molecule()
    if name == "PointNetConv":
        layer = pyg.PointNetConv(mlp(7, 8), mlp(8, 4))
        return Given(lambda x, pos, edge_index: layer(x, pos, edge_index), data)
    if name == "PPFConv":
        layer = pyg.PPFConv(mlp(8, 8), mlp(8, 4))
        data.normal = nn.functional.normalize(data.x[:, :3], dim=1)
        call = lambda x, pos, normal, edge_index: layer(x, pos, normal, edge_index)  # noqa: E731
        return Given(call, data, {"vectors": "normal"})
    if name == "PointTransformerConv":
        layer = pyg.PointTransformerConv(4, 8, mlp(3, 8), mlp(8, 8))
        return Given(lambda x, pos, edge_index: layer(x, pos, edge_index), data)
    if name == "EdgeConv":
        layer = pyg.EdgeConv(mlp(6, 8), "max")
        return Given(lambda pos, edge_index: layer(pos, edge_index), data)
    layer = pyg.GMMConv(4, 8, dim=3, kernel_size=2)

    def relative(x, pos, edge_index):
        return layer(x, edge_index, pos[edge_index[0]] - pos[edge_index[1]])

    return Given(relative, data)


# ---------------------------------------------------------------- lucidrains


def egnn_layer() -> Given:
    from egnn_pytorch import EGNN

    torch.manual_seed(0)
    layer = EGNN(dim=4, m_dim=8, init_eps=0.5)

    def dense(x: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        h, moved = layer(x.unsqueeze(0), pos.unsqueeze(0))
        return h[0], moved[0]

    return Given(dense, molecule())


def egnn_network() -> Given:
    from egnn_pytorch import EGNN_Network

    torch.manual_seed(0)
    model = EGNN_Network(num_tokens=10, dim=8, depth=2, num_nearest_neighbors=4)
    noisy(model, 0.1)

    def dense(z: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        h, moved = model(z[None], pos[None])
        return h[0], moved[0]

    return Given(dense, atoms())


def dense_model(name: str) -> Given:
    torch.manual_seed(0)
    if name == "en":
        from en_transformer import EnTransformer

        model = noisy(EnTransformer(dim=16, depth=1, num_tokens=10, dim_head=32, heads=2), 0.1)
    elif name == "gotennet":
        from gotennet_pytorch import GotenNet

        model = noisy(GotenNet(dim=16, max_degree=2, depth=1, heads=2, dim_head=8), 0.05)
    else:
        return degrees_model(name)

    def dense(z: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        h, moved = model(z[None], pos[None])
        return h[0], moved[0]

    return Given(dense, atoms(), {"elements": 4, "search": 64})


def degrees_model(name: str) -> Given:
    """A network with features of degree 0 and 1."""
    torch.manual_seed(0)
    if name == "equiformer":
        from equiformer_pytorch import Equiformer

        model = Equiformer(
            num_tokens=10,
            dim=(8, 4),
            dim_head=(4, 4),
            heads=(2, 2),
            num_degrees=2,
            depth=1,
            num_linear_attn_heads=0,
            reduce_dim_out=True,
            attend_self=True,
            num_neighbors=8,
        )
    else:
        from se3_transformer_pytorch import SE3Transformer

        model = SE3Transformer(
            dim=8,
            heads=2,
            depth=1,
            dim_head=4,
            num_degrees=2,
            output_degrees=2,
            num_tokens=10,
            reduce_dim_out=True,
            differentiable_coors=True,
            num_neighbors=8,
        )

    def both(z: Tensor, pos: Tensor) -> dict[str, Tensor]:
        mask = torch.ones_like(z[None], dtype=torch.bool)
        found = model(z[None], pos[None], mask)
        if name == "equiformer":
            scalars, vectors = found.type0, found.type1
        else:
            scalars, vectors = found["0"], found["1"]
        return {"scalar": scalars.reshape(len(z)), "vector": vectors.reshape(len(z), 3)}

    return Given(both, atoms(), {"elements": 3, "search": 16, "grow": False})


def ipa() -> Given:
    from invariant_point_attention import InvariantPointAttention

    torch.manual_seed(0)
    layer = InvariantPointAttention(dim=4, heads=2, require_pairwise_repr=False)
    data = molecule()
    data.frame = torch.linalg.qr(torch.randn(9, 3, 3)).Q

    def call(x: Tensor, pos: Tensor, frame: Tensor) -> Tensor:
        return layer(x[None], rotations=frame[None], translations=pos[None])[0]

    return Given(call, data, {"inputs": {"frame": "vector"}})


def point_transformer() -> Given:
    from point_transformer_pytorch import PointTransformerLayer

    torch.manual_seed(0)
    layer = PointTransformerLayer(dim=4, pos_mlp_hidden_dim=16, attn_mlp_hidden_mult=2)
    return Given(lambda x, pos: layer(x[None], pos[None])[0], molecule())
