"""The calculator on odd structures, after changes of the atoms, copied, and under ASE's tools."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ase import Atoms, units
from ase.build import bulk, molecule
from ase.calculators.calculator import PropertyNotImplementedError
from ase.filters import FrechetCellFilter
from ase.md.verlet import VelocityVerlet
from ase.optimize import BFGS, FIRE
from ase.phonons import Phonons

from nn.potential_cases import CUTOFF, SMOOTH, graph, potential
from symgnn.train._calculator import calculator_of


def calculator(block: str = "dgn", seeds: int = 1, skin: float = 0.5) -> Any:
    members = []
    for number in range(seeds):
        member = potential(block, residual=True)
        with torch.no_grad():
            for parameter in member.parameters():
                parameter += 0.05 * number
        members.append(member)
    return calculator_of(members, cutoff=CUTOFF, elements=[1, 29, 79], skin=skin)


STRUCTURES: dict[str, Callable[[], Atoms]] = {
    "H2": lambda: molecule("H2"),
    "isolated": lambda: Atoms("Cu"),
    "isolated in a cell": lambda: Atoms("Cu", cell=[20.0] * 3, pbc=True),
    "one atom in a tiny cell": lambda: Atoms("Cu", cell=[1.5] * 3, pbc=True),
    "coincident": lambda: Atoms("Cu2", [[0, 0, 0], [0, 0, 0]]),
    "coincident images": lambda: Atoms("Cu2", [[0, 0, 0], [3, 0, 0]], cell=[3.0] * 3, pbc=True),
    "mixed": lambda: Atoms("CuAu", [[0, 0, 0], [1, 1, 1]], cell=[3.0] * 3, pbc=[1, 0, 1]),
    "one flew away": lambda: Atoms("Cu3", [[0, 0, 0], [2, 0, 0], [1e9, 2, 0]]),
    "one flew off a surface": lambda: Atoms(
        "Cu3", [[0, 0, 0], [2, 0, 0], [1, 1, 1e9]], cell=[4.0, 4.0, 0.0], pbc=[1, 1, 0]
    ),
    "nothing": lambda: Atoms(),
    "nothing in a cell": lambda: Atoms(cell=[3.0] * 3, pbc=True),
}


@pytest.mark.parametrize("block", SMOOTH)
def test_edges_within_the_skin_change_nothing(block: str) -> None:
    """Neither at the first step nor after atoms have crossed the cutoff both ways."""
    atoms = bulk("Cu", a=3.7, cubic=True)
    atoms.rattle(0.1, seed=2)
    kept, fresh = calculator(block, skin=0.8), calculator(block, skin=0.0)
    for step in range(3):
        atoms.positions += 0.1 * np.sin(np.arange(12) + step).reshape(4, 3)
        one, other = atoms.copy(), atoms.copy()
        one.calc, other.calc = kept, fresh
        for what in ("get_potential_energy", "get_forces", "get_stress"):
            found, wanted = getattr(one, what)(), getattr(other, what)()
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    assert kept.neighbours.searches == 1


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("block", ["dgn", "combined-separable"])
def test_odd_structures(name: str, block: str) -> None:
    atoms = STRUCTURES[name]()
    atoms.calc = calculator(block)
    wanted = potential(block, residual=True).eval().requires_grad_(False)(graph(atoms))
    assert atoms.get_potential_energy() == pytest.approx(
        wanted.energy.detach().sum().item(), abs=1e-9
    )
    np.testing.assert_allclose(atoms.get_forces(), wanted.forces, atol=1e-8)
    assert atoms.get_potential_energies().shape == (len(atoms),)


def test_an_atom_that_flew_away_leaves_the_others_as_they_are() -> None:
    pair, three = Atoms("Cu2", [[0, 0, 0], [2, 0, 0]]), STRUCTURES["one flew away"]()
    alone = Atoms("Cu")
    for atoms in (pair, three, alone):
        atoms.calc = calculator()
    total = pair.get_potential_energy() + alone.get_potential_energy()
    assert three.get_potential_energy() == pytest.approx(total, abs=1e-9)
    np.testing.assert_allclose(three.get_forces()[:2], pair.get_forces(), atol=1e-9)


@pytest.mark.parametrize(
    ("atoms", "message"),
    [
        (Atoms("Cu2", cell=[3, 3, 0], pbc=True), "cell: vector c has no length, but pbc says"),
        (Atoms("Cu2", pbc=True), "cell: vector a has no length"),
        (Atoms("Cu", cell=[[3, 0, 0], [0, 3, 0], [3, 3, 0]], pbc=True), "cell: its periodic"),
        (Atoms("Fe"), "atoms: have Fe; the potential was trained on H, Cu, Au alone"),
        (Atoms("Cu2", [[0, 0, 0], [np.nan, 0, 0]]), "positions: that of atom 1 is"),
        (Atoms("Cu2", [[np.inf, 0, 0], [0, 0, 0]]), "positions: that of atom 0 is"),
    ],
)
def test_refusals(atoms: Atoms, message: str) -> None:
    atoms.calc = calculator()
    with pytest.raises(ValueError, match=message):
        atoms.get_potential_energy()


def test_positions_that_stop_being_numbers() -> None:
    atoms = bulk("Cu", cubic=True)
    atoms.calc = calculator()
    atoms.get_potential_energy()
    atoms.positions[2, 1] = np.nan
    with pytest.raises(ValueError, match="positions: that of atom 2 is"):
        atoms.get_forces()


@pytest.mark.parametrize(
    ("cell", "message"),
    [([3, 3, 0], "have no cell"), ([[3, 0, 0], [0, 3, 0], [3, 3, 0]], "has no volume")],
)
def test_stress_needs_a_volume(cell: Any, message: str) -> None:
    atoms = Atoms("Cu2", [[0, 0, 0], [1, 1, 1]], cell=cell)
    atoms.calc = calculator()
    with pytest.raises(PropertyNotImplementedError, match=message):
        atoms.get_stress()


CHANGES: dict[str, Callable[[Atoms], object]] = {
    "pbc": lambda atoms: atoms.set_pbc([True, False, True]),
    "cell": lambda atoms: atoms.set_cell(atoms.cell * 1.02),
    "scaled cell": lambda atoms: atoms.set_cell(atoms.cell * 1.02, scale_atoms=True),
    "an element": lambda atoms: atoms.numbers.__setitem__(0, 79),
    "order of elements": lambda atoms: atoms.set_atomic_numbers(atoms.numbers[::-1]),
    "positions": lambda atoms: atoms.rattle(0.3, seed=1),
    "a small step": lambda atoms: atoms.rattle(0.01, seed=2),
    "charges": lambda atoms: atoms.set_initial_charges([1.0, 0.0, 0.0, 0.0]),
    "one less": lambda atoms: atoms.__delitem__(0),
    "one more": lambda atoms: atoms.extend(Atoms("Cu", [[1.0, 0.3, 0.2]])),
    "wrapped": lambda atoms: atoms.wrap(),
    "far away": lambda atoms: atoms.translate(1000.0),
    "as it was": lambda atoms: None,
}


def test_nothing_is_stale_after_a_change() -> None:
    atoms = bulk("Cu", cubic=True)
    atoms.numbers[1] = 79
    atoms.calc = calculator()
    for name, change in CHANGES.items():
        change(atoms)
        fresh = atoms.copy()
        fresh.calc = calculator(skin=0.0)
        assert atoms.get_potential_energy() == pytest.approx(
            fresh.get_potential_energy(), abs=1e-8
        ), name
        np.testing.assert_allclose(atoms.get_forces(), fresh.get_forces(), atol=1e-8, err_msg=name)
        np.testing.assert_allclose(atoms.get_stress(), fresh.get_stress(), atol=1e-8, err_msg=name)


def test_copies_and_files(tmp_path: Path) -> None:
    atoms = bulk("Cu", cubic=True)
    atoms.rattle(0.1, seed=0)
    atoms.calc = calculator(seeds=2)
    wanted = atoms.get_forces()
    deviation = atoms.calc.results["forces_deviation"]
    assert deviation.shape == (4,)
    assert (deviation > 0).all()
    for other in (copy.deepcopy(atoms.calc), pickle.loads(pickle.dumps(atoms.calc))):
        np.testing.assert_array_equal(other.results["forces"], wanted)
        there = atoms.copy()
        there.calc = other
        np.testing.assert_array_equal(there.get_forces(), wanted)
        there.rattle(0.2, seed=3)
        there.get_forces()
    np.testing.assert_array_equal(atoms.get_forces(), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(atoms)).get_forces(), wanted)


def test_tools_of_ase(tmp_path: Path) -> None:
    atoms = bulk("Cu", cubic=True)
    atoms.rattle(0.1, seed=0)
    atoms.calc = calculator()
    start = atoms.get_potential_energy()
    for tool in (BFGS, FIRE):
        moved = atoms.copy()
        moved.calc = atoms.calc
        tool(moved, logfile=None).run(fmax=0.01, steps=10)
        assert moved.get_potential_energy() < start
    free = atoms.copy()
    free.calc = atoms.calc
    BFGS(FrechetCellFilter(free), logfile=None).run(fmax=0.01, steps=10)
    assert free.get_potential_energy() < start
    assert not np.allclose(free.cell, atoms.cell)
    moving = atoms.copy()
    moving.calc = atoms.calc
    before = moving.get_total_energy()
    VelocityVerlet(moving, 0.2 * units.fs).run(20)
    assert moving.get_total_energy() == pytest.approx(before, abs=1e-3)
    phonons = Phonons(bulk("Cu"), calculator(), supercell=(2, 2, 2), name=str(tmp_path / "ph"))
    phonons.run()
    phonons.read(acoustic=True)
    path = bulk("Cu").cell.bandpath("GX", npoints=3)
    energies = phonons.get_band_structure(path, verbose=False).energies
    np.testing.assert_allclose(energies[0, 0], 0.0, atol=1e-4)
