"""Every format: what was written with the library of its field is read back."""

from pathlib import Path

import ase
import ase.io
import numpy as np
import pytest
import torch
import trimesh
from ase.calculators.singlepoint import SinglePointCalculator
from ase.collections import g2
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import rdDepictor

from data.files.format_cases import both, few, pairs, points, write_csv
from symgnn.data import read, sample
from symgnn.graphs import knn_graph


@st.composite
def atoms(draw: st.DrawFn) -> ase.Atoms:
    pos = draw(points())
    numbers = draw(st.lists(st.integers(1, 94), min_size=len(pos), max_size=len(pos)))
    return ase.Atoms(numbers, pos)


# ---------------------------------------------------------------- atoms


@few
@given(frames=st.lists(atoms(), min_size=1, max_size=3), plain=st.booleans())
def test_xyz(tmp_path: Path, frames: list[ase.Atoms], plain: bool) -> None:
    path = tmp_path / "a.xyz"
    ase.io.write(path, frames, format="xyz" if plain else "extxyz")
    graphs = read(path, units="angstrom")
    assert graphs.names == (["a"] if len(frames) == 1 else [f"a-{i}" for i in range(len(frames))])
    for graph, frame in zip(graphs, frames, strict=True):
        assert graph.z.tolist() == frame.numbers.tolist()
        assert np.allclose(graph.pos, frame.positions, atol=1e-5)
        assert graph.x.sum(1).tolist() == [1.0] * len(frame)
        symbols = [graphs.options["elements"][i] for i in graph.x.argmax(1)]
        assert symbols == frame.get_chemical_symbols()


@few
@given(frame=atoms(), suffix=st.sampled_from(["traj", "gen", "vasp"]))
def test_whatever_ase_reads(tmp_path: Path, frame: ase.Atoms, suffix: str) -> None:
    if suffix == "vasp":  # which has a cell, always
        frame = ase.Atoms(frame, cell=np.eye(3) * 200)
        frame = frame[np.argsort(frame.numbers)]
    path = tmp_path / f"a.{suffix}"
    ase.io.write(path, frame)
    (graph,) = read(tmp_path / f"*.{suffix}", units="angstrom", cell="drop")
    assert graph.z.tolist() == frame.numbers.tolist()
    assert np.allclose(graph.pos, frame.positions, atol=1e-4)


def test_extended_xyz_brings_targets(tmp_path: Path) -> None:
    frames = []
    for index in range(3):
        water = g2["H2O"].copy()
        water.info.update(gap=1.5 * index, name=f"water {index}", phase="gas" if index else "ice")
        water.set_initial_charges([-0.8, 0.4, 0.4])
        forces = np.full((3, 3), float(index))
        water.calc = SinglePointCalculator(water, energy=-10.0 - index, forces=forces)
        frames.append(water)
    path = tmp_path / "water.xyz"
    ase.io.write(path, frames, format="extxyz")
    graphs = read(path, columns=["gap", "energy"])
    assert graphs.names == ["water 0", "water 1", "water 2"]
    assert graphs.task.level == "graph"
    assert [graph.y.tolist() for graph in graphs] == [[[1.5 * i, -10.0 - i]] for i in range(3)]
    options = {"level": "node-vectors", "features": "initial_charges"}
    forces = read(path, columns="forces", **options)
    assert forces.task.targets == ("forces_x", "forces_y", "forces_z")
    assert forces[2].y.tolist() == [[2.0] * 3] * 3
    assert torch.allclose(forces[0].x[:, -1], torch.tensor([-0.8, 0.4, 0.4]))
    phases = read(path, columns=["phase"])
    assert phases.task.classes == ("gas", "ice")
    assert [graph.y.tolist() for graph in phases] == [[1], [0], [0]]


def test_bonds_from_distances_are_those_of_the_molecule() -> None:
    apart = read(sample("molecules"))
    known = read(sample("sdf"))
    assert apart.names == known.names
    for found, right in zip(apart, known, strict=True):
        assert pairs(found.edge_index) == pairs(right.edge_index), found.name
        assert "edge_attr" not in found


# ---------------------------------------------------------------- molecules


@few
@given(
    smiles=st.lists(
        st.sampled_from(["CCO", "c1ccccc1", "C#N", "CC(=O)O", "C=C", "O"]), min_size=1, max_size=3
    ),
    seed=st.integers(0, 1000),
)
def test_smiles_and_sdf(tmp_path: Path, smiles: list[str], seed: int) -> None:
    (tmp_path / "a.smi").write_text("".join(f"{s} m{i}\n" for i, s in enumerate(smiles)))
    made = read(tmp_path / "a.smi", seed=seed)
    assert made.names == [f"m{i}" for i in range(len(smiles))]
    again = read(tmp_path / "a.smi", seed=seed)
    with Chem.SDWriter(str(tmp_path / "a.sdf")) as writer:
        for graph, text in zip(made, smiles, strict=True):
            molecule = Chem.AddHs(Chem.MolFromSmiles(text))
            conformer = Chem.Conformer(len(graph.pos))
            for index, place in enumerate(graph.pos.tolist()):
                conformer.SetAtomPosition(index, place)
            conformer.Set3D(True)
            molecule.AddConformer(conformer)
            molecule.SetProp("_Name", graph.name)
            writer.write(molecule)
    back = read(tmp_path / "a.sdf")
    for graph, same, other in zip(made, again, back, strict=True):
        assert torch.equal(graph.pos, same.pos)
        assert torch.allclose(graph.pos, other.pos, atol=1e-4)
        assert torch.equal(graph.edge_attr, other.edge_attr)
        assert pairs(graph.edge_index) == pairs(other.edge_index)
        assert graph.name == other.name
        assert graph.edge_attr.sum(1).tolist() == [1.0] * graph.num_edges


def test_kinds_of_bonds(tmp_path: Path) -> None:
    (tmp_path / "a.smi").write_text("C=C=O ketene\nC#N cyanide\nc1ccccc1 benzene\n")
    ketene, cyanide, benzene = read(tmp_path)
    assert ketene.edge_attr.sum(0).tolist() == [4, 4, 0, 0]
    assert cyanide.edge_attr.sum(0).tolist() == [2, 0, 2, 0]
    assert benzene.edge_attr.sum(0).tolist() == [12, 0, 0, 12]


def test_smiles_in_a_table_with_targets(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "a.csv", ["key", "SMILES", "mass [u]"], [["w", "O", 18], ["m", "C", 16]]
    )
    graphs = read(path, columns=["mass"], id="key")
    assert graphs.names == ["w", "m"]
    assert (graphs.task.targets, graphs.task.units) == (("mass",), ("u",))
    assert [graph.y.item() for graph in graphs] == [18, 16]
    assert read(path).names == ["a-2", "a-3"]  # by their rows
    path = write_csv(tmp_path / "a.csv", ["smiles", "mass"], [["O", 18], ["C", ""]])
    with pytest.raises(ValueError, match=r"a\.csv, row 3, column 'mass' \(a-3, C\): is empty"):
        read(path, columns=["mass"])


def test_a_drawing_is_no_geometry(tmp_path: Path) -> None:
    molecule = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    rdDepictor.Compute2DCoords(molecule)
    path = tmp_path / "a.mol"
    path.write_text(Chem.MolToMolBlock(molecule))
    with pytest.raises(ValueError, match=r"a\.mol: its coordinates are a drawing in 2 dim.*conf"):
        read(path)
    assert read(path, conformers=True)[0].pos[:, 2].abs().max() > 0.5
    assert read(path, conformers=False, units="angstrom")[0].pos[:, 2].abs().max() == 0


# ---------------------------------------------------------------- meshes


@st.composite
def meshes(draw: st.DrawFn) -> trimesh.Trimesh:
    """Points on a grid, none of them twice, all in some triangle."""
    cells = draw(
        st.lists(st.tuples(*[st.integers(-20, 20)] * 3), min_size=3, max_size=12, unique=True)
    )
    count = len(cells)
    corners = st.lists(st.integers(0, count - 1), min_size=3, max_size=3, unique=True)
    faces = draw(st.lists(corners, min_size=1, max_size=6))
    faces += [[i, (i + 1) % count, (i + 2) % count] for i in range(count)]
    return trimesh.Trimesh(np.array(cells) * 0.25, faces, process=False)


@few
@given(mesh=meshes(), suffix=st.sampled_from(["obj", "ply", "off"]))
def test_meshes(tmp_path: Path, mesh: trimesh.Trimesh, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    mesh.export(path)
    (graph,) = read(path)
    assert np.allclose(graph.pos, mesh.vertices, atol=1e-5)
    assert graph.face.T.tolist() == mesh.faces.tolist()
    assert pairs(graph.edge_index) == both(*((int(a), int(b)) for a, b in mesh.edges))


@few
@given(mesh=meshes())
def test_stl_has_each_vertex_once(tmp_path: Path, mesh: trimesh.Trimesh) -> None:
    path = tmp_path / "a.stl"
    mesh.export(path)
    (graph,) = read(path)
    place = {tuple(v): i for i, v in enumerate(mesh.vertices.tolist())}
    order = [place[tuple(v)] for v in graph.pos.tolist()]
    assert sorted(order) == list(range(len(mesh.vertices)))
    found = {(order[a], order[b]) for a, b in pairs(graph.edge_index)}
    assert found == both(*((int(a), int(b)) for a, b in mesh.edges))


def test_squares_are_cut_and_points_without_faces_joined(tmp_path: Path) -> None:
    corners = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n"
    (tmp_path / "square.off").write_text(f"OFF\n4 1 0\n{corners}4 0 1 2 3\n")
    assert read(tmp_path / "square.off")[0].num_edges == 10
    cloud = trimesh.PointCloud(np.random.default_rng(0).normal(size=(20, 3)))
    cloud.export(tmp_path / "cloud.ply")
    (graph,) = read(tmp_path / "cloud.ply")
    assert torch.equal(graph.edge_index, knn_graph(graph.pos, 8))


def test_an_obj_with_materials_is_one_mesh_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """mtllib none.mtl
o first
v 0 0 0
v 1 0 0
v 0 1 0
v 9 9 9
vt 0 0
vt 1 1
usemtl red
f 3/1 2/2 1/1
o second
v 0 0 1
usemtl blue
f 3/2 -1/1 \\
  1/2
"""
    (tmp_path / "a.obj").write_text(text)
    (graph,) = read(tmp_path)
    assert graph.pos.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [9, 9, 9], [0, 0, 1]]
    assert pairs(graph.edge_index) == both((2, 1), (1, 0), (0, 2), (2, 4), (4, 0))
