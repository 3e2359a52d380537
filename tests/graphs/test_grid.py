"""The angles of a graph in squares."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import both_ways
from symgnn.graphs import Topology
from symgnn.nn._engine.grid_products import weigh


def star(leaves: int) -> torch.Tensor:
    """A node with many neighbours, the first two of which are joined."""
    return both_ways([*((0, leaf) for leaf in range(1, leaves + 1)), (1, 2)])


def random_edges(nodes: int, edges: int, seed: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    found = torch.randint(nodes, (2, edges), generator=rng)
    return found[:, found[0] != found[1]]


def check(topology: Topology) -> None:
    """All rays and angles have places of their own, and the sums are those over all angles."""
    (part,) = topology.parts()
    grid = topology.grid(part)
    assert topology.grid(part) is grid
    places, cells = sum(n * d for n, d in grid.sizes), sum(n * d * d for n, d in grid.sizes)
    for where, size in ((grid.ray, places), (grid.angle, cells)):
        assert len(where.unique()) == len(where)
        assert not len(where) or 0 <= int(where.min()) <= int(where.max()) < size
    assert cells <= 1.25**2 * int(topology.degree.square().sum())

    rng = torch.Generator().manual_seed(0)
    weights = torch.randn(topology.num_angles, 2, generator=rng, dtype=torch.float64)
    values = torch.randn(topology.num_rays, 3, generator=rng, dtype=torch.float64)
    second = torch.randn(2, 3, 4, generator=rng, dtype=torch.float64)
    found = weigh(grid, weights, values, lambda rows: torch.einsum("rw,bwc->rbc", rows, second))
    near, far = part.pairs.first.reads.long(), part.pairs.second.reads.long()
    each = torch.einsum("ab,aw,bwc->ac", weights, values[far], second)
    expected = torch.zeros(topology.num_rays, 4, dtype=torch.float64).index_add(0, near, each)
    torch.testing.assert_close(found, expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(0, 60), st.integers(0, 99))
def test_random_graphs(nodes: int, edges: int, seed: int) -> None:
    check(Topology.build(random_edges(nodes, edges, seed), nodes))


@pytest.mark.parametrize("leaves", [2, 3, 40])
def test_a_hub_among_leaves_wastes_no_places(leaves: int) -> None:
    check(Topology.build(star(leaves), leaves + 1))


def test_no_angles() -> None:
    check(Topology.build(torch.empty(2, 0, dtype=torch.long), 3))
    check(Topology.build(both_ways([(0, 1)]), 2))


def test_parts_have_squares_of_their_own() -> None:
    topology = Topology.build(random_edges(30, 120, 0), 30)
    rays = 0
    for part in topology.parts(20):
        grid = topology.grid(part)
        assert len(grid.ray) == part.cut.rays.stop - part.cut.rays.start
        assert len(grid.angle) == part.cut.angles.stop - part.cut.angles.start
        rays += len(grid.ray)
    assert rays == topology.num_rays
