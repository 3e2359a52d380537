"""Models and calculators of other people, with the symmetry that their authors claim."""

from __future__ import annotations

from functools import partial

from audit.exhibit import SE3, Exhibit
from audit.zoo_calculators import (
    ase_calculator,
    descriptor,
    hartree_fock,
    other_calculator,
)
from audit.zoo_layers import (
    dense_model,
    dimenet,
    egnn_layer,
    egnn_network,
    ipa,
    point_transformer,
    pyg_layer,
    schnet,
    visnet,
)
from audit.zoo_potentials import (
    ani,
    e3nn_network,
    mace_model,
    matgl_model,
    nequip_model,
    orb,
    schnetpack_model,
    torchmd_model,
)

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
        "Equiformer",
        "equiformer-pytorch",
        ("equiformer_pytorch",),
        partial(dense_model, "equiformer"),
        SE3,
    ),
    Exhibit(
        "SE3Transformer",
        "se3-transformer-pytorch",
        ("se3_transformer_pytorch",),
        partial(dense_model, "se3"),
        SE3,
    ),
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
    Exhibit(
        "PaiNN, dipole",
        "schnetpack",
        ("schnetpack",),
        partial(schnetpack_model, "PaiNN", "dipole"),
    ),
    Exhibit(
        "PaiNN, polarizability",
        "schnetpack",
        ("schnetpack",),
        partial(schnetpack_model, "PaiNN", "polarizability"),
        ("O(3)", "permutations"),
        ("translations",),
        note="the polarizability moves with the origin: vectors are multiplied with coordinates "
        "as they are",
        claims=("E(3)",),
    ),
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
        "CHGNet 0.3.0",
        "chgnet",
        ("chgnet.model.dynamics",),
        partial(other_calculator, "chgnet"),
        SE3,
        ("reflections",),
        note="the stress changes its sign in a left-handed cell: it is divided by "
        "a volume that is negative there",
        claims=("E(3)",),
    ),
    Exhibit(
        "SevenNet-0",
        "sevenn",
        ("sevenn.calculator",),
        partial(other_calculator, "sevenn"),
        SE3,
        ("reflections",),
        note="it was trained without parity, and tells mirror images apart",
    ),
    Exhibit("M3GNet", "matgl", ("matgl",), partial(matgl_model, "M3GNet")),
    Exhibit("TensorNet", "matgl", ("matgl",), partial(matgl_model, "TensorNet")),
    Exhibit("SO3Net", "matgl", ("matgl",), partial(matgl_model, "SO3Net")),
    Exhibit("ANI", "torchani", ("torchani",), ani),
    Exhibit(
        "orb-v3, direct",
        "orb-models",
        ("orb_models.forcefield",),
        partial(orb, False),
        ("translations", "permutations"),
        ("SO(3)",),
        note="it reads vectors as they are, and its forces are an output of their own, as its "
        "authors say",
    ),
    Exhibit(
        "orb-v3, conservative",
        "orb-models",
        ("orb_models.forcefield",),
        partial(orb, True),
        ("translations", "permutations"),
        ("SO(3)",),
    ),
    Exhibit("SOAP", "dscribe", ("dscribe.descriptors",), partial(descriptor, "SOAP")),
    Exhibit("ACSF", "dscribe", ("dscribe.descriptors",), partial(descriptor, "ACSF")),
    Exhibit("RHF/STO-3G", "pyscf", ("pyscf",), hartree_fock),
]
