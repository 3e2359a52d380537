"""Every map that keeps the angles at the vertices: boxes, trees, rings, and sums of angles."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from clouds import directed as edges_of
from clouds import random_tree
from helpers import FEATURES, both_ways, distance, graph, random_model, ring_edges, rng
from symgnn.data import polytope, polytopes
from symgnn.geometry import AngleFlex, Redrawing, angle
from symgnn.graphs import Topology
from symgnn.nn import ARCHITECTURES

#: Those that read angles and no lengths.
OF_ANGLES = [name for name in ARCHITECTURES if name.startswith("agn") and name != "agn+distances"]
#: Those that read lengths, or kappa, which is made of them.
OTHERS = ["dgn", "sdgn", "agn+distances", "combined", "cgn"]
SEEDS = range(3)


def gap(architecture: str, first: Data, second: Data, **options) -> float:
    """The largest difference of outputs, relative to them, over some initialisations."""
    found = []
    for seed in SEEDS:
        model = random_model(architecture, seed=seed, noise=0.3, **options)
        one, other = model(first).detach(), model(second).detach()
        found.append(distance(one, other) / float(one.abs().max()))
    return max(found)


def stretched(data: Data, factors: list[float]) -> Data:
    out = data.clone()
    out.pos = data.pos * torch.tensor(factors, dtype=torch.float64)
    return out


# ------------------------------------------------------------------ the cube and the box


@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
@pytest.mark.parametrize("architecture", OF_ANGLES)
def test_a_cube_is_a_box(architecture, aggregation):
    cube = polytope("hypercube", 3, dtype=torch.float64)
    assert gap(architecture, cube, stretched(cube, [1, 2, 5]), aggregation=aggregation) <= 1e-12


@pytest.mark.parametrize("architecture", OTHERS)
def test_a_cube_is_no_box_for_those_that_see_lengths(architecture):
    cube = polytope("hypercube", 3, dtype=torch.float64)
    assert gap(architecture, cube, stretched(cube, [1, 2, 5]), aggregation="sum") > 1e-3


@pytest.mark.parametrize("architecture", OF_ANGLES)
def test_a_sheared_cube_is_seen(architecture):
    """Not every affine map of a cube is a redrawing."""
    cube = polytope("hypercube", 3, dtype=torch.float64)
    sheared = cube.clone()
    sheared.pos = cube.pos.clone()
    sheared.pos[:, 0] += 0.5 * cube.pos[:, 1]
    assert gap(architecture, cube, sheared, aggregation="sum") > 1e-4


def test_diagonals_make_the_box_visible():
    cube = polytope("hypercube", 3, dtype=torch.float64)
    near = torch.cdist(cube.pos, cube.pos) < 1.05 * math.sqrt(2) * 2 / math.sqrt(3)
    near.fill_diagonal_(False)
    braced = Data(pos=cube.pos, edge_index=near.nonzero().T)
    assert braced.num_edges == 24 + 24
    assert gap("agn", braced, stretched(braced, [1, 2, 5]), aggregation="sum") > 1e-4


# ------------------------------------------------------------------ trees


@given(n=st.integers(2, 5), seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_trees_with_other_bond_lengths(n, seed):
    """Each bond takes a length of its own; the directions stay."""
    tree = random_tree(9, seed)
    pos = torch.randn(9, n, generator=rng(seed), dtype=torch.float64)
    lengths = torch.rand(9, generator=rng(seed + 1), dtype=torch.float64) * 3 + 0.2
    other = pos.clone()
    for child, parent in sorted(max((e, e[::-1])) for e in tree.edges):  # parents come first
        other[child] = other[parent] + lengths[child] * (pos[child] - pos[parent])
    first, second = (Data(pos=x, edge_index=edges_of(tree)) for x in (pos, other))
    for architecture in OF_ANGLES:
        assert gap(architecture, first, second, aggregation="sum") <= 1e-9
    assert gap("combined", first, second, aggregation="sum") > 1e-6


# ------------------------------------------------------------------ every block that reads angles


@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize("kind", [Redrawing, AngleFlex])
def test_a_ring_under_both_kinds(kind, n):
    data = graph(ring_edges(), n, 1)
    image = kind.random(data.pos, data.edge_index, generator=rng(3)).apply(data)
    assert distance(data.pos, image.pos) > 1e-2
    for architecture in ARCHITECTURES:
        found = gap(architecture, data, image, dimension=n, task="node", **FEATURES)
        kept = architecture in OF_ANGLES
        assert (found <= 1e-9) if kept else (found > 1e-4), (architecture, found)


# ------------------------------------------------------------------ the remark on Gram and Euler


def angle_sum(data: Data) -> float:
    """The sum of all angles that AGN reads, each pair of edges once."""
    j, i, k = Topology.build(data.edge_index, data.num_nodes).angle_index
    return float(angle(data.pos[j] - data.pos[i], data.pos[k] - data.pos[i]).sum()) / 2


def mapped(data: Data, seed: int) -> Data:
    """After a random affine map, far from a similarity and far from singular."""
    n = data.pos.shape[1]
    left, right = (
        torch.linalg.qr(torch.randn(n, n, generator=rng(seed + k), dtype=torch.float64)).Q
        for k in (0, 1)
    )
    sizes = torch.linspace(0.4, 2.5, n, dtype=torch.float64)
    image = data.clone()
    image.pos = data.pos @ (left * sizes) @ right
    return image


@pytest.mark.parametrize(
    ("name", "faces"), [("simplex", 4), ("hypercube", 6), ("dodecahedron", 12)]
)
def test_the_sum_of_the_face_angles(name, faces):
    """Where three edges meet in each vertex, all pairs of edges bound a face.

    An affine map takes faces to plane convex polygons, and the angles of a convex m-gon add up to
    (m - 2) pi, so the sum is 2 pi (E - F) whatever the map; by Euler it is 2 pi (V - 2).
    """
    data = polytope(name, 3, dtype=torch.float64)
    for seed in range(5):
        total = angle_sum(mapped(data, seed))
        assert total == pytest.approx(2 * math.pi * (data.num_edges // 2 - faces), abs=1e-9)
        assert total == pytest.approx(2 * math.pi * (data.num_nodes - 2), abs=1e-9)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_sums_of_angles_of_regular_polytopes_are_kept_by_affine_maps(n):
    """The paper's remark, and more than it needs: the sum is over all pairs of edges at a vertex.

    Those that bound no face bound a plane section, such as the equators of an octahedron.
    """
    for data in polytopes(n, dtype=torch.float64):
        before, after = angle_sum(data), angle_sum(mapped(data, n))
        assert after == pytest.approx(before, rel=1e-12), data.name


def test_sums_of_angles_are_not_kept_in_general():
    """A pyramid over a square: opposite edges at its tip bound no polygon of edges."""
    base = torch.tensor([[1.0, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0], [0, 0, 1.3]])
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), *((k, 4) for k in range(4))]
    pyramid = Data(pos=base.double(), edge_index=both_ways(pairs))
    assert abs(angle_sum(pyramid) - angle_sum(mapped(pyramid, 1))) > 0.1


@pytest.mark.parametrize("name", ["simplex", "orthoplex", "dodecahedron", "icosahedron"])
def test_agn_may_but_need_not_use_the_sum_of_the_angles(name):
    """What is linear in the angles depends on their sum alone, and keeps affine maps of these.

    AGN is not linear in them, so no affine map is promised; that a trained AGN gets the class of
    affinely mapped polytopes right is what it learned.
    """
    data = polytope(name, 3, dtype=torch.float64)
    image = mapped(data, 2)
    linear = {"mlp_layers": 0, "layers": 1, "aggregation": "sum"}
    assert gap("agn-raw", data, image, **linear) <= 1e-12
    for architecture in OF_ANGLES:
        assert gap(architecture, data, image, aggregation="sum") > 1e-4, architecture
