import math

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clouds import directed, edge_lengths, random_tree, rng, vertex_angles
from clouds import graph_points as points
from symgnn.geometry import Flex, NoSuchTransformation
from symgnn.geometry.mechanisms import folding_square, hoberman_sphere
from symgnn.geometry.rigidity import flexing_part

few = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10**6)


pytestmark = pytest.mark.usefixtures("one_thread")


def check_flex(pos, edge_index, seed, **options):
    element = Flex.random(pos, edge_index, generator=rng(seed), **options)
    image = element(pos)
    before, after = edge_lengths(pos, edge_index), edge_lengths(image, edge_index)
    assert ((after - before).abs() <= 1e-12 * before + 1e-15).all()
    radius = (pos - pos.mean(0)).norm(dim=1).max()
    size = options.get("size", 0.3)
    assert (torch.pdist(image) - torch.pdist(pos)).abs().max() > 0.04 * size * radius
    # a path of n steps is never longer than their sum, but for the small corrections
    assert (image - pos).norm(dim=1).max() < 1.5 * size * radius
    return image


@given(n=st.integers(1, 6), seed=seeds)
@few
def test_flexing_part_stretches_nothing_and_is_no_rigid_motion(n, seed):
    pos = points(7, n, seed) - 3
    pairs = torch.tensor([[0, 1, 2, 3, 5], [1, 2, 3, 0, 4]])
    lengths = (pos[pairs[0]] - pos[pairs[1]]).norm(dim=1)
    velocity = torch.randn(7, n, generator=rng(seed), dtype=torch.float64)
    part = flexing_part(velocity, pos, pairs, lengths)
    assert part.norm() > 1e-3
    moved, back = ((x[pairs[0]] - x[pairs[1]]).norm(dim=1) for x in (pos + part, pos - part))
    skew = torch.randn(n, n, generator=rng(seed), dtype=torch.float64)
    rigid = pos @ (skew - skew.T) + skew[0]
    assert abs(float((part * rigid).sum())) < 1e-9 * (1 + float(rigid.norm() * part.norm()))
    # no first-order change: the lengths squared change alike in both directions
    assert torch.allclose(moved.square(), back.square(), rtol=1e-9, atol=1e-9)
    # and what is left out is all that does: projecting twice is projecting once
    assert torch.allclose(flexing_part(part, pos, pairs, lengths), part, atol=1e-10)


@given(n=st.integers(2, 6), seed=seeds)
@few
def test_flex_keeps_edge_lengths(n, seed):
    # a connected graph with fewer edges than what would make it rigid
    graph = random_tree(7, seed)
    graph.add_edges_from([(0, 3), (2, 5)])
    pos, edge_index = points(7, n, seed), directed(graph)
    image = check_flex(pos, edge_index, seed)
    assert torch.equal(image, Flex.random(pos, edge_index, generator=rng(seed))(pos))


def test_flex_changes_vertex_angles():
    graph = nx.path_graph(5)
    pos = points(5, 3)
    image = check_flex(pos, directed(graph), 1)
    assert (vertex_angles(image, graph) - vertex_angles(pos, graph)).abs().max() > 0.01


def test_flex_size():
    pos, edge_index = points(6, 3), directed(nx.cycle_graph(6))
    for size in (0.01, 0.1, 1.0):
        check_flex(pos, edge_index, 3, size=size)


def test_flex_in_one_dimension_moves_components():
    graph = nx.disjoint_union(nx.path_graph(3), nx.path_graph(2))
    check_flex(points(5, 1), directed(graph), 1)
    with pytest.raises(NoSuchTransformation, match="the framework is rigid"):
        Flex.random(points(3, 1), directed(nx.path_graph(3)), generator=rng())


@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 2, math.pi])
def test_flex_of_the_folding_square(angle):
    # at 0.3, half of all paths end in the mirror image, which changes nothing and is not taken
    for seed in range(8):
        check_flex(*folding_square(angle), seed)


def test_flex_finds_the_motion_of_the_hoberman_sphere():
    """Each of its 60 pivots can leave its plane to first order, and only to first order."""
    pos, edge_index = hoberman_sphere(0.1)
    image = check_flex(pos, edge_index, 1)
    radii = (image - image.mean(0)).norm(dim=1)
    assert all(float(part.std()) < 1e-4 for part in radii.split([30, 30, 60]))


def test_flex_holds_nodes_together_that_an_edge_of_length_zero_joins():
    pos = points(6, 2)
    pos[3] = pos[2]
    image = check_flex(pos, directed(nx.path_graph(6)), 2)
    assert torch.equal(image[3], image[2])


def test_flex_is_not_changed_with_the_coordinates_it_was_made_for():
    pos, edge_index = points(7, 3), directed(nx.cycle_graph(7))
    copy = pos.clone()
    element = Flex.random(pos, edge_index, generator=rng(1))
    image = element(pos)
    pos.zero_()
    assert torch.equal(element(copy), image)


def test_flex_in_single_precision():
    pos, edge_index = points(7, 3), directed(nx.cycle_graph(7))
    single = Flex.random(pos.float(), edge_index, generator=rng(1))(pos.float())
    assert single.dtype == torch.float32
    lengths = edge_lengths(pos.float(), edge_index)
    assert torch.allclose(edge_lengths(single, edge_index), lengths, rtol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_complete_graphs_are_rigid(n):
    with pytest.raises(NoSuchTransformation, match="flex: the framework is rigid"):
        Flex.random(points(4, n), directed(nx.complete_graph(4)), generator=rng(1))


def test_rigid_but_not_to_first_order():
    # collinear nodes can leave the line to first order, but the stretched bars hold them
    pos = torch.tensor([[0, 0], [1, 0], [2, 0], [3, 0]]).double()
    graph = nx.Graph([(0, 1), (1, 2), (0, 2), (1, 3), (2, 3)])
    with pytest.raises(NoSuchTransformation, match="flex: the framework is rigid"):
        Flex.random(pos, directed(graph), generator=rng(1))


def test_flex_errors():
    pos, edge_index = points(5, 3), directed(nx.path_graph(5))
    for size in (0.0, -1.0, math.nan, 1e6):
        with pytest.raises(ValueError, match=rf"size: must lie in \[0\.001, 10\], got {size};"):
            Flex.random(pos, edge_index, size=size)
    with pytest.raises(ValueError, match="edge_index: is needed"):
        Flex.random(pos)
    with pytest.raises(ValueError, match="pos: has 4 nodes, but this flex was made for 5"):
        Flex.random(pos, edge_index, generator=rng())(pos[:4])
    for count in (0, 1):
        with pytest.raises(NoSuchTransformation, match="the framework is rigid"):
            Flex.random(points(count, 3), torch.empty(2, 0, dtype=torch.long))
