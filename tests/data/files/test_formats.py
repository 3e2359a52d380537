"""Every format: what was written with the library of its field is read back."""

import csv
from pathlib import Path

import ase
import ase.io
import numpy as np
import pytest
import torch
import trimesh
from ase.calculators.singlepoint import SinglePointCalculator
from ase.collections import g2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rdkit import Chem
from rdkit.Chem import rdDepictor
from torch_geometric.data import Batch, Data

from symgnn.data import read, sample
from symgnn.graphs import knn_graph, radius_graph

few = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
coordinate = st.floats(-50, 50, width=32)


@st.composite
def points(draw: st.DrawFn, n: int = 3, least: int = 1) -> np.ndarray:
    """Up to 12 different points."""
    count = draw(st.integers(least, 12))
    return draw(arrays(np.float64, (count, n), elements=coordinate))


@st.composite
def atoms(draw: st.DrawFn) -> ase.Atoms:
    pos = draw(points())
    numbers = draw(st.lists(st.integers(1, 94), min_size=len(pos), max_size=len(pos)))
    return ase.Atoms(numbers, pos)


def write_csv(path: Path, header: list[str], rows: list) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def pairs(edge_index: torch.Tensor) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in edge_index.T}


def both(*edges: tuple[int, int]) -> set[tuple[int, int]]:
    return {pair for a, b in edges for pair in ((a, b), (b, a))}


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


# ---------------------------------------------------------------- tables


@few
@given(clouds=st.lists(points(n=4), min_size=1, max_size=4))
def test_points_in_any_dimension(tmp_path: Path, clouds: list[np.ndarray]) -> None:
    rows = [
        [f"g{g}", *row, index]
        for g, cloud in enumerate(clouds)
        for index, row in enumerate(cloud.tolist())
    ]
    path = write_csv(tmp_path / "a.csv", ["graph", *"pqrs", "heat"], rows)
    graphs = read(path, positions=list("pqrs"))
    assert graphs.names == [f"g{g}" for g in range(len(clouds))]
    for graph, cloud in zip(graphs, clouds, strict=True):
        assert np.allclose(graph.pos, cloud, atol=1e-5)
        assert graph.x.flatten().tolist() == list(range(len(cloud)))
        assert torch.equal(graph.edge_index, knn_graph(torch.from_numpy(cloud), 8))


NODES = [["t", "a", 0, 0, 5], ["t", "b", 1, 0, 6], ["s", "a", 0, 1, 7], ["t", "c", 2, 0, 8]]
NODE_HEADER = ["graph", "node", "x", "y", "people"]
EDGE_HEADER = ["graph", "source", "target", "lanes", "load [t]"]


@pytest.fixture
def roads(tmp_path: Path) -> Path:
    write_csv(tmp_path / "nodes.csv", NODE_HEADER, NODES)
    rows = [["t", "a", "b", 1, 0.5], ["t", "b", "c", 2, 0.7], ["t", "c", "b", 3, 0.8]]
    write_csv(tmp_path / "edges.csv", EDGE_HEADER, rows)
    return tmp_path


def test_nodes_and_edges(roads: Path) -> None:
    t, s = graphs = read(roads)
    assert graphs.names == ["t", "s"]
    assert pairs(t.edge_index) == both((0, 1), (1, 2))
    by_pair = dict(zip(map(tuple, t.edge_index.T.tolist()), t.edge_attr.tolist(), strict=True))
    assert by_pair[0, 1] == by_pair[1, 0] == [1.0, 0.5]
    assert [round(v, 6) for v in by_pair[2, 1]] == [3.0, 0.8]  # its own row, not that of (1, 2)
    assert t.x.flatten().tolist() == [5, 6, 8]
    assert (s.num_edges, s.num_nodes) == (0, 1)
    assert read(roads, directed=True)[0].num_edges == 3


def test_targets_of_nodes_and_edges_are_no_features(roads: Path) -> None:
    loads = read(roads, columns=["load"])
    assert (loads.task.level, loads.task.units) == ("edge", ("t",))
    assert loads[0].y.shape == (4, 1)
    assert loads[0].edge_attr.shape == (4, 1)
    with pytest.raises(
        ValueError, match="t has 4 targets of edges, but 6 edges; take those of the"
    ):
        read(roads, columns=["load"], k=2)
    people = read(roads, columns=["people"])
    assert people.task.level == "node"
    assert people[0].y.flatten().tolist() == [5, 6, 8]
    assert people[0].x is None
    again = read(roads, **people.options)  # as for a prediction: the targets are still none
    assert again[0].x is None


def test_a_file_for_each_graph(tmp_path: Path) -> None:
    for name in "ab":
        write_csv(tmp_path / f"{name}.nodes.csv", ["x", "y"], [[0, 0], [1, 0], [0, 1]])
        write_csv(tmp_path / f"{name}.edges.csv", ["source", "target"], [[0, 2]])
    write_csv(tmp_path / "c.csv", ["x", "y"], [[0, 0], [1, 0], [0, 1]])
    graphs = read(tmp_path)
    assert graphs.names == ["a", "b", "c"]
    assert [graph.num_edges for graph in graphs] == [2, 2, 6]


def test_semicolons_tabs_and_a_mark_at_the_beginning(tmp_path: Path) -> None:
    for name, text in {"a.csv": "﻿x;y\n0;1\n1;2\n", "b.tsv": "x\ty\n0\t1\n\n1\t2\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [graph.pos.tolist() for graph in read(tmp_path)] == [[[0, 1], [1, 2]]] * 2


# ---------------------------------------------------------------- arrays


@few
@given(pos=points(least=2), scalar=st.floats(-5, 5, width=32))
def test_npz_and_pt(tmp_path: Path, pos: np.ndarray, scalar: float) -> None:
    edges = np.array([[0, 1], [1, 0]])
    np.savez(tmp_path / "a.npz", pos=pos, edge_index=edges, x=pos[:, :1], y=scalar)
    tensors = {
        "pos": torch.tensor(pos, dtype=torch.float32),
        "edge_index": torch.tensor(edges),
        "x": torch.tensor(pos[:, :1], dtype=torch.float32),
        "y": torch.tensor([[scalar]]),
    }
    torch.save([Data(**tensors), Data(**tensors, name="second")], tmp_path / "b.pt")
    torch.save(tensors, tmp_path / "c.pt")
    graphs = read(tmp_path)
    assert graphs.names == ["a", "b-0", "second", "c"]
    assert graphs.task.level == "graph"
    for graph in graphs:
        for name, value in tensors.items():
            assert torch.equal(graph[name], value), name


def test_a_trajectory_in_an_npz(tmp_path: Path) -> None:
    water = g2["H2O"]
    pos = water.positions + np.random.default_rng(0).normal(size=(5, 3, 3)) * 0.02
    np.savez(tmp_path / "md.npz", R=pos, z=water.numbers, E=np.arange(5.0)[:, None], F=pos * 2)
    graphs = read(tmp_path / "md.npz", columns=["E"])
    assert graphs.names == [f"md-{t}" for t in range(5)]
    assert [graph.y.item() for graph in graphs] == [0, 1, 2, 3, 4]
    assert all(graph.num_edges == 4 for graph in graphs)
    forces = read(tmp_path / "md.npz", columns=["F"], level="node-vectors")
    assert forces.task.vectors == ("F",)
    assert np.allclose(forces[3].y, pos[3] * 2, atol=1e-6)


def test_graphs_in_memory() -> None:
    pos = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    given = [Data(pos=pos, vel=pos * 2, y=torch.tensor([i])) for i in (0, 1, 2)]
    graphs = read(given, radius=2.0)  # y of whole numbers is a class
    assert graphs.task.classes == ("0", "1", "2")
    assert [graph.y.tolist() for graph in graphs] == [[0], [1], [2]]
    assert torch.equal(graphs[1].vel, pos * 2)
    assert torch.equal(graphs[0].edge_index, radius_graph(pos, 2.0))
    batch = Batch.from_data_list(list(graphs))
    assert batch.y.shape == (3,)
    assert batch.name == ["graph-0", "graph-1", "graph-2"]


def test_new_edges_drop_what_belonged_to_the_old() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    weights = {"edge_attr": torch.ones(2, 1), "edge_weight": torch.ones(2)}
    graph = Data(pos=torch.randn(4, 2), edge_index=edge_index, **weights)
    kept, dropped = read([graph])[0], read([graph], k=2)[0]
    assert torch.equal(kept.edge_weight, weights["edge_weight"])
    assert torch.equal(kept.edge_attr, weights["edge_attr"])
    assert "edge_weight" not in dropped
    assert "edge_attr" not in dropped


def test_a_pickle_is_not_loaded(tmp_path: Path) -> None:
    torch.save({"pos": torch.zeros(2, 3), "path": Path("x")}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt: cannot be read with weights only.*pathlib"):
        read(tmp_path)
    np.savez(tmp_path / "a.npz", pos=np.array([{}, None], dtype=object))
    with pytest.raises(ValueError, match=r"a\.npz: .*holds Python objects"):
        read(tmp_path / "a.npz")


# ---------------------------------------------------------------- folders


def test_files_are_sorted_and_folders_are_classes(tmp_path: Path) -> None:
    for folder in ("round", "edgy"):
        (tmp_path / folder).mkdir()
        for name in ("b", "a"):
            write_csv(tmp_path / folder / f"{name}.csv", ["x"], [[0], [1]])
    (tmp_path / ".hidden.csv").write_text("broken")
    (tmp_path / "notes.txt").write_text("no structure")
    graphs = read(tmp_path, columns=["folder"])
    assert graphs.names == ["edgy/a", "edgy/b", "round/a", "round/b"]
    assert [graph.y.item() for graph in graphs] == [0, 0, 1, 1]


def test_several_processes_give_the_same() -> None:
    alone, shared = (read(sample("smiles"), workers=workers) for workers in (0, 2))
    assert alone.names == shared.names
    for one, other in zip(alone, shared, strict=True):
        assert torch.equal(one.pos, other.pos)
        assert torch.equal(one.edge_index, other.edge_index)


def test_bar_after_two_seconds(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    read(sample("molecules"), progress=True)
    assert capfd.readouterr().err == ""
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr("symgnn.progress.time.monotonic", lambda: next(clock))
    read(sample("molecules"), progress=True)
    assert "reading 18 files" in capfd.readouterr().err
