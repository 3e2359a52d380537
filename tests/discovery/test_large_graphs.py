"""Graphs with many nodes: a random part of their elements is listed, and fewer graphs are read."""

import itertools

import pytest
import torch
from torch_geometric.data import Data

import symgnn
from symgnn.discovery import _discover, _listed_elements
from symgnn.discovery._listed_elements import angles_of, chains_of, pairs_of
from symgnn.discovery._moving import element


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def random_edges(count: int, share: float) -> torch.Tensor:
    """In both directions, sorted by target and source."""
    there = torch.rand(count, count, generator=seeded()) < share
    there = (there | there.T) & ~torch.eye(count, dtype=torch.bool)
    target, source = there.nonzero().T
    return torch.stack([source, target])


def listed(edges: torch.Tensor, count: int) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """The angles and the chains, by loops."""
    near: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges.T.tolist():
        near[target].append(source)
    angles = {(j, i, k) for i in range(count) for j, k in itertools.combinations(near[i], 2)}
    chains = {
        (j, i, k, l)
        for i in range(count)
        for k in near[i]
        if i < k
        for j in near[i]
        for l in near[k]
        if j != k and l != i and j != l
    }
    return angles, chains


def as_set(found: torch.Tensor) -> set[tuple[int, ...]]:
    rows = [tuple(row) for row in found.T.tolist()]
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.mark.parametrize(("count", "share"), [(1, 0.0), (2, 1.0), (9, 0.4), (30, 0.1), (12, 1.0)])
def test_all_elements_of_a_small_graph(count: int, share: float) -> None:
    edges = random_edges(count, share)
    angles, chains = listed(edges, count)
    found, some = angles_of(edges, count, seeded())
    assert (as_set(found), some) == (angles, False)
    found, some = chains_of(edges, count, seeded())
    assert (as_set(found), some) == (chains, False)


def test_a_random_part_of_the_elements_of_a_large_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = random_edges(60, 0.2)
    angles, chains = listed(edges, 60)
    monkeypatch.setattr(_listed_elements, "MOST_LISTED", 1_000)
    monkeypatch.setattr(_listed_elements, "MOST_DRAWN", 1_000)
    found, some = angles_of(edges, 60, seeded())
    assert some
    assert as_set(found) < angles
    assert 100 < found.shape[1] <= 500
    assert found[1].unique().numel() > 50  # vertices
    found, some = chains_of(edges, 60, seeded())
    assert some
    assert as_set(found) < chains
    assert 100 < found.shape[1] <= 1_000
    assert found[1].unique().numel() > 30  # not only the first edges


@pytest.mark.parametrize("most", [1_000_000, 1_000])
def test_hops_between_pairs(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(_listed_elements, "MOST_LISTED", most)
    edges = random_edges(100, 0.02)
    pairs, hops, some = pairs_of(edges, 100, seeded())
    assert some == (most == 1_000)
    assert bool((pairs[0] != pairs[1]).all())
    step = torch.eye(100)
    joined = torch.zeros(100, 100)
    joined[edges[0], edges[1]] = 1.0
    away = torch.full((100, 100), 4)
    for hop in (1, 2, 3):
        step = step @ (joined + torch.eye(100))
        away[(step > 0) & (away == 4)] = hop
    torch.testing.assert_close(hops, away[pairs[0], pairs[1]], rtol=0, atol=0)
    assert hops.unique().tolist() == [1, 2, 3, 4]


def ring(count: int, seed: int) -> Data:
    generator = torch.Generator().manual_seed(seed)
    at = torch.arange(count)
    edges = torch.stack([at, at.roll(-1)])
    pos = torch.randn(count, 3, generator=generator)
    length = (pos[edges[0]] - pos[edges[1]]).norm(dim=1).mean()
    return Data(pos=pos, edge_index=torch.cat([edges, edges.flip(0)], 1), y=length.view(1, 1))


def test_flexes_of_large_graphs_are_not_tried_and_the_report_says_so() -> None:
    assert element("flex", ring(200, 0), seeded()) is not None
    assert element("flex", ring(201, 0), seeded()) is None
    report = symgnn.discover(
        [ring(201, seed) for seed in range(40)], minutes=5, questions=(), progress=False
    )
    assert report.untried == ["flex", "redrawing"]
    assert not {"flex", "redrawing"} & {*report.absent, *report.verdicts}
    assert report.verdicts["rotation"].verdict == "kept"
    assert "not tried:              flexes, redrawings" in str(report)
    assert "graphs with at most 600 coordinates, and some" in " ".join(report.warnings)
    assert report.to_dict()["untried"] == report.untried


def test_flexes_of_graphs_of_mixed_sizes_are_of_the_small_ones() -> None:
    """The rings with more than 600 coordinates stay as they are, and the report counts them."""
    graphs = [ring(201 if seed % 4 == 0 else 12, seed) for seed in range(40)]
    report = symgnn.discover(graphs, minutes=5, questions=(), progress=False)
    assert report.untried == []
    assert "flex" in report.verdicts
    (note,) = [text for text in report.warnings if "600 coordinates" in text]
    assert "10 of 40 graphs have more, and the verdict is of the others" in note
    assert note.startswith("Flexes")


def test_fewer_large_graphs_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [ring(20, seed) for seed in range(100)]
    assert len(_discover._chosen(graphs, 0)) == 100
    monkeypatch.setattr(_discover, "MOST_NODES", 1_200)
    assert len(_discover._chosen(graphs, 0)) == 60
    monkeypatch.setattr(_discover, "MOST_EDGES", 2_200)
    assert len(_discover._chosen(graphs, 0)) == 55
    monkeypatch.setattr(_discover, "MOST_EDGES", 1)
    assert len(_discover._chosen(graphs, 0)) == 50
