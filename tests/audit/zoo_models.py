"""Networks and layers of other people, built by their own packages."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from audit.exhibit import Given, atoms, ethanol, noisy
from audit.faulty import molecule
from symgnn.audit import adapters
from symgnn.topology import radius_graph

# ---------------------------------------------------------------- PyTorch Geometric


def search(pos: Tensor, r: float, batch: Tensor | None = None, loop: bool = False, **_: object):
    """All neighbours, in place of the compiled search of `torch_cluster`."""
    return radius_graph(pos.detach(), r, batch, loop=loop)


def pyg_model(name: str, **options: Any) -> nn.Module:
    from torch_geometric.nn import models
    from torch_geometric.nn.models import dimenet, schnet, visnet

    from nn.peers import triplets

    for module in (dimenet, schnet, visnet):
        module.radius_graph = search
    dimenet.triplets = triplets
    torch.manual_seed(0)
    return getattr(models, name)(**options)


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
            out = model(z[None], pos[None], torch.ones_like(z[None], dtype=torch.bool))
            return {"scalar": out["0"].reshape(len(z)), "vector": out["1"].reshape(len(z), 3)}

        return Given(both, atoms(), {"elements": 3, "search": 16, "grow": False})

    def dense(z: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        h, moved = model(z[None], pos[None])
        return h[0], moved[0]

    return Given(dense, atoms(), {"elements": 4, "search": 64})


def gvp() -> Given:
    from geometric_vector_perceptron import GVP

    torch.manual_seed(0)
    layer = GVP(dim_vectors_in=9, dim_vectors_out=4, dim_feats_in=4, dim_feats_out=5)

    def call(x: Tensor, pos: Tensor) -> dict[str, Tensor]:
        apart = pos[:, None] - pos
        far = apart.norm(dim=-1).sort(1).indices[:, :, None].expand(-1, -1, 3)
        feats, vectors = layer((x, apart.gather(1, far)))
        return {"feats": feats, "vectors": vectors}

    return Given(call, molecule(), {"grow": False})


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


# ---------------------------------------------------------------- e3nn, NequIP, MACE


def e3nn_network(irreps: str) -> Given:
    from e3nn.nn.models.v2106.gate_points_networks import SimpleNetwork

    torch.manual_seed(0)
    lmax = 2 if "0o" in irreps or "2" in irreps else 1
    model = SimpleNetwork(
        "4x0e", irreps, 3.0, 3.0, 9.0, mul=2, layers=2, lmax=lmax, pool_nodes=False
    )
    options = {"elements": 2, "search": 8, "grow": False}
    return Given(adapters.e3nn(noisy(model, 0.3)), molecule(6), options)


def nequip_model(allegro: bool) -> Given:
    torch.manual_seed(0)
    shared = {"seed": 0, "model_dtype": "float64", "r_max": 4.0, "type_names": ["H", "C", "O"]}
    shared |= {"l_max": 1, "parity": True, "avg_num_neighbors": 6.0}
    if allegro:
        from allegro.model import AllegroModel

        model = AllegroModel(
            num_layers=1,
            num_scalar_features=8,
            num_tensor_features=4,
            radial_chemical_embed={
                "_target_": "allegro.nn.TwoBodyBesselScalarEmbed",
                "num_bessels": 4,
            },
            **shared,
        )
    else:
        from nequip.model import NequIPGNNModel

        model = NequIPGNNModel(num_layers=2, num_features=4, radial_mlp_width=8, **shared)
    data = Data(pos=torch.from_numpy(ethanol().positions), z=torch.tensor(ethanol().numbers))
    options = {"elements": 3, "search": 16, "grow": False}
    return Given(adapters.nequip(model, cutoff=4.0), data, options)


def mace_model(dipoles: bool = False, scripted: bool = False) -> Given:
    import numpy as np
    from e3nn import o3
    from mace import modules

    torch.manual_seed(0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        options: dict[str, Any] = {
            "r_max": 4.0,
            "num_bessel": 4,
            "num_polynomial_cutoff": 5,
            "max_ell": 2,
            "interaction_cls": modules.RealAgnosticResidualInteractionBlock,
            "interaction_cls_first": modules.RealAgnosticResidualInteractionBlock,
            "num_interactions": 2,
            "num_elements": 3,
            "hidden_irreps": o3.Irreps("4x0e + 4x1o"),
            "MLP_irreps": o3.Irreps("4x0e"),
            "atomic_energies": np.array([-13.0, -1000.0, -2000.0]),
            "avg_num_neighbors": 6.0,
            "atomic_numbers": [1, 6, 8],
            "correlation": 2,
            "gate": torch.nn.functional.silu,
        }
        if dipoles:
            options["atomic_energies"] = None
            model = modules.AtomicDipolesMACE(**options)
        else:
            model = modules.MACE(**options)
    finally:
        torch.set_default_dtype(default)
    if scripted:
        from e3nn.util import jit

        model = jit.compile(model)
    data = Data(pos=torch.from_numpy(ethanol().positions), z=torch.tensor(ethanol().numbers))
    return Given(
        adapters.mace(model, **({"compute_force": False} if dipoles else {})),
        data,
        {"elements": 3, "search": 16, "grow": False},
    )


# ---------------------------------------------------------------- schnetpack, torchmd-net


def schnetpack_model(name: str) -> Given:
    import schnetpack as spk

    torch.manual_seed(0)
    basis = spk.nn.GaussianRBF(n_rbf=8, cutoff=5.0)
    cutoff = spk.nn.CosineCutoff(5.0)
    sizes: dict[str, Any] = {"n_atom_basis": 8, "n_interactions": 2, "radial_basis": basis}
    if name == "SO3net":
        sizes |= {"lmax": 2}
    representation = getattr(spk.representation, name)(cutoff_fn=cutoff, **sizes)
    model = spk.model.NeuralNetworkPotential(
        representation=representation,
        input_modules=[spk.atomistic.PairwiseDistances()],
        output_modules=[
            spk.atomistic.Atomwise(n_in=8, output_key="energy"),
            spk.atomistic.Forces(energy_key="energy", force_key="forces"),
        ],
    )
    return Given(adapters.schnetpack(model), atoms(), {"elements": 4, "search": 64})


def torchmd_model(name: str, group: str = "O(3)") -> Given:
    from torchmdnet.models.model import create_model

    torch.manual_seed(0)
    model = create_model(
        {
            "model": name,
            "embedding_dimension": 16,
            "num_layers": 1,
            "num_rbf": 8,
            "rbf_type": "expnorm",
            "trainable_rbf": False,
            "activation": "silu",
            "attn_activation": "silu",
            "num_heads": 2,
            "distance_influence": "both",
            "neighbor_embedding": True,
            "aggr": "add",
            "cutoff_lower": 0.0,
            "cutoff_upper": 5.0,
            "max_z": 10,
            "max_num_neighbors": 64,
            "precision": 32,
            "equivariance_invariance_group": group,
            "output_model": "Scalar",
            "reduce_op": "add",
            "derivative": True,
            "prior_model": None,
            "atom_filter": -1,
            "output_mlp_num_layers": 0,
        }
    )
    return Given(adapters.torchmd_net(model), atoms(), {"elements": 4, "search": 64})
