"""Rows for edges and their reverses, against a search by hand."""

from __future__ import annotations

import pytest
import torch

from symgnn.graphs import Topology, periodic_graph
from symgnn.graphs.edge_pairs import EdgePairs, edge_pairs


def crystal(seed: int, atoms: int = 5) -> tuple[Topology, torch.Tensor]:
    """Atoms in a cell that is smaller than the radius, some of them neighbours of themselves."""
    random = torch.Generator().manual_seed(seed)
    pos = 3 * torch.rand(atoms, 3, generator=random, dtype=torch.float64)
    index, shift = periodic_graph(pos, 3.0 * torch.eye(3), 3.3)
    kinds = torch.randint(0, 2, (atoms,), generator=random)
    return Topology.build(index, atoms, angles=False, edge_shift=shift), kinds


def check(pairs: EdgePairs, kinds: torch.Tensor, index: torch.Tensor, shift: torch.Tensor) -> None:
    """All of it, edge by edge."""
    edges = index.shape[1]
    assert torch.equal(torch.stack([pairs.source, pairs.target]), index)
    for edge, back in enumerate(pairs.reverse.tolist()):
        assert index[:, edge].tolist() == index[:, back].flip(0).tolist()
        assert torch.equal(shift[edge], -shift[back])
        same = bool(kinds[index[0, edge]] == kinds[index[1, edge]])
        row = int(pairs.row[edge])
        assert (int(pairs.row[back]) == row) is same
        wanted = {edge, back} if same else {edge, edges}
        assert {int(pairs.first[row]), int(pairs.second[row])} == wanted
        assert int(pairs.line[row]) == int(pairs.line[pairs.row[back]])
    assert sorted(pairs.row.unique().tolist()) == list(range(len(pairs.first)))
    assert torch.equal(pairs.line[pairs.lines], torch.arange(len(pairs.lines)))
    starts = torch.searchsorted(index[1].contiguous(), torch.arange(len(kinds) + 1))
    assert torch.equal(pairs.offsets, starts)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_of_edges_and_reverses(seed: int) -> None:
    topology, kinds = crystal(seed)
    pairs = edge_pairs(topology, kinds)
    assert pairs is not None
    assert torch.equal(pairs.number, pairs.first)
    assert topology.edge_shift is not None
    check(pairs, kinds, topology.edge_index, topology.edge_shift)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_some_lines_alone(seed: int) -> None:
    topology, kinds = crystal(seed)
    pairs = edge_pairs(topology, kinds)
    assert pairs is not None
    chosen = torch.rand(len(pairs.lines), generator=torch.Generator().manual_seed(seed)) < 0.6
    left = pairs.kept(chosen)
    there = chosen[pairs.line[pairs.row]]
    assert topology.edge_shift is not None
    check(left, kinds, topology.edge_index[:, there], topology.edge_shift[there])
    # the number of each row is that of its first edge among all
    assert torch.equal(there.nonzero().squeeze(1)[left.first], left.number)


def test_all_or_none_are_kept() -> None:
    topology, kinds = crystal(3)
    pairs = edge_pairs(topology, kinds)
    assert pairs is not None
    every = torch.ones(len(pairs.lines), dtype=torch.bool)
    assert all(torch.equal(a, b) for a, b in zip(pairs.kept(every), pairs, strict=True))
    nothing = pairs.kept(~every)
    assert len(nothing.row) == len(nothing.first) == 0
    assert nothing.offsets.tolist() == [0] * 6


def test_without_kinds_a_line_is_a_row() -> None:
    topology, _ = crystal(0)
    pairs = edge_pairs(topology, None)
    assert pairs is not None
    assert 2 * len(pairs.first) == topology.num_edges


@pytest.mark.parametrize(
    "edges",
    [
        [[], []],
        [[0, 1], [1, 2]],  # one way
        [[1, 0, 1, 0], [0, 1, 0, 1]],  # not sorted by target
        [[1, 1, 0, 0], [0, 0, 1, 1]],  # twice
        [[1, 1], [0, 0]],  # twice, one way
    ],
)
def test_other_graphs_have_none(edges: list[list[int]]) -> None:
    topology = Topology.build(torch.tensor(edges).long().view(2, -1), 3, angles=False)
    assert edge_pairs(topology, None) is None
