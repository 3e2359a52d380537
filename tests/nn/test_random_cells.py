"""Forces and stress in skew cells: left-handed, smaller than the cutoff, periodic in part."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ase import Atoms
from torch import Tensor

from nn.potential_cases import BLOCKS, CUTOFF, SCALED, graph, potential, slopes

PBC = [(True, True, True), (True, True, True), (True, False, True), (False, False, True)]
#: Differences of fourth order with this step are off by less than 1e-8 of the size of the forces;
#: those of second order by up to 1e-5 with a step of 1e-4 (their error falls with its square).
STEP, ALLOWED = 1e-5, 1e-7


def random_atoms(seed: int) -> Atoms:
    """One to three atoms at random in a random cell; every second cell is left-handed."""
    random = np.random.default_rng(seed)
    volume = 0.0
    while abs(volume) < 8:
        cell = random.normal(size=(3, 3))
        cell *= random.uniform(2.0, 3.6, (3, 1)) / np.linalg.norm(cell, axis=1, keepdims=True)
        volume = float(np.linalg.det(cell))
    if (volume < 0) != bool(seed % 2):
        cell = -cell
    count = 1 + seed % 3
    atoms = Atoms(["Cu", "Au", "H"][:count], cell=cell, pbc=PBC[seed % 4])
    apart = 0.0
    while apart < 1.0:  # images of two atoms that nearly touch have forces beyond any measure
        atoms.set_scaled_positions(random.uniform(size=(count, 3)))
        apart = min((atoms.get_distance(0, k, mic=True) for k in range(1, count)), default=1.0)
    return atoms


def test_the_cells_are_what_they_should_be() -> None:
    cells = [random_atoms(seed).cell.array for seed in range(4)]
    assert [np.linalg.det(cell) < 0 for cell in cells] == [False, True, False, True]
    lengths = np.array([np.linalg.norm(cell, axis=1) for cell in cells])
    assert (lengths.min(1) < CUTOFF).all()
    skew = [cell @ cell.T for cell in cells]
    assert all(abs(each - np.diag(np.diag(each))).max() > 1 for each in skew)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("seed", range(4))
def test_forces_and_stress_are_slopes_of_the_energy(block: str, seed: int) -> None:
    atoms = random_atoms(seed)
    model, data = potential(block).eval(), graph(atoms)
    found = model(data, stress=True)

    def energy(pos: Tensor, strain: Tensor) -> Tensor:
        xx, yy, zz, yz, xz, xy = strain
        rows = [xx, xy / 2, xz / 2, xy / 2, yy, yz / 2, xz / 2, yz / 2, zz]
        matrix = torch.eye(3).double() + torch.stack(rows).view(3, 3)
        out = data.clone()
        out.pos, out.edge_shift = pos @ matrix, data.edge_shift @ matrix
        return model(out, forces=False).energy[0].detach()

    none = torch.zeros(6).double()
    forces = -slopes(lambda pos: energy(pos, none), data.pos, STEP)
    stress = slopes(lambda strain: energy(data.pos, strain), none, STEP) / atoms.cell.volume
    for one, wanted in ((found.forces, forces), (found.stress[0], stress)):
        size = max(1.0, float(wanted.abs().max()))
        assert float((one - wanted).abs().max()) < ALLOWED * size


@pytest.mark.parametrize("block", [name for name in BLOCKS if name not in SCALED])
def test_supercells_of_a_left_handed_cell_have_the_same_energies(block: str) -> None:
    atoms = random_atoms(1)
    model = potential(block).eval()
    one, many = (model(graph(each), stress=True) for each in (atoms, atoms * (2, 1, 3)))
    torch.testing.assert_close(many.energy, 6 * one.energy, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(many.stress, one.stress, rtol=1e-8, atol=1e-9)
