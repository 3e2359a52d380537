"""Tables, arrays and folders"""

from pathlib import Path

import numpy as np
import pytest
import torch
from ase.collections import g2
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from data.files.format_cases import both, few, pairs, points, write_csv
from symgnn.data import read, sample
from symgnn.graphs import knn_graph, radius_graph

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
        ValueError, match="t has 4 targets of edges, but 6 edges; use the edges of the"
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
