"""Vectors as targets: at a level of their own, never silently as numbers that do not turn."""

from __future__ import annotations

from pathlib import Path

import ase.io
import numpy as np
import pytest
import torch
from ase import Atoms
from ase.calculators.singlepoint import SinglePointCalculator
from torch_geometric.data import Data

from symgnn.data import Task, load_files, read, splits


def molecules(path: Path, count: int = 6) -> list[Atoms]:
    """Water as extended XYZ, with forces, velocities, a dipole, a stress and an energy."""
    random = np.random.default_rng(0)
    frames = []
    for k in range(count):
        pos = np.array([[0, 0, 0.12], [0, 0.76, -0.48], [0, -0.76, -0.48]])
        atoms = Atoms("OH2", pos + 0.05 * random.normal(size=(3, 3)))
        atoms.set_array("velocities", random.normal(size=(3, 3)))
        atoms.set_array("REF_forces", random.normal(size=(3, 3)))
        atoms.set_array("tint", random.normal(size=(3, 3)))
        results = {"forces": random.normal(size=(3, 3)), "dipole": random.normal(size=3)}
        atoms.calc = SinglePointCalculator(atoms, energy=float(k), stress=np.ones(6), **results)
        frames.append(atoms)
    ase.io.write(path, frames, format="extxyz")
    return frames


def graph(n: int = 3, nodes: int = 4, **values: object) -> Data:
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    generator = torch.Generator().manual_seed(nodes)
    return Data(pos=torch.rand(nodes, n, generator=generator), edge_index=edges, **values)


# ------------------------------------------------------------------ levels


def test_vectors_of_nodes_and_graphs(tmp_path: Path) -> None:
    path = tmp_path / "water.xyz"
    frames = molecules(path)
    found = read(path, columns="forces", level="node-vectors")
    assert str(found) == ("6 graphs of 3 nodes, in 3 dimensions: forces of each node, as vectors")
    task = found.task
    assert task.targets == ("forces_x", "forces_y", "forces_z")
    assert (task.vectors, task.outputs, task.place, task.lengths) == (("forces",), 1, "node", False)
    right = frames[2].calc.results["forces"]
    torch.testing.assert_close(found[2].y.double().numpy(), right, rtol=1e-6, atol=1e-6)
    found = read(path, columns="dipole", level="graph-vectors")
    assert found.task.place == "graph"
    assert found[1].y.shape == (1, 3)
    two = read(path, columns=["forces", "REF_forces"], level="node-vectors")
    assert two.task.vectors == ("forces", "REF_forces")
    assert two[0].y.shape == (3, 6)
    assert two.task.outputs == 2


@pytest.mark.parametrize("n", [1, 2, 4])
def test_components_in_any_dimension(n: int) -> None:
    given = [graph(n, push=torch.rand(4, n), pull=torch.rand(1, n)) for _ in range(3)]
    found = read(given, columns="push", level="node-vectors")
    ends = "xyz"[:n] if n < 4 else "0123"
    named = ("push",) if n == 1 else tuple(f"push_{end}" for end in ends)
    assert found.task.targets == named
    assert found[0].y.shape == (4, n)
    assert read(given, columns="pull", level="graph-vectors")[0].y.shape == (1, n)


def test_columns_of_a_table(tmp_path: Path) -> None:
    molecules(tmp_path / "water.xyz", 1)
    rows = "\n".join(f"water,{k},{k},1,2" for k in range(3))
    (tmp_path / "t.csv").write_text(f"name,node,fx [eV/A],fy [eV/A],fz [eV/A]\n{rows}\n")
    options = {"targets": "t.csv", "columns": ["fx", "fy", "fz"]}
    found = read(tmp_path, level="node-vectors", **options)
    assert found.task.targets == ("fx", "fy", "fz")
    assert found.task.vectors == ("f",)
    assert found[0].y.tolist() == [[0, 1, 2], [1, 1, 2], [2, 1, 2]]
    for level in (None, "node"):
        with pytest.raises(ValueError, match=r"columns: f has 3 numbers.*level='node-vectors'"):
            read(tmp_path, level=level, **options)
    (tmp_path / "t.csv").write_text("name,mu_x,mu_y,mu_z\nwater,1,2,3\n")
    with pytest.raises(ValueError, match=r"columns: mu has 3 numbers.*level='graph-vectors'"):
        read(tmp_path, targets="t.csv")
    assert read(tmp_path, targets="t.csv", level="graph-vectors")[0].y.tolist() == [[1, 2, 3]]
    # numbered columns are vectors only where their name says so
    (tmp_path / "t.csv").write_text("name,target_0,target_1,target_2\nwater,1,2,3\n")
    assert read(tmp_path, targets="t.csv").task.level == "graph"
    with pytest.raises(ValueError, match="target_0, target_1 cannot be divided into vectors in 3"):
        read(tmp_path, targets="t.csv", level="graph-vectors", columns=["target_0", "target_1"])


# ------------------------------------------------------------------ refused, not guessed


@pytest.mark.parametrize("level", [None, "node"])
@pytest.mark.parametrize("column", ["forces", "velocities", "REF_forces"])
def test_vectors_of_nodes_are_never_silently_invariant(
    column: str, level: str | None, tmp_path: Path
) -> None:
    molecules(tmp_path / "water.xyz")
    with pytest.raises(ValueError, match=f"^columns: {column} has 3 .*level='node-vectors'") as no:
        read(tmp_path, columns=column, level=level)
    assert "invariant=True" in str(no.value)
    assert "\n" not in str(no.value)
    found = read(tmp_path, columns=column, level=level, invariant=True)
    assert (found.task.level, found.task.vectors) == ("node", ())


@pytest.mark.parametrize("level", [None, "graph"])
def test_vectors_of_graphs_are_never_silently_invariant(level: str | None, tmp_path: Path) -> None:
    molecules(tmp_path / "water.xyz")
    with pytest.raises(ValueError, match=r"^columns: dipole has 3 .*level='graph-vectors'"):
        read(tmp_path, columns="dipole", level=level)
    with pytest.raises(ValueError, match=r"^columns: stress is a tensor of 6 numbers"):
        read(tmp_path, columns="stress", level=level)
    assert read(tmp_path, columns="energy", level=level).task.level == "graph"


def test_arrays_with_any_name_need_a_level(tmp_path: Path) -> None:
    molecules(tmp_path / "water.xyz")
    with pytest.raises(
        ValueError, match=r"columns: tint has 3 .*or level='node' for invariant numbers"
    ):
        read(tmp_path, columns="tint")
    assert read(tmp_path, columns="tint", level="node").task.vectors == ()
    assert read(tmp_path, columns="tint", level="node-vectors").task.vectors == ("tint",)


def test_the_y_of_graphs_in_memory_needs_a_level(tmp_path: Path) -> None:
    """It is read, as nothing was asked for, but nothing can be learned from it."""
    given = [graph(y=torch.rand(4, 3)) for _ in range(3)]
    torch.save(given, tmp_path / "graphs.pt")
    for rows, place in ((4, "node"), (1, "graph")):
        found = read([graph(y=torch.rand(rows, 3)) for _ in range(3)])
        assert found.task is None
        assert found[0].y.shape == (rows, 3)
        with pytest.raises(ValueError, match=f"^columns: y has 3 numbers for each {place}, like"):
            splits(found)
    with pytest.raises(ValueError, match=r"^columns: y has 3 .*level='node-vectors'"):
        load_files(path=str(tmp_path / "graphs.pt"))
    with pytest.raises(ValueError, match=r"^columns: y has 3 .*level='node-vectors'"):
        read(given, columns="y")
    found = read(given, level="node-vectors")
    assert found.task.targets == ("y_x", "y_y", "y_z")
    assert len(read(given, **found.options)) == 3  # for predictions, the answers do not matter
    assert read([graph(y=torch.rand(1, 2))]).task.level == "graph"


def test_a_dipole_of_three_atoms_is_none_of_the_atoms() -> None:
    with pytest.raises(ValueError, match=r"dipole has 3 numbers for 3 nodes.*'graph-vectors'"):
        read([graph(nodes=3, dipole=torch.rand(3)) for _ in range(2)], columns="dipole")


@pytest.mark.parametrize("column", ["forces", "velocities"])
def test_vectors_are_no_points(column: str, tmp_path: Path) -> None:
    molecules(tmp_path / "water.xyz")
    with pytest.raises(ValueError, match=f"columns: {column} is a vector.*level='node-vectors'"):
        read(tmp_path, columns=column, level="coordinates")


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    molecules(tmp_path / "water.xyz")
    for options, error in (
        ({"level": "node-vectors", "invariant": True}, "invariant: node-vectors are not invariant"),
        ({"level": "graph", "lengths": True}, "lengths: applies to node-vectors and graph-vectors"),
        ({"level": "node-vectors", "kind": "classification"}, "kind: node-vectors cannot be"),
        ({"level": "node-vector"}, "did you mean 'node-vectors'"),
        ({"level": "node-vectors", "lengths": "yes"}, "lengths: is 'yes'"),
    ):
        with pytest.raises(ValueError, match=error):
            read(tmp_path, columns="forces", **options)
    with pytest.raises(ValueError, match="columns: energy cannot be divided"):
        read(tmp_path, columns="energy", level="graph-vectors")


def test_a_task_of_vectors() -> None:
    task = Task("node-vectors", "regression", ("fx", "fy"))
    assert (task.vectors, task.outputs) == (("vector",), 1)
    with pytest.raises(ValueError, match="vectors: 3 targets are not the components of 2"):
        Task("node-vectors", "regression", ("a", "b", "c"), vectors=("f", "g"))
    with pytest.raises(ValueError, match="vectors: level 'node' has no vectors"):
        Task("node", "regression", ("a", "b", "c"), vectors=("f",))
    old = {"level": "coordinates", "kind": "regression", "targets": ["x0"], "units": [""]}
    assert Task.of({**old, "classes": []}) == Task("coordinates", "regression", ("x0",))
    assert Task.of({**old, "classes": []}).lengths


# ------------------------------------------------------------------ scale and units


def test_forces_keep_their_units_and_velocities_go_with_the_coordinates(tmp_path: Path) -> None:
    frames = molecules(tmp_path / "water.xyz")
    for column, factor in (("forces", 1.0), ("velocities", 2.0)):
        right = frames[1].calc.results if column == "forces" else frames[1].arrays
        right = torch.tensor(right[column], dtype=torch.float32)
        options = {"columns": column, "level": "node-vectors"}
        found = read(tmp_path, scale=2.0, **options)
        torch.testing.assert_close(found[1].y, factor * right)
        parts = splits(read(tmp_path, **options), scale=2.0)
        every = [*parts.train, *parts.validation, *parts.test]
        (mine,) = [each for each in every if each.name == "water-1"]
        torch.testing.assert_close(mine.y, factor * right)
        # as one says
        other = read(tmp_path, scale=2.0, lengths=column == "forces", **options)
        torch.testing.assert_close(other[1].y, 2.0 / factor * right)
    with pytest.raises(ValueError, match=r"lengths: velocities is a length.*forces is not"):
        read(tmp_path, columns=["forces", "velocities"], level="node-vectors")


def test_lengths_are_converted_with_the_coordinates(tmp_path: Path) -> None:
    bohr = 0.529177210903
    frames = molecules(tmp_path / "water.xyz")
    for atoms in frames:
        atoms.positions /= bohr
    ase.io.write(tmp_path / "water.xyz", frames, format="extxyz")
    options = {"level": "node-vectors", "units": "bohr"}
    velocities = torch.tensor(frames[0].arrays["velocities"], dtype=torch.float32)
    found = read(tmp_path, columns="velocities", **options)[0].y
    torch.testing.assert_close(found, bohr * velocities)
    forces = torch.tensor(frames[0].calc.results["forces"], dtype=torch.float32)
    torch.testing.assert_close(read(tmp_path, columns="forces", **options)[0].y, forces)


def test_files_for_training_are_refused_in_the_words_of_the_config(tmp_path: Path) -> None:
    molecules(tmp_path / "water.xyz")
    with pytest.raises(ValueError, match="level='node-vectors'"):
        load_files(path=str(tmp_path), columns="forces")
    found = load_files(path=str(tmp_path), columns="forces", level="node-vectors")
    assert found.task.vectors == ("forces",)
