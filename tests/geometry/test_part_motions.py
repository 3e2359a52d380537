"""Motions of parts keep the lengths of edges and the angles at vertices."""

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clouds import directed, edge_lengths, graph_points, rng, vertex_angles
from symgnn.geometry import NoSuchTransformation, PartMotion, Torsion

few = settings(max_examples=20, deadline=None)


def two_threes() -> tuple[nx.Graph, torch.Tensor]:
    """The paper's figure: two subgraphs of three nodes, joined by a bond."""
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    return graph, torch.tensor([0, 0, 0, 1, 1, 1])


def chain() -> tuple[nx.Graph, torch.Tensor]:
    """Three triangles in a row, joined by bonds."""
    triangles = [(3 * k + a, 3 * k + b) for k in range(3) for a, b in ((0, 1), (1, 2), (0, 2))]
    return nx.Graph([*triangles, (2, 3), (5, 6)]), torch.arange(9) // 3


def assert_kept(pos, image, graph, part):
    lengths = [edge_lengths(x, directed(graph)) for x in (pos, image)]
    torch.testing.assert_close(*lengths, rtol=0, atol=1e-11)
    if pos.shape[1] > 1:
        error = (vertex_angles(image, graph) - vertex_angles(pos, graph)).abs().max()
        assert error < 1e-9
    for number in part.unique():
        own = part == number
        torch.testing.assert_close(torch.pdist(pos[own]), torch.pdist(image[own]))


@pytest.mark.parametrize("make", [two_threes, chain])
@given(n=st.integers(2, 5), seed=st.integers(0, 10**6))
@few
def test_lengths_and_angles_are_kept(make, n, seed):
    graph, part = make()
    pos = graph_points(len(graph), n, seed)
    element = PartMotion.random(pos, directed(graph), generator=rng(seed), part=part)
    image = element(pos)
    assert_kept(pos, image, graph, part)
    assert (torch.pdist(pos) - torch.pdist(image)).abs().max() > 1e-6  # not the whole as one
    eye = torch.eye(n, dtype=torch.float64).expand_as(element.matrices)
    torch.testing.assert_close(element.matrices @ element.matrices.mT, eye, rtol=0, atol=1e-12)


def test_a_torsion_about_a_bond_between_parts_is_one():
    graph, part = two_threes()
    pos = graph_points(6, 3)
    turn = Torsion.about(pos, directed(graph), bridge=(2, 3), angle=1.1)
    pivot = pos[3]
    matrices = torch.stack([torch.eye(3, dtype=torch.float64), turn.matrix])
    offsets = torch.stack([torch.zeros_like(pivot), pivot - turn.matrix @ pivot])
    torch.testing.assert_close(PartMotion(part, matrices, offsets)(pos), turn(pos))


def test_parts_without_edges_between_them_move_freely():
    graph = nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(3))
    part = torch.tensor([0] * 4 + [1] * 3)
    pos = graph_points(7, 3)
    image = PartMotion.random(pos, directed(graph), generator=rng(1), part=part)(pos)
    assert_kept(pos, image, graph, part)
    apart = [x[:4].mean(0) - x[4:].mean(0) for x in (pos, image)]
    assert (apart[0] - apart[1]).norm() > 0.1


def test_what_has_no_such_motion():
    pos = graph_points(6, 3)
    complete = directed(nx.complete_graph(6))
    halves = torch.tensor([0, 0, 0, 1, 1, 1])
    with pytest.raises(NoSuchTransformation, match="joined by fewer edges"):
        PartMotion.random(pos, complete, generator=rng(), part=halves)
    with pytest.raises(NoSuchTransformation, match="joined by fewer edges"):
        PartMotion.random(pos, complete, generator=rng(), part=torch.zeros(6, dtype=torch.long))
    with pytest.raises(NoSuchTransformation, match=r"has no attribute part; set part \[N\]"):
        PartMotion.random(pos, complete, generator=rng())


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (torch.zeros(5, dtype=torch.long), r"part: is torch.int64 of shape \[5\]"),
        (torch.zeros(6), r"part: is torch.float32 .* give a whole number for each node"),
        (torch.full((6,), -1), "part: has the number -1; number the parts from 0"),
    ],
)
def test_wrong_parts(part, message):
    with pytest.raises(ValueError, match=message):
        PartMotion.random(graph_points(6, 3), directed(nx.path_graph(6)), part=part)
