"""Models and calculators of other people, with the symmetry that their authors claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from audit.faulty import molecule
from symgnn.audit import adapters
from symgnn.topology import radius_graph

E3 = ("E(3)", "permutations")
SE3 = ("SE(3)", "permutations")


@dataclass
class Given:
    """A model, what it is audited on, and options of the audit."""

    model: Any
    data: Any
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Exhibit:
    """A model that somebody else wrote.

    `holds` are the groups that its authors claim, `breaks` those that it is known not to have.
    """

    name: str
    package: str  # as pip calls it
    needs: tuple[str, ...]  # what has to be importable
    make: Callable[[], Given]
    holds: tuple[str, ...] = E3
    breaks: tuple[str, ...] = ()
    quick: bool = False  # in the default run
    note: str = ""  # what was found


def atoms(scale: float = 1.3) -> Data:
    data = molecule()
    return Data(pos=scale * data.pos, z=data.z)


def ethanol() -> Any:
    from ase.build import molecule as build

    found = build("CH3CH2OH")
    found.rattle(0.05, seed=1)
    return found


def crystal(name: str = "Cu", **options: Any) -> Any:
    from ase.build import bulk

    found = bulk(name, cubic=True, **options)
    found.rattle(0.1, seed=1)
    return found


def noisy(model: nn.Module, size: float = 0.2) -> nn.Module:
    """With random parameters also where it starts at zero."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.data += size * torch.randn_like(parameter)
    return model


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


# ---------------------------------------------------------------- calculators


def calculator(make: Callable[[], Any], data: Callable[[], Any], **options: Any) -> Given:
    return Given(make(), data(), {"elements": 4, "search": 32, **options})


def ase_calculator(name: str) -> Given:
    if name == "EMT":
        from ase.calculators.emt import EMT

        return calculator(EMT, ethanol)
    if name == "EMT, periodic":
        from ase.calculators.emt import EMT

        return calculator(EMT, crystal)
    if name == "LennardJones":
        from ase.calculators.lj import LennardJones

        make = partial(LennardJones, sigma=3.4, epsilon=0.01, rc=6.0, smooth=True)
        return calculator(make, partial(crystal, "Ar", crystalstructure="fcc", a=5.3))
    if name == "MorsePotential":
        from ase.calculators.morse import MorsePotential

        return calculator(partial(MorsePotential, epsilon=1.0, r0=1.5, rho0=3.0), ethanol)
    if name == "TIP3P":
        from ase import Atoms
        from ase.build import molecule as build
        from ase.calculators.tip3p import TIP3P

        def dimer() -> Any:
            one, two = build("H2O"), build("H2O")
            two.translate([2.5, 1.0, 0.5])
            order = [0, 1, 2]
            both = Atoms(one[order] + two[order])
            both.rattle(0.02, seed=1)
            return both

        return calculator(partial(TIP3P, rc=9.0), dimer, grow=False, checks=False)
    from ase.calculators.tersoff import Tersoff, TersoffParameters

    numbers = [3.0, 1.0, 1.3258, 4.8381, 2.0417, 0.0, 22.956, 0.33675, 1.3258, 95.373, 3.0, 0.2]
    numbers += [3.2394, 3264.7]
    silicon = {("Si", "Si", "Si"): TersoffParameters(*numbers)}
    return calculator(partial(Tersoff, silicon), partial(crystal, "Si"))


def other_calculator(name: str) -> Given:
    small = {"elements": 3, "search": 8, "grow": False}
    if name == "tblite":
        from tblite.ase import TBLite

        return calculator(partial(TBLite, method="GFN2-xTB", verbosity=0), ethanol, **small)
    if name == "dftd3":
        from dftd3.ase import DFTD3

        return calculator(partial(DFTD3, method="PBE", damping="d3bj"), ethanol, **small)
    if name == "dftd4":
        from dftd4.ase import DFTD4

        return calculator(partial(DFTD4, method="PBE"), ethanol, **small)
    if name == "torch-dftd":
        from torch_dftd.torch_dftd3_calculator import TorchDFTD3Calculator

        make = partial(TorchDFTD3Calculator, device="cpu", damping="bj", xc="pbe")
        return calculator(make, ethanol, **small)
    if name == "chgnet":
        from chgnet.model.dynamics import CHGNetCalculator

        make = partial(CHGNetCalculator, use_device="cpu")
        return calculator(make, crystal, **{**small, "elements": 2, "search": 4})
    from sevenn.calculator import SevenNetCalculator

    return calculator(partial(SevenNetCalculator, "7net-0", device="cpu"), ethanol, **small)


def descriptor(name: str) -> Given:
    from ase import Atoms
    from dscribe.descriptors import ACSF, SOAP

    if name == "SOAP":
        made = SOAP(species=["H", "C", "O"], r_cut=4.0, n_max=3, l_max=3, periodic=False)
    else:
        made = ACSF(species=["H", "C", "O"], r_cut=4.0, g2_params=[[1, 1], [1, 2]])

    def call(pos: Tensor, z: Tensor) -> Any:
        found = Atoms(z.numpy(), pos.double().detach().numpy())
        return made.create(found).reshape(len(z), -1)

    data = {"pos": ethanol().positions, "z": ethanol().numbers}
    return Given(call, data, {"elements": 3, "search": 16})


def hartree_fock() -> Given:
    from pyscf import gto, scf

    def call(pos: Tensor, z: Tensor) -> dict[str, float]:
        lines = [[int(a), tuple(x)] for a, x in zip(z, pos.double().tolist(), strict=True)]
        mol = gto.M(atom=lines, basis="sto-3g", unit="Angstrom", verbose=0)
        field_ = scf.RHF(mol)
        field_.conv_tol = 1e-12
        energy = field_.kernel()
        return {"energy": energy, "dipole": field_.dip_moment(verbose=0)[None]}

    pos = [[0.0, 0.0, 0.1], [0.0, 0.8, -0.5], [0.1, -0.7, -0.5]]
    data = {"pos": torch.tensor(pos).double(), "z": torch.tensor([8, 1, 1])}
    options = {"elements": 2, "search": 0, "grow": False, "checks": False}
    return Given(call, data, {**options, "units": {"energy": "Ha", "dipole": "D"}})


ZOO = [
    Exhibit("SchNet", "torch_geometric", (), schnet, quick=True),
    Exhibit("DimeNet", "torch_geometric", (), partial(dimenet, "DimeNet")),
    Exhibit("DimeNet++", "torch_geometric", (), partial(dimenet, "DimeNetPlusPlus")),
    Exhibit("ViSNet", "torch_geometric", (), visnet, quick=True),
    Exhibit(
        "PointNetConv",
        "torch_geometric",
        (),
        partial(pyg_layer, "PointNetConv"),
        ("translations", "permutations"),
        ("SO(3)",),
        True,
    ),
    Exhibit("PPFConv", "torch_geometric", (), partial(pyg_layer, "PPFConv"), quick=True),
    Exhibit(
        "PointTransformerConv",
        "torch_geometric",
        (),
        partial(pyg_layer, "PointTransformerConv"),
        ("translations", "permutations"),
        ("SO(3)",),
        True,
    ),
    Exhibit(
        "EdgeConv on coordinates",
        "torch_geometric",
        (),
        partial(pyg_layer, "EdgeConv"),
        ("permutations",),
        ("SO(3)", "translations"),
        True,
    ),
    Exhibit(
        "GMMConv",
        "torch_geometric",
        (),
        partial(pyg_layer, "GMMConv"),
        ("translations", "permutations"),
        ("SO(3)",),
    ),
    Exhibit("EGNN layer", "egnn-pytorch", ("egnn_pytorch",), egnn_layer, quick=True),
    Exhibit("EGNN network", "egnn-pytorch", ("egnn_pytorch",), egnn_network),
    Exhibit("EnTransformer", "en-transformer", ("en_transformer",), partial(dense_model, "en")),
    Exhibit(
        "GotenNet", "gotennet-pytorch", ("gotennet_pytorch",), partial(dense_model, "gotennet")
    ),
    Exhibit(
        "SE3Transformer",
        "se3-transformer-pytorch",
        ("se3_transformer_pytorch",),
        partial(dense_model, "se3"),
        SE3,
    ),
    Exhibit("GVP", "geometric-vector-perceptron", ("geometric_vector_perceptron",), gvp),
    Exhibit(
        "InvariantPointAttention",
        "invariant-point-attention",
        ("invariant_point_attention",),
        ipa,
        SE3,
    ),
    Exhibit(
        "PointTransformerLayer",
        "point-transformer-pytorch",
        ("point_transformer_pytorch",),
        point_transformer,
        ("translations", "permutations"),
        ("SO(3)",),
    ),
    Exhibit("SimpleNetwork 2x0e", "e3nn", ("e3nn",), partial(e3nn_network, "2x0e")),
    Exhibit("SimpleNetwork 1x0o", "e3nn", ("e3nn",), partial(e3nn_network, "1x0o")),
    Exhibit(
        "SimpleNetwork 1x0e+1x1o+1x2e", "e3nn", ("e3nn",), partial(e3nn_network, "1x0e+1x1o+1x2e")
    ),
    Exhibit("NequIP", "nequip", ("nequip",), partial(nequip_model, False)),
    Exhibit("Allegro", "nequip-allegro", ("allegro",), partial(nequip_model, True)),
    Exhibit("MACE", "mace-torch", ("mace",), mace_model),
    Exhibit("MACE, TorchScript", "mace-torch", ("mace",), partial(mace_model, scripted=True)),
    Exhibit("AtomicDipolesMACE", "mace-torch", ("mace",), partial(mace_model, dipoles=True)),
    Exhibit("SchNet", "schnetpack", ("schnetpack",), partial(schnetpack_model, "SchNet")),
    Exhibit("PaiNN", "schnetpack", ("schnetpack",), partial(schnetpack_model, "PaiNN")),
    Exhibit("SO3net", "schnetpack", ("schnetpack",), partial(schnetpack_model, "SO3net")),
    Exhibit("TensorNet, O(3)", "torchmd-net", ("torchmdnet",), partial(torchmd_model, "tensornet")),
    Exhibit(
        "TensorNet, SO(3)",
        "torchmd-net",
        ("torchmdnet",),
        partial(torchmd_model, "tensornet", "SO(3)"),
        SE3,
        ("reflections",),
    ),
    Exhibit(
        "Equivariant transformer",
        "torchmd-net",
        ("torchmdnet",),
        partial(torchmd_model, "equivariant-transformer"),
    ),
    Exhibit(
        "Graph network", "torchmd-net", ("torchmdnet",), partial(torchmd_model, "graph-network")
    ),
    Exhibit("EMT", "ase", ("ase",), partial(ase_calculator, "EMT"), quick=True),
    Exhibit("EMT, periodic", "ase", ("ase",), partial(ase_calculator, "EMT, periodic")),
    Exhibit("LennardJones, periodic", "ase", ("ase",), partial(ase_calculator, "LennardJones")),
    Exhibit(
        "MorsePotential", "ase", ("ase",), partial(ase_calculator, "MorsePotential"), quick=True
    ),
    Exhibit(
        "TIP3P",
        "ase",
        ("ase",),
        partial(ase_calculator, "TIP3P"),
        ("E(3)",),
        ("permutations",),
        note="it tells O and H by their places in the sequence",
    ),
    Exhibit(
        "Tersoff, periodic", "ase", ("ase.calculators.tersoff",), partial(ase_calculator, "Tersoff")
    ),
    Exhibit("GFN2-xTB", "tblite", ("tblite.ase",), partial(other_calculator, "tblite")),
    Exhibit("DFT-D3", "dftd3", ("dftd3.ase",), partial(other_calculator, "dftd3")),
    Exhibit("DFT-D4", "dftd4", ("dftd4.ase",), partial(other_calculator, "dftd4")),
    Exhibit(
        "DFT-D3 in torch", "torch-dftd", ("torch_dftd",), partial(other_calculator, "torch-dftd")
    ),
    Exhibit(
        "CHGNet 0.3.0", "chgnet", ("chgnet.model.dynamics",), partial(other_calculator, "chgnet")
    ),
    Exhibit("SevenNet-0", "sevenn", ("sevenn.calculator",), partial(other_calculator, "sevenn")),
    Exhibit("SOAP", "dscribe", ("dscribe.descriptors",), partial(descriptor, "SOAP")),
    Exhibit("ACSF", "dscribe", ("dscribe.descriptors",), partial(descriptor, "ACSF")),
    Exhibit("RHF/STO-3G", "pyscf", ("pyscf",), hartree_fock),
]
