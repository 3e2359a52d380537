"""The calculator: what the potentials give, with a neighbour list that is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ase import Atoms, units
from ase.build import bulk
from ase.calculators.calculator import PropertyNotImplementedError
from ase.md.verlet import VelocityVerlet
from ase.optimize import BFGS

import symgnn
from train.emt_frames import emt_frames

MODEL = {"block": "combined", "hidden": 6, "layers": 2, "cutoff": 3.3}


@pytest.fixture(scope="module")
def run() -> symgnn.Run:
    settings = {"epochs": 3, "batch_size": 4, "learning_rate": 3e-3, "progress": False}
    return symgnn.fit(
        emt_frames(), MODEL, targets=["energy", "forces"], seeds=2, precision="64", **settings
    )


def crystal() -> Atoms:
    atoms = bulk("Cu", a=3.7, cubic=True) * (2, 1, 1)
    atoms.rattle(0.05, seed=5)
    return atoms


def test_gives_the_mean_of_the_potentials_and_their_deviation(run: symgnn.Run) -> None:
    atoms = crystal()
    atoms.calc = run.calculator()
    stress = atoms.get_stress()
    (graph,) = run.read(atoms)
    found = [each(run._ready(graph), stress=True) for each in run.potentials]
    energies = torch.stack([each.energy[0].detach() for each in found])
    # graphs of files have coordinates in float32
    assert atoms.get_potential_energy() == pytest.approx(float(energies.mean()), rel=1e-6)
    forces = torch.stack([each.forces.detach() for each in found])
    np.testing.assert_allclose(atoms.get_forces(), forces.mean(0), atol=1e-5)
    np.testing.assert_allclose(stress, torch.cat([e.stress for e in found]).mean(0), atol=1e-5)
    deviation = atoms.calc.results["forces_deviation"]
    np.testing.assert_allclose(deviation, forces.std(0).norm(dim=1), atol=1e-5)
    assert atoms.calc.results["energy_deviation"] == pytest.approx(float(energies.std()), rel=1e-4)
    assert atoms.get_potential_energies().sum() == pytest.approx(atoms.get_potential_energy())


def test_forces_and_stress_are_differences_of_its_energy(run: symgnn.Run) -> None:
    atoms = crystal()
    atoms.calc = run.calculator()
    stress, h = atoms.get_stress(), 1e-4
    for atom, axis in ((0, 0), (3, 2)):
        energies = []
        for step in (h, -h):
            there = atoms.copy()
            there.calc = atoms.calc
            there.positions[atom, axis] += step
            energies.append(there.get_potential_energy())
        wanted = (energies[1] - energies[0]) / (2 * h)
        assert atoms.get_forces()[atom, axis] == pytest.approx(wanted, abs=1e-6)
    for component, (i, j) in ((0, (0, 0)), (4, (0, 2))):  # xx and xz
        energies = []
        for step in (h, -h):
            strain = np.eye(3)
            strain[i, j] += step / 2
            strain[j, i] += step / 2
            there = atoms.copy()
            there.calc = atoms.calc
            there.set_cell(atoms.cell @ strain, scale_atoms=True)
            energies.append(there.get_potential_energy())
        wanted = (energies[0] - energies[1]) / (2 * h) / atoms.get_volume()
        assert stress[component] == pytest.approx(wanted, abs=1e-6)


def test_dynamics_with_a_kept_list_are_those_with_a_fresh_one(run: symgnn.Run) -> None:
    paths = []
    for skin in (0.0, 0.8):
        atoms = crystal()
        atoms.calc = run.calculator(skin=skin)
        atoms.set_momenta(np.random.default_rng(0).normal(0, 3.0, (len(atoms), 3)))
        VelocityVerlet(atoms, 2 * units.fs).run(20)
        paths.append(atoms.positions.copy())
        searches = atoms.calc.neighbours.searches
        assert searches < 12 if skin else searches == 21
    np.testing.assert_allclose(*paths, atol=1e-9)


def test_list_is_made_anew_for_other_atoms(run: symgnn.Run) -> None:
    calculator = run.calculator()
    for atoms in (crystal(), crystal() * (1, 2, 1), Atoms("Cu2", [[0, 0, 0], [0, 0, 2.3]])):
        atoms.calc = calculator
        kept = atoms.get_potential_energy()
        atoms.calc = run.calculator()
        assert atoms.get_potential_energy() == pytest.approx(kept, rel=1e-12)
    atoms = crystal()
    atoms.calc = calculator
    atoms.get_potential_energy()
    atoms.set_cell(atoms.cell * 1.05, scale_atoms=False)
    kept = atoms.get_potential_energy()
    atoms.calc = run.calculator()
    assert atoms.get_potential_energy() == pytest.approx(kept, rel=1e-12)


def test_relaxes(run: symgnn.Run) -> None:
    atoms = crystal()
    atoms.calc = run.calculator()
    before = atoms.get_potential_energy()
    BFGS(atoms, logfile=None).run(fmax=0.05, steps=50)
    assert atoms.get_potential_energy() < before
    assert np.abs(atoms.get_forces()).max() < 0.05 or before - atoms.get_potential_energy() > 0


def test_refusals(run: symgnn.Run) -> None:
    atoms = Atoms("Ni2", [[0, 0, 0], [0, 0, 2.0]])
    atoms.calc = run.calculator()
    with pytest.raises(ValueError, match="atoms: have Ni; the potential was trained on Cu, Au"):
        atoms.get_potential_energy()
    atoms = Atoms("Cu2", [[0, 0, 0], [0, 0, 2.0]])
    atoms.calc = run.calculator()
    assert np.isfinite(atoms.get_forces()).all()
    with pytest.raises(PropertyNotImplementedError, match="have no cell"):
        atoms.get_stress()
    with pytest.raises(ValueError, match="precision: is '16'"):
        run.calculator(precision="16")
    solids = symgnn.data.load("polytopes-3d", copies=1)
    other = symgnn.fit(solids, "gn", epochs=1, progress=False)
    with pytest.raises(ValueError, match="run: was trained on graph targets; train it on energies"):
        other.calculator()
