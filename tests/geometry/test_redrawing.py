"""Parallel redrawings keep the direction of every edge."""

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clouds import directed, edge_lengths, graph_points, random_tree, rng, vertex_angles
from symgnn.data import polytope
from symgnn.geometry import NoSuchTransformation, Redrawing
from symgnn.geometry.redrawing import redrawings

pytestmark = pytest.mark.usefixtures("one_thread")

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10**6)


def check(pos, edge_index, seed=0):
    """Each edge is a positive multiple of what it was, and not all by the same factor."""
    image = Redrawing.random(pos, edge_index, generator=rng(seed))(pos)
    source, target = edge_index
    before, after = pos[source] - pos[target], image[source] - image[target]
    factor = (after * before).sum(1) / before.square().sum(1)
    scale = before.norm(dim=1).max()
    torch.testing.assert_close(after, factor.unsqueeze(1) * before, rtol=0, atol=1e-12 * scale)
    assert factor.min() > 0.29
    assert factor.max() < 4.01
    return image, factor


@given(n=st.integers(1, 6), seed=seeds)
@few
def test_trees_have_a_length_of_their_own_for_each_edge(n, seed):
    graph = random_tree(7, seed)
    pos = graph_points(7, n, seed)
    pairs = directed(graph)[:, ::2]
    assert len(redrawings(pos, pairs)) == 5  # six edges, less the dilation
    image, factor = check(pos, directed(graph), seed)
    assert factor.max() - factor.min() > 1e-3
    if n > 1:
        error = (vertex_angles(image, graph) - vertex_angles(pos, graph)).abs().max()
        assert error < 1e-10


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_cube_becomes_a_box(n):
    cube = polytope("hypercube", n, dtype=torch.float64)
    assert len(redrawings(cube.pos, cube.edge_index)) == n - 1
    image, _ = check(cube.pos, cube.edge_index)
    lengths = edge_lengths(image, cube.edge_index)
    assert len(lengths.mul(1e9).round().unique()) == n  # one for each axis


@pytest.mark.parametrize("graph", [nx.complete_graph(4), nx.octahedral_graph()])
def test_rigid_graphs_have_none(graph):
    with pytest.raises(NoSuchTransformation, match="directions of the edges fix the graph"):
        Redrawing.random(graph_points(len(graph), 3), directed(graph), generator=rng())


def test_a_generic_hexagon_in_space():
    pos, graph = graph_points(6, 3), nx.cycle_graph(6)
    # six lengths, three equations that close the ring, less the dilation
    assert len(redrawings(pos, directed(graph))) == 2
    check(pos, directed(graph))


def test_components_move_and_grow_on_their_own():
    graph = nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(5))
    pos = graph_points(9, 3)
    assert len(redrawings(pos, directed(graph))) == 4  # a shift and a dilation of one of them
    check(pos, directed(graph))


def test_ends_of_an_edge_of_length_zero_stay_together():
    pos = graph_points(6, 3)
    pos[3] = pos[2]
    edge_index = directed(nx.path_graph(6))
    image = Redrawing.random(pos, edge_index, generator=rng(1))(pos)
    torch.testing.assert_close(image[3], image[2])


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_any_scale_and_type(size):
    pos, graph = size * graph_points(7, 3), random_tree(7, 3)
    check(pos, directed(graph))
    image = Redrawing.random(pos.float(), directed(graph), generator=rng(1))(pos.float())
    assert image.dtype == torch.float32
    error = (vertex_angles(image, graph) - vertex_angles(pos.float(), graph)).abs().max()
    assert error < 1e-4


def test_one_node_and_no_edges():
    with pytest.raises(NoSuchTransformation):
        Redrawing.random(torch.zeros(1, 3), torch.empty(2, 0, dtype=torch.long))
    pos = graph_points(3, 3)
    image = Redrawing.random(pos, torch.empty(2, 0, dtype=torch.long), generator=rng())(pos)
    assert (image - pos).abs().max() > 1e-3
