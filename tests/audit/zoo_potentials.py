"""Interatomic potentials and e3nn networks of other people, through the adapters."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from audit.exhibit import Given, atoms, crystal, ethanol, noisy
from audit.faulty import molecule
from symgnn.audit import adapters

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
    from nequip.utils.global_state import set_global_state

    default = torch.get_default_dtype()
    set_global_state()
    torch.set_default_dtype(default)
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


# ---------------------------------------------------------------- matgl, ANI, orb


def matgl_model(name: str) -> Given:
    from matgl import models
    from matgl.apps.pes import Potential
    from matgl.ext.ase import PESCalculator

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"element_types": ("Cu",), "is_intensive": False, "cutoff": 4.0}
    sizes |= {"units": 16, "nblocks": 1}
    if name == "SO3Net":
        sizes = {"element_types": ("Cu",), "is_intensive": False, "cutoff": 4.0, "lmax": 2}
        sizes |= {"units": 16, "nmax": 4, "nlayers": 1}
    model = noisy(getattr(models, name)(**sizes).eval())
    potential = Potential(model, calc_stresses=True)
    calculator = PESCalculator(potential, stress_unit="eV/A3")
    return Given(calculator, crystal(), {"elements": 3, "search": 8})


def ani() -> Given:
    from torchani.arch import simple_ani

    torch.manual_seed(0)
    model = simple_ani(("H", "C", "O"), "wb97x-631gd", self_energies="zero", strategy="pyaev")

    def energy(pos: Tensor, z: Tensor) -> dict[str, Tensor]:
        return {"energy": model((z[None], pos[None])).energies}

    data = Data(pos=torch.from_numpy(ethanol().positions), z=torch.tensor(ethanol().numbers))
    return Given(energy, data, {"elements": 3, "search": 16})


def orb(conservative: bool) -> Given:
    from orb_models.forcefield import pretrained
    from orb_models.forcefield.atomic_system import SystemConfig
    from orb_models.forcefield.calculator import ORBCalculator

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"latent_dim": 16, "base_mlp_hidden_dim": 16, "head_mlp_hidden_dim": 16}
    sizes |= {"num_message_passing_steps": 1, "device": torch.device("cpu")}
    kind = "conservative" if conservative else "direct"
    model = getattr(pretrained, f"orb_v3_{kind}_architecture")(**sizes).eval()
    system = SystemConfig(radius=6.0, max_num_neighbors=120)
    calculator = ORBCalculator(noisy(model), system_config=system, device="cpu")
    return Given(calculator, ethanol(), {"elements": 3, "search": 8, "grow": False})


# ---------------------------------------------------------------- schnetpack, torchmd-net


def schnetpack_model(name: str, head: str = "energy") -> Given:
    from torch.utils.data import dataloader

    if not hasattr(dataloader, "T_co"):  # torch 2.13 has it no more, and schnetpack imports it
        dataloader.T_co = TypeVar("T_co", covariant=True)
    import schnetpack as spk

    torch.manual_seed(0)
    basis = spk.nn.GaussianRBF(n_rbf=8, cutoff=5.0)
    cutoff = spk.nn.CosineCutoff(5.0)
    sizes: dict[str, Any] = {"n_atom_basis": 8, "n_interactions": 2, "radial_basis": basis}
    if name == "SO3net":
        sizes |= {"lmax": 2}
    representation = getattr(spk.representation, name)(cutoff_fn=cutoff, **sizes)
    heads = {
        "energy": [
            spk.atomistic.Atomwise(n_in=8, output_key="energy"),
            spk.atomistic.Forces(energy_key="energy", force_key="forces"),
        ],
        "dipole": [
            spk.atomistic.DipoleMoment(
                n_in=8, dipole_key="dipole", predict_magnitude=False, use_vector_representation=True
            )
        ],
        "polarizability": [
            spk.atomistic.Polarizability(n_in=8, polarizability_key="polarizability")
        ],
    }
    model = spk.model.NeuralNetworkPotential(
        representation=representation,
        input_modules=[spk.atomistic.PairwiseDistances()],
        output_modules=heads[head],
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
