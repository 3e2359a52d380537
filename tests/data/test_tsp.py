"""Travelling salesman problems: their format, their graphs, their tours."""

import zipfile
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch_geometric.loader import DataLoader
from torch_geometric.utils import degree

from shared_data import shared
from symgnn.data import _tsp as tsp
from symgnn.data import load
from symgnn.data._tours import solve, tour_length, two_opt
from symgnn.data._tsp import Instance, format_instance, generate, parse_instance, tsp_graph

FAST = {"seconds_per_node": 0.001}


def lines(split: str = "train") -> list[str]:
    folder = Path(tsp.__file__).parent / "samples"
    return (folder / tsp.FILES[split].name).read_text().splitlines(keepends=True)


# ---------------------------------------------------------------- format


def test_read_and_written() -> None:
    for line in lines():
        assert format_instance(parse_instance(line)) == line
    square = parse_instance("0.0 0.0 1.0 0.0 1.0 1.0 0.0 1.0 output 2 3 4 1 2 \n")
    assert square.pos.tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]
    assert square.tour.tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.1 0.2 0.3 output 1 2 1", "expected numbers x1 y1 ..., output, t1 t2 ... t1"),
        ("0.1 0.2", "expected numbers"),
        ("output 1 1", "expected numbers"),
        ("0.1 zero output 1 1", "expected numbers"),
        ("0.1 nan output 1 1", "expected numbers"),
        ("0.1 0.2 0.3 0.4 output 1 99999999999999999999 1", "expected numbers"),
        ("0.1 0.2 0.3 0.4 output 1 3 1", "the tour does not visit each of 2 nodes once"),
        ("0.1 0.2 0.3 0.4 output 1 1", "the tour does not visit each of 2 nodes once"),
        ("0.1 0.2 0.3 0.4 output 1 2 2 1", "the tour does not visit each of 2 nodes once"),
    ],
)
def test_wrong_lines(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / tsp.FILES["train"].name
    path.write_text(lines()[0] + line)
    with pytest.raises(ValueError, match=f"tsp50-500_train.txt, line 2: {message}"):
        load("tsp", source=tmp_path)


# ---------------------------------------------------------------- graphs


def test_graph() -> None:
    instance = parse_instance(lines()[0])
    graph = tsp_graph(instance, distance=True, scale=2.0)
    count = len(instance.pos)
    assert (degree(graph.edge_index[1]) == 25).all()
    source, target = graph.edge_index
    apart = cdist(instance.pos, instance.pos)
    for node in range(count):
        nearest = np.argsort(apart[node])[1:26]
        assert sorted(source[target == node].tolist()) == sorted(nearest.tolist())
    steps = list(zip(instance.tour, np.roll(instance.tour, -1), strict=True))
    taken = {*steps, *((b, a) for a, b in steps)}
    expected = [(int(a), int(b)) in taken for a, b in graph.edge_index.T]
    assert graph.y.tolist() == [int(each) for each in expected]
    assert int(graph.y.sum()) >= 2 * count - 4
    assert torch.allclose(graph.pos.double(), 2 * torch.from_numpy(instance.pos))
    lengths = (graph.pos[source] - graph.pos[target]).norm(dim=1)
    assert torch.allclose(graph.edge_attr[:, 0], lengths, atol=1e-6)


def test_fewer_nodes_than_neighbours() -> None:
    graph = tsp_graph(Instance(np.random.default_rng(0).random((4, 2)), np.arange(4)))
    assert graph.num_edges == 12
    assert int(graph.y.sum()) == 8


def test_the_sample() -> None:
    found = load("tsp", source="sample")
    assert [len(part) for part in (found.train, found.validation, found.test)] == [2, 1, 1]
    assert found.task.level == "edge"
    assert found.train[0].edge_attr is None
    batch = next(iter(DataLoader(found.train, batch_size=2)))
    assert batch.y.shape == (batch.edge_index.shape[1],)


def test_files_and_the_archive_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYMGNN_DATA", raising=False)
    with zipfile.ZipFile(tmp_path / "TSP.zip", "w") as archive:
        for split, file in tsp.FILES.items():
            archive.writestr(f"TSP/{file.name}", "".join(lines(split)))
    from_archive = load("tsp", source=tmp_path / "TSP.zip")
    for split, file in tsp.FILES.items():
        (tmp_path / file.name).write_text("".join(lines(split)))
    from_files = load("tsp", source=tmp_path, limit=[1, 1, 1])
    assert torch.equal(from_archive.train[0].y, from_files.train[0].y)
    assert (len(from_archive.train), len(from_files.train)) == (2, 1)
    (tmp_path / "TSP.zip").unlink()
    (tmp_path / tsp.FILES["test"].name).unlink()
    with pytest.raises(ValueError, match=r"has no tsp50-500_test.txt; add it, or generate"):
        load("tsp", source=tmp_path)
    (tmp_path / "TSP.zip").write_text("no archive")
    with pytest.raises(ValueError, match=r"TSP.zip: is not a whole zip file .*replace it"):
        load("tsp", source=tmp_path)


def test_real_instances() -> None:
    found = tsp.read_instances(shared("tsp") / "tsp" / tsp.FILES["test"].name, 20)
    assert len(found) == 20
    for instance in found:
        graph = tsp_graph(instance)
        assert graph.num_edges == 25 * graph.num_nodes
        assert int(graph.y.sum()) / (2 * graph.num_nodes) > 0.99  # the tour is among the edges


# ---------------------------------------------------------------- tours


@pytest.mark.parametrize("count", [4, 5, 7])
def test_the_shortest_tour(count: int) -> None:
    points = np.random.default_rng(count).random((count, 2))
    length = cdist(points, points)
    shortest = min(
        tour_length(length, np.array([0, *rest])) for rest in permutations(range(1, count))
    )
    assert tour_length(length, solve(points)) == pytest.approx(shortest)


def test_tours_are_checked() -> None:
    for instance in generate(5, seed=3, nodes=(30, 60), **FAST):
        count = len(instance.pos)
        assert 30 <= count <= 60
        assert np.array_equal(np.sort(instance.tour), np.arange(count))
        assert instance.tour[0] == 0
        assert instance.tour[1] < instance.tour[-1]
        length = cdist(instance.pos, instance.pos)
        assert np.array_equal(two_opt(length, instance.tour), instance.tour)
        assert tour_length(length, instance.tour) <= tour_length(length, greedy(length)) + 1e-12


def greedy(length: np.ndarray) -> np.ndarray:
    """Always on to the nearest that is left."""
    tour, left = [0], set(range(1, len(length)))
    while left:
        tour.append(min(left, key=lambda node: length[tour[-1], node]))
        left.remove(tour[-1])
    return np.array(tour)


def test_crossings_are_removed() -> None:
    square = np.array([[0.0, 0], [1, 1], [1, 0], [0, 1]])
    length = cdist(square, square)
    assert tour_length(length, np.arange(4)) > 4.5
    assert tour_length(length, two_opt(length, np.arange(4))) == pytest.approx(4.0)


def test_seeds() -> None:
    first, same, other = (generate(3, seed=seed, nodes=(5, 9)) for seed in (1, 1, 2))
    for one, two in zip(first, same, strict=True):
        assert np.array_equal(one.pos, two.pos)
        assert np.array_equal(one.tour, two.tour)
    assert not np.array_equal(first[0].pos, other[0].pos)
    fewer = generate(2, seed=1, nodes=(5, 9))
    assert all(np.array_equal(a.pos, b.pos) for a, b in zip(first, fewer, strict=False))


def test_generated_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"source": "generated", "root": tmp_path, "limit": [3, 2, 2], "nodes": [5, 9]}
    found = load("tsp", **options)
    monkeypatch.setattr(tsp, "generate", None)
    again = load("tsp", **options)
    assert [len(part) for part in (again.train, again.validation, again.test)] == [3, 2, 2]
    assert torch.equal(found.train[1].pos, again.train[1].pos)
    assert not torch.equal(found.train[0].pos, found.test[0].pos)
    assert found.about["tours"] == "fast-tsp"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": [9, 5]}, "nodes: 9 to 5 is not possible; pass the smaller one first"),
        ({"nodes": [3, 5]}, "nodes: is 3; give a whole number of at least 4"),
        ({"seed": -1}, "seed: is -1; give a whole number"),
    ],
)
def test_wrong_options(tmp_path: Path, wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        load("tsp", source="generated", limit=1, root=tmp_path, **wrong)
