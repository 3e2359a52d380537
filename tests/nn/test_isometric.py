"""Derivatives on meshes and clouds: exact where they have to be, turning as they have to."""

import functools
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay
from torch_geometric.data import Batch, Data

from helpers import distance, rng
from nn.isometric_cases import EXACT, NO_EDGES, by_loops, cloud, normal, relative, topology_of
from symgnn.geometry import TRANSFORMATIONS
from symgnn.graphs import Topology, knn_graph
from symgnn.nn.isometric import Isometric, inner, isometric_vectors

few = settings(max_examples=25, deadline=None)


dimensions = st.integers(1, 4)


seeds = st.integers(0, 10**6)


def delaunay(pos):
    """The edges of the triangulation of a cloud."""
    cells = Delaunay(pos.numpy()).simplices
    pairs = [cells[:, [a, b]] for a, b in itertools.permutations(range(cells.shape[1]), 2)]
    return torch.from_numpy(np.unique(np.concatenate(pairs), axis=0).T.astype(np.int64))


@functools.cache
def meshes():
    """Irregular meshes and clouds in one to four dimensions, away from the origin."""
    cases = {}
    for n, count in ((2, 60), (3, 60)):
        pos = 3 * torch.rand(count, n, generator=rng(n), dtype=torch.float64) + 2
        cases[f"mesh, n = {n}"] = Data(pos=pos, edge_index=delaunay(pos))
    for n in (1, 2, 3, 4):
        pos = 2 * normal(40, n, seed=n) + 1
        cases[f"cloud, n = {n}"] = Data(pos=pos, edge_index=knn_graph(pos, n + 4))
    return cases


EACH_MESH = pytest.mark.parametrize("data", meshes().values(), ids=meshes())


# ------------------------------------------------------------------ against the formulas


@EACH_MESH
def test_vectors_are_those_of_the_formula(data):
    weight = 0.5 + torch.rand(data.num_edges, generator=rng(), dtype=torch.float64)
    topology = topology_of(data.edge_index, data.pos)
    for w in (weight, torch.ones_like(weight)):
        found = isometric_vectors(data.pos, topology, w)
        assert relative(found, by_loops(data.pos, data.edge_index, w)) < EXACT
    assert torch.equal(found, isometric_vectors(data.pos, topology))


@given(dimensions, seeds)
@few
def test_operators_are_products_with_the_adjacency_tensor(n, seed):
    pos, topology = cloud(n, seed)
    iso = Isometric.of(pos, topology)
    source, target = topology.edge_index
    g = pos.new_zeros(len(pos), len(pos), n)
    g[target, source] = iso.vectors
    g[range(len(pos)), range(len(pos))] = -g.sum(1)
    for rank in range(4):
        field = normal(len(pos), *[n] * rank, 2, seed=seed + rank)
        expected = torch.einsum("ijk,j...->ik...", g, field)
        assert relative(iso.convolution(field, rank), expected) < EXACT
        assert torch.equal(iso.gradient(field, rank), iso.convolution(field, rank))
        if rank:
            expected = torch.einsum("ijk,jk...->i...", g, field)
            assert relative(iso.contraction(field, rank), expected) < EXACT
            assert torch.equal(iso.divergence(field, rank), iso.contraction(field, rank))


@given(dimensions, seeds)
@few
def test_second_derivatives_are_made_of_first_ones(n, seed):
    pos, topology = cloud(n, seed)
    iso = Isometric.of(pos, topology)
    scalars, vectors = normal(len(pos), 3, seed=seed), normal(len(pos), n, 2, seed=seed + 1)
    hessian = iso.hessian(scalars)
    assert hessian.shape == (len(pos), n, n, 3)
    assert relative(torch.einsum("ikkf->if", hessian), iso.laplacian(scalars)) < EXACT
    assert (
        relative(torch.einsum("ikkf->if", iso.jacobian(vectors)), iso.divergence(vectors)) < EXACT
    )
    each = torch.stack([iso.laplacian(vectors[:, k]) for k in range(n)], 1)
    assert relative(iso.laplacian(vectors, 1), each) < EXACT


def test_inner_product():
    a, b = normal(5, 3, 3, 2), normal(5, 3, 3, 2, seed=1)
    assert distance(inner(a, b), torch.einsum("iklf,iklf->if", a, b)) < 1e-14
    assert torch.equal(inner(a[:, 0, 0], b[:, 0, 0]), a[:, 0, 0] * b[:, 0, 0])


# ------------------------------------------------------------------ what is exact


@EACH_MESH
def test_linear_fields(data):
    pos, n = data.pos, data.pos.shape[1]
    iso = Isometric.of(pos, topology_of(data.edge_index, pos))
    slopes, offset = normal(n, 3, seed=5), 7.0
    linear = pos @ slopes + offset
    assert relative(iso.gradient(linear), slopes) < EXACT
    assert relative(iso.squared_gradient(linear), slopes.square().sum(0)) < EXACT
    matrices = normal(n, n, 2, seed=6)  # [to, from, f]
    maps = torch.einsum("lkf,ik->ilf", matrices, pos) - offset
    assert relative(iso.jacobian(maps), matrices) < EXACT
    assert relative(iso.convolution(maps, 1), matrices.transpose(0, 1)) < EXACT
    assert relative(iso.divergence(maps), torch.einsum("kkf->f", matrices)) < EXACT
    # by the size of the terms that cancel: |D|^2 times the field
    size = float(iso.vectors.norm(dim=1).max() ** 2 * linear.abs().max())
    for zero in (iso.laplacian(linear), iso.hessian(linear)):
        assert float(zero.abs().max()) < 1e-12 * size
    assert not iso.gradient(torch.full_like(linear, offset)).any()


@given(dimensions, seeds)
@few
def test_linear_fields_with_any_weights(n, seed):
    pos, topology = cloud(n, seed)
    weight = 10.0 ** (4 * torch.rand(topology.num_edges, generator=rng(seed)).double() - 2)
    slopes = normal(n, 1, seed=seed + 1)
    found = Isometric.of(pos, topology, 1e-200 * weight).gradient(pos @ slopes)
    assert relative(found, slopes) < 1e-9


def test_linear_fields_in_each_graph_of_a_batch():
    graphs = [data for name, data in meshes().items() if name.endswith("n = 3")]
    graphs.insert(1, Data(pos=normal(1, 3), edge_index=NO_EDGES))
    batch = Batch.from_data_list(graphs)
    slopes = normal(len(graphs), 3, 1)
    field = (batch.pos.unsqueeze(1) @ slopes[batch.batch]).squeeze(1)
    topology = Topology.of(batch, angles=False)
    found = Isometric.of(batch.pos, topology).gradient(field)
    slopes[1] = 0  # the node alone has no neighbour to differ from
    assert relative(found, slopes[batch.batch]) < EXACT
    alone = [isometric_vectors(g.pos, topology_of(g.edge_index, g.pos)) for g in graphs]
    assert relative(isometric_vectors(batch.pos, topology), torch.cat(alone)) < 1e-13


@pytest.mark.parametrize(
    ("dtype", "height"), [(torch.float32, 0.03), (torch.float64, 0.03), (torch.float64, 1e-4)]
)
def test_linear_fields_where_neighbours_are_nearly_in_a_plane(dtype, height):
    # without the step of refinement the error grows with 1 / height^2
    count, d = 100, 7
    rays = normal(count, d, 3) * torch.tensor([1.0, 1.0, height])
    turn = TRANSFORMATIONS["rotation"].random(normal(9, 3), generator=rng())
    pos = turn(torch.cat([torch.zeros(count, 1, 3).double(), rays], 1).view(-1, 3)).to(dtype)
    centre = torch.arange(count) * (d + 1)
    edges = torch.stack(
        [(centre[:, None] + torch.arange(1, d + 1)).flatten(), centre.repeat_interleave(d)]
    )
    slopes = normal(3, 1, seed=3).to(dtype)
    found = Isometric.of(pos, topology_of(edges, pos)).gradient(pos @ slopes)[centre]
    assert relative(found, slopes) < 20 * torch.finfo(dtype).eps / height


def grid(n, side):
    """A grid of points a distance of 0.5 apart, joined along the axes, and each one's depth."""
    steps = torch.cartesian_prod(*[torch.arange(side)] * n).view(-1, n)
    near = (steps[:, None] - steps).abs().sum(-1) == 1
    depth = torch.minimum(steps, side - 1 - steps).amin(1)
    return 0.5 * steps.double() + 0.3, near.nonzero().T.contiguous(), depth


@pytest.mark.parametrize("n", [1, 2, 3])
def test_curved_fields_inside_a_regular_grid(n):
    pos, edges, depth = grid(n, 6 if n == 3 else 7)
    iso = Isometric.of(pos, topology_of(edges, pos))
    a, b, c = normal(n, n), normal(n, seed=1), normal(n, seed=2)
    a = a + a.T
    quadratic = ((pos @ a) * pos).sum(1, keepdim=True) / 2 + pos @ b.unsqueeze(1)
    cubic = quadratic + (pos @ c).pow(3).unsqueeze(1)
    slope, change = iso.gradient(quadratic)[..., 0], iso.laplacian(quadratic)[:, 0]
    inside, deep = depth >= 1, depth >= 2
    assert relative(slope[inside], (pos @ a + b)[inside]) < EXACT
    assert relative(iso.hessian(quadratic)[deep][..., 0], a) < EXACT
    assert relative(change[deep], a.trace()) < EXACT
    expected = a.trace() + 6 * (pos @ c) * c.square().sum()
    assert relative(iso.laplacian(cubic)[deep, 0], expected[deep]) < EXACT
    # and no farther: not at the boundary, nor next to it
    assert relative(slope[~inside], (pos @ a + b)[~inside]) > 1e-2
    assert relative(change[depth == 1], a.trace()) > 1e-2


def test_second_derivatives_of_curved_fields_are_not_consistent_on_clouds():
    gradients, laplacians = [], []
    for count in (100, 1600):
        pos = torch.rand(count, 2, generator=rng(), dtype=torch.float64)
        iso = Isometric.of(pos, topology_of(knn_graph(pos, 10), pos))
        inside = ((pos > 0.25) & (pos < 0.75)).all(1)
        square = pos.square().sum(1, keepdim=True)
        error = iso.gradient(square)[..., 0] - 2 * pos
        gradients.append(float(error[inside].norm(dim=1).median()))
        laplacians.append(float((iso.laplacian(square) - 4)[inside].abs().median()))
    # four times finer
    assert gradients[1] < 0.4 * gradients[0]
    assert laplacians[1] > 0.6 * laplacians[0]


# ------------------------------------------------------------------ symmetry


def turned(field, rank, matrix):
    """A field turned in each of its axes."""
    for axis in range(1, rank + 1):
        field = (field.movedim(axis, -1) @ matrix.T).movedim(-1, axis)
    return field


OPERATORS = {  # name: rank before and after
    "gradient": (0, 1),
    "squared_gradient": (0, 0),
    "laplacian": (0, 0),
    "hessian": (0, 2),
    "divergence": (1, 0),
    "jacobian": (1, 2),
}


@given(st.sampled_from(["translation", "rotation", "reflection", "permutation"]), dimensions, seeds)
@settings(max_examples=40, deadline=None)
def test_operators_turn_with_the_coordinates(kind, n, seed):
    pos, topology = cloud(n, seed)
    order, q = torch.arange(len(pos)), torch.eye(n, dtype=pos.dtype)
    if kind == "permutation":
        order, moved = torch.randperm(len(pos), generator=rng(seed)), pos
    else:
        element = TRANSFORMATIONS[kind].random(pos, topology.edge_index, generator=rng(seed))
        moved = element(pos)
        q = (element(q) - element(torch.zeros_like(q))).T
    place = order.argsort()  # node i goes to place[i]
    shuffled = torch.randperm(topology.num_edges, generator=rng(seed + 1))
    edges = place[topology.edge_index][:, shuffled]
    before = Isometric.of(pos, topology)
    after = Isometric.of(moved[order], topology_of(edges, pos))
    assert relative(after.vectors, before.vectors[shuffled] @ q.T) < 1e-8
    for name, (rank, rank_after) in OPERATORS.items():
        field = normal(len(pos), *[n] * rank, 2, seed=seed + rank)
        expected = turned(getattr(before, name)(field), rank_after, q)[order]
        found = getattr(after, name)(turned(field, rank, q)[order])
        assert relative(found, expected) < 1e-8, name
    for rank in (1, 2, 3):
        field = normal(len(pos), *[n] * rank, 2, seed=seed + rank)
        image = turned(field, rank, q)[order]
        expected = turned(before.contraction(field, rank), rank - 1, q)[order]
        assert relative(after.contraction(image, rank), expected) < 1e-8
        expected = turned(before.convolution(field, rank), rank + 1, q)[order]
        assert relative(after.convolution(image, rank), expected) < 1e-8


@given(dimensions, seeds, st.integers(-100, 100))
@few
def test_vectors_scale_inversely(n, seed, power):
    pos, topology = cloud(n, seed)
    expected = isometric_vectors(pos, topology)
    for a in (2.0**power, -(3.0**power)):
        assert relative(a * isometric_vectors(a * pos, topology), expected) < 1e-9


@given(dimensions, seeds, st.floats(-3, 3), st.floats(-3, 3))
@few
def test_operators_are_linear(n, seed, a, b):
    pos, topology = cloud(n, seed)
    iso = Isometric.of(pos, topology)
    for rank in (0, 1, 2):
        first, second = (normal(len(pos), *[n] * rank, 2, seed=seed + k) for k in (0, 1))
        operators = [iso.convolution, iso.laplacian] + [iso.contraction] * (rank > 0)
        for operator in operators:
            parts = a * operator(first, rank), b * operator(second, rank)
            size = max(float(part.abs().max()) for part in parts)
            assert distance(operator(a * first + b * second, rank), sum(parts)) <= 1e-12 * (
                size + 1
            )
