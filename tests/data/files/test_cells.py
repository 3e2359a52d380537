"""Periodic structures: CIF, POSCAR and extended XYZ as graphs with edges through the walls."""

from __future__ import annotations

from pathlib import Path

import ase.io
import numpy as np
import pytest
import torch
from ase import Atoms
from ase.build import bulk, fcc111, molecule
from ase.neighborlist import natural_cutoffs, neighbor_list
from torch_geometric.data import Batch

from symgnn.data import read, splits
from symgnn.data._rescaling import at_scale
from symgnn.geometry import Rotation

R = 3.5


def crystal() -> Atoms:
    atoms = bulk("NaCl", "rocksalt", a=5.64)
    atoms.rattle(0.1, seed=1)
    return atoms


def lengths_of(graph) -> np.ndarray:  # type: ignore[no-untyped-def]
    source, target = graph.edge_index
    rays = graph.pos[source] + graph.edge_shift - graph.pos[target]
    return np.sort(rays.norm(dim=1).numpy())


@pytest.mark.parametrize("name", ["a.cif", "a.xyz", "a.vasp", "a.poscar"])
def test_files_with_cells(tmp_path: Path, name: str) -> None:
    kind = {"a.xyz": "extxyz", "a.cif": "cif"}.get(name, "vasp")
    ase.io.write(tmp_path / name, crystal(), format=kind)
    (graph,) = read(tmp_path / name, radius=R, columns=[])
    wanted = np.sort(neighbor_list("d", crystal(), R))
    # files have at most eight digits of the coordinates, graphs have float32
    np.testing.assert_allclose(lengths_of(graph), wanted, rtol=3e-6)
    assert graph.cell.shape == (1, 3, 3)
    assert graph.pbc.tolist() == [[True] * 3]
    assert (graph.edge_shift != 0).any()


def test_bonds_go_through_walls() -> None:
    atoms = bulk("Si", cubic=True)  # each atom has four bonds
    (graph,) = read(atoms, columns=[])
    assert graph.edge_index[1].bincount().tolist() == [4] * 8
    wanted = neighbor_list("d", atoms, natural_cutoffs(atoms, mult=1.25))
    np.testing.assert_allclose(lengths_of(graph), np.sort(wanted), rtol=1e-6)
    (dropped,) = read(atoms, columns=[], cell="drop")
    assert "cell" not in dropped
    assert dropped.num_edges < graph.num_edges


def test_one_atom_is_its_own_neighbour_and_molecules_stand_beside_crystals() -> None:
    graphs = read([bulk("Cu"), molecule("H2O"), fcc111("Cu", (1, 1, 2), vacuum=8.0)],
                  radius=2.6, columns=[])  # fmt: skip
    assert [graph.num_edges for graph in graphs] == [12, 6, 18]
    assert graphs[1].pbc.tolist() == [[False] * 3]
    assert graphs[2].pbc.tolist() == [[True, True, False]]
    batch = Batch.from_data_list(graphs)
    assert batch.cell.shape == (3, 3, 3)
    assert batch.edge_shift.shape == (36, 3)


def test_scale_units_and_motions_take_the_cell_along() -> None:
    atoms = crystal()
    (graph,) = read(atoms, radius=R, columns=[])
    (scaled,) = read(atoms, radius=R, columns=[], scale=0.5)
    torch.testing.assert_close(scaled.cell, graph.cell / 2)
    torch.testing.assert_close(at_scale(scaled, 1.0).cell, graph.cell)
    pair = Batch.from_data_list([graph, scaled])
    both = at_scale(pair, 2.0)
    torch.testing.assert_close(both.cell, torch.cat([graph.cell, graph.cell]) * 2)
    bohr = Atoms(atoms.numbers, atoms.positions / 0.529177210903, pbc=True)
    bohr.cell = atoms.cell.array / 0.529177210903
    (other,) = read(bohr, radius=R, columns=[], units="bohr")
    torch.testing.assert_close(other.cell, graph.cell)
    np.testing.assert_allclose(lengths_of(other), lengths_of(graph), rtol=1e-6)
    torch.manual_seed(0)
    turned = Rotation.random(graph.pos).apply(graph)
    np.testing.assert_allclose(lengths_of(turned), lengths_of(graph), rtol=1e-5)
    for one, two in zip(turned.cell[0], graph.cell[0], strict=True):
        torch.testing.assert_close(one.norm(), two.norm())


def test_median_edge_of_crystals_is_that_through_the_walls(tmp_path: Path) -> None:
    frames = [bulk("Cu") for _ in range(10)]
    for frame in frames:
        frame.info["gap"] = 1.0
    ase.io.write(tmp_path / "a.xyz", frames, format="extxyz")
    divided = splits(read(tmp_path / "a.xyz", radius=2.6, columns=["gap"]))
    np.testing.assert_allclose(lengths_of(divided.train[0]), 1.0, atol=2e-3)


def test_a_cell_that_is_none_is_refused_in_one_line() -> None:
    atoms = Atoms("Cu", [[0, 0, 0]], cell=[3.0, 3.0, 0.0], pbc=True)
    with pytest.raises(ValueError, match=r"atoms 0.*vector c has no length, but pbc says"):
        read(atoms, radius=3.0, columns=[])
