"""Datasets by name, and their checks."""

from pathlib import Path

import pytest
import torch

from symgnn.data import DATASETS, NBody, Splits, load
from symgnn.data._checking import check_graphs, facts


@pytest.mark.parametrize("name", ["qm9", "mnist", "cifar10", "nbody", "polytopes-3d"])
def test_edges_are_about_1_long(name: str, tmp_path: Path) -> None:
    given = {"source": "sample", "root": tmp_path, "limit": 20}
    options = {key: given[key] for key in given if key in DATASETS[name].options}
    found = load(name, **options)
    if name == "nbody":  # as in published results
        assert found.scale == 1
    else:
        assert facts(found)["median edge"] == pytest.approx(1.0, abs=0.1)
    assert check_graphs(found) == []


def test_particles_are_scaled_with_their_answer(tmp_path: Path) -> None:
    found = load("nbody", root=tmp_path, limit=3, scale=0.5)
    plain = NBody("train", train=3)
    for _ in range(2):  # and not once more each time
        for name in ("pos", "vel", "x", "y"):
            assert torch.allclose(found.train[1][name], found.scale * plain[1][name])
    assert found.task.level == "coordinates"


def test_particles_with_distances(tmp_path: Path) -> None:
    graph = load("nbody", root=tmp_path, limit=2, distances=True).test[0]
    source, target = graph.edge_index
    length = (graph.pos[source] - graph.pos[target]).norm(dim=1)
    torch.testing.assert_close(graph.edge_attr[:, 1], length.square())
    assert graph.edge_attr.shape == (20, 2)


def test_polytopes() -> None:
    found = load("polytopes-4d", copies=2)
    assert [len(part) for part in (found.train, found.validation, found.test)] == [6, 12, 12]
    assert not torch.equal(found.validation[0].pos, found.test[0].pos)
    assert found.task.classes[0] == "simplex"


def test_wrong_names() -> None:
    with pytest.raises(ValueError, match=r"^name: 'cifar' is not .*; did you mean 'cifar10'\?"):
        load("cifar")
    with pytest.raises(ValueError, match=r"^name: 'x' is not a dataset; choose from qm9, mnist"):
        load("x")
    with pytest.raises(ValueError, match=r"^weight: is not .* of mnist; did you mean 'weights'"):
        load("mnist", weight=True)


def faulty(change) -> Splits:
    """The sample of travelling salesmen, with the first graph changed."""
    found = load("tsp", source="sample")
    data = found.train[0]
    change(data)
    return Splits([data], found.validation, found.test, found.task)


def looped(data) -> None:
    data.edge_index[:, 0] = 3


def doubled(data) -> None:
    data.edge_index[:, 1] = data.edge_index[:, 0]


def test_checks_find_what_is_wrong() -> None:
    wrong = {
        "pos is not finite": lambda data: data.pos.fill_(torch.nan),
        "edge_index names nodes that are not there": lambda data: data.edge_index.add_(1),
        "edge_index has loops": looped,
        "edge_index has an edge twice": doubled,
        "y has 3 rows, not 1250": lambda data: data.update({"y": data.y[:3]}),
        "y names a class that is not there": lambda data: data.y.add_(1),
    }
    for message, change in wrong.items():
        assert f"train 0: {message}" in check_graphs(faulty(change))


def test_checks_find_graphs_in_two_splits() -> None:
    found = load("mnist", source="sample", limit=2)
    twice = Splits(found.train, found.train[:1], found.test, found.task)
    assert check_graphs(twice) == ["validation 0: is the same as train 0"]
    empty = Splits(found.train, [], found.test, found.task)
    assert check_graphs(empty) == ["validation: has no graphs"]
