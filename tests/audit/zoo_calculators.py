"""Calculators, descriptors and quantum chemistry of other people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from audit.exhibit import Given, crystal, ethanol


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
