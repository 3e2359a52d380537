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

from helpers import both_ways, distance, generic_edges, rng
from symgnn.geometry import TRANSFORMATIONS
from symgnn.graphs import Topology, knn_graph
from symgnn.nn.isometric import Isometric, inner, isometric_vectors

few = settings(max_examples=25, deadline=None)
dimensions = st.integers(1, 4)
seeds = st.integers(0, 10**6)
EXACT = 1e-10
NO_EDGES = torch.zeros(2, 0, dtype=torch.long)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64).to(dtype)


def topology_of(edge_index, pos):
    return Topology.build(edge_index, len(pos), angles=False)


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


def cloud(n, seed, count=14):
    pos = normal(count, n, seed=seed + 10**7)  # no field is a coordinate
    return pos, topology_of(knn_graph(pos, n + 3), pos)


def relative(found, expected):
    """The largest error, by the largest entry expected."""
    expected = expected.detach().expand_as(found)
    return distance(found, expected) / float(expected.abs().max().clamp(min=1e-300))


def by_loops(pos, edge_index, weight, rtol=1e-10):
    """The vectors of the edges, node by node from the formula."""
    vectors = np.zeros((edge_index.shape[1], pos.shape[1]))
    pos, weight, (source, target) = pos.numpy(), weight.numpy(), edge_index.numpy()
    for i in range(len(pos)):
        ends = [k for k in (target == i).nonzero()[0] if (pos[source[k]] != pos[i]).any()]
        rays = {k: pos[source[k]] - pos[i] for k in ends}
        moment = sum((weight[k] * np.outer(r, r) / (r @ r) for k, r in rays.items()), 0.0)
        for k, r in rays.items():
            vectors[k] = np.linalg.pinv(moment, rcond=rtol) @ (weight[k] * r / (r @ r))
    return torch.from_numpy(vectors)


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


# ------------------------------------------------------------------ gradients


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_all_inputs(n):
    pos = normal(8, n, seed=n)
    topology = topology_of(knn_graph(pos, n + 1), pos)
    weight = 0.5 + torch.rand(topology.num_edges, generator=rng(), dtype=torch.float64)
    field, fields = normal(8, 2), normal(8, n, 1)

    def outputs(x, w, f, g):
        iso = Isometric.of(x, topology, w)
        return iso.squared_gradient(f), iso.laplacian(f), iso.jacobian(g), iso.vectors

    inputs = [t.requires_grad_() for t in (pos, weight, field, fields)]
    assert torch.autograd.gradcheck(outputs, inputs)


def test_second_gradients():
    pos = normal(5, 2)
    topology = topology_of(both_ways(list(itertools.combinations(range(5), 2))), pos)
    field = normal(5, 1, seed=1)

    def energy(x, f):
        return Isometric.of(x, topology).squared_gradient(f).sum()

    assert torch.autograd.gradgradcheck(energy, (pos.requires_grad_(), field.requires_grad_()))


def test_many_fields_at_once():
    pos, topology = cloud(3, 0)
    iso = Isometric.of(pos, topology)
    fields = normal(4, len(pos), 2)
    assert (
        distance(torch.vmap(iso.laplacian)(fields), torch.stack([*map(iso.laplacian, fields)])) == 0
    )


# ------------------------------------------------------------------ degenerate


@functools.cache
def degenerate():
    """Clouds in three dimensions in which some neighbours do not span the space."""
    edges, x = generic_edges(), normal(9, 3)
    line = torch.arange(9.0).double().unsqueeze(1)
    oblique = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)
    pair = x.clone()
    pair[1] = pair[0]
    loops = torch.arange(9).repeat(2, 1)
    return {
        "isolated nodes": (torch.cat([x, x[:2]]), edges),
        "one neighbour each": (x[:8], both_ways([(0, 1), (2, 3), (4, 5), (6, 7)])),
        "a path": (x, both_ways([(i, i + 1) for i in range(8)])),
        "a line along an axis": (line * torch.eye(3)[0], edges),
        "a line": (line * oblique + 0.1, edges),
        "a line, nearly": (line * oblique + 1e-9 * x, edges),
        "a plane": (x * torch.tensor([1.0, 1.0, 0.0]), edges),
        "an oblique plane": (x - (x @ oblique)[:, None] * oblique / oblique.square().sum(), edges),
        "two nodes in one place": (pair, edges),
        "two nodes nearly in one place": (pair + 1e-12 * normal(9, 3, seed=1), edges),
        "all nodes in one place": (torch.full((9, 3), 0.3).double(), edges),
        "self-loops": (x, torch.cat([edges, loops], 1)),
        "only self-loops": (x, loops),
        "edges twice": (x, torch.cat([edges, edges[:, :9]], 1)),
        "no edges": (x, NO_EDGES),
        "no nodes": (x[:0], NO_EDGES),
    }


EACH_CASE = pytest.mark.parametrize(("pos", "edges"), degenerate().values(), ids=degenerate())


@EACH_CASE
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_degenerate_values_and_gradients_are_finite(pos, edges, dtype):
    pos = pos.to(dtype, copy=True).requires_grad_()
    weight = torch.ones(edges.shape[1], dtype=dtype, requires_grad=True)
    field = normal(len(pos), 2, dtype=dtype).requires_grad_()
    iso = Isometric.of(pos, topology_of(edges, pos), weight)
    gradient = iso.gradient(field)
    outputs = [iso.squared_gradient(field), iso.laplacian(field), iso.hessian(field)]
    outputs += [iso.jacobian(gradient), iso.vectors]
    total = sum(
        (normal(*out.shape, seed=k, dtype=dtype) * out).sum() for k, out in enumerate(outputs)
    )
    inputs = (pos, weight, field)
    for t in (*outputs, *torch.autograd.grad(total, inputs)):
        assert t.dtype == dtype
        assert t.isfinite().all()


@EACH_CASE
def test_degenerate_values_are_those_of_the_pseudo_inverse(pos, edges):
    expected = by_loops(pos, edges, torch.ones(edges.shape[1]).double())
    found = isometric_vectors(pos, topology_of(edges, pos))
    assert ((found - expected).abs() <= 1e-8 * expected.abs().sum()).all()


@EACH_CASE
def test_a_common_factor_of_the_weights_does_not_matter(pos, edges):
    topology, ones = topology_of(edges, pos), torch.ones(edges.shape[1]).double()
    expected = isometric_vectors(pos, topology)
    for factor in (1e-200, 1e200):
        found = isometric_vectors(pos, topology, factor * ones)
        assert ((found - expected).abs() <= EXACT * expected.abs().sum()).all()


@EACH_CASE
def test_degenerate_derivatives_are_those_within_the_span(pos, edges):
    topology = topology_of(edges, pos)
    slopes = normal(3, 1, seed=4)
    found = Isometric.of(pos, topology).gradient(pos @ slopes)[..., 0]
    source, target = edges
    for i in range(len(pos)):
        rays = (pos[source] - pos[target])[target == i]
        lengths = rays.norm(dim=1, keepdim=True)
        rays = (rays / lengths)[lengths[:, 0] > 0].numpy()
        span = torch.from_numpy(np.linalg.pinv(rays, rcond=1e-7) @ rays)
        # differences of the field along short rays are of few digits
        tolerance = 1e-8 + 1e-15 * float((1 / lengths[lengths > 0]).sum())
        assert distance(found[i], (span @ slopes)[:, 0]) < tolerance


def test_nodes_without_neighbours_and_coincident_ones_add_nothing():
    pos = normal(9, 3)
    pos[1] = pos[0]
    edges = generic_edges()
    topology, field = topology_of(edges, pos), normal(9, 2)
    apart = ~((edges < 2).all(0))
    assert not apart.all()
    without = Isometric.of(pos, topology_of(edges[:, apart], pos))
    found = Isometric.of(pos, topology)
    assert not found.vectors[~apart].any()
    assert relative(found.laplacian(field), without.laplacian(field)) < 1e-13
    nothing = Isometric.of(pos, topology_of(edges[:, edges[1] != 3], pos))
    assert not nothing.gradient(field)[3].any()


@pytest.mark.parametrize("dimension", [1, 2])
def test_a_flat_cloud_in_space_is_the_flat_cloud(dimension):
    # also in its gradients, which hold the span fixed
    flat = normal(9, dimension, seed=2)
    frame = torch.linalg.qr(normal(3, 3)).Q[:, :dimension]
    topology, field = topology_of(generic_edges(), flat), normal(9, 2)

    def in_space(x):
        return Isometric.of(x @ frame.T + 0.7, topology).laplacian(field)

    x = flat.requires_grad_()
    expected = Isometric.of(x, topology).laplacian(field)
    assert relative(in_space(x), expected) < EXACT
    (slope,) = torch.autograd.grad(expected.square().sum(), x)
    (found,) = torch.autograd.grad(in_space(x).square().sum(), x)
    assert relative(found, slope) < 1e-8
    assert torch.autograd.gradcheck(in_space, x)


def test_gradients_hold_the_span_fixed():
    # neither do vectors leave the plane, nor does it matter whether coordinates would
    pos = (normal(9, 3) * torch.tensor([1.0, 1.0, 0.0])).requires_grad_()
    topology = topology_of(generic_edges(), pos)
    vectors = isometric_vectors(pos, topology)
    (along,) = torch.autograd.grad(vectors[:, :2].sum(), pos, retain_graph=True)
    (across,) = torch.autograd.grad(vectors[:, 2].sum(), pos)
    assert not across.any()
    assert not along[:, 2].any()
    assert along[:, :2].all()


def test_values_and_gradients_are_finite_where_the_rank_changes():
    x, field = normal(9, 3), normal(9, 1)
    topology = topology_of(generic_edges(), x)
    ranks = []
    for power in np.arange(0, 20, 0.25):
        pos = (x * torch.tensor([1.0, 1.0, 10.0**-power])).requires_grad_()
        iso = Isometric.of(pos, topology)
        (slope,) = torch.autograd.grad(iso.squared_gradient(field).sum(), pos)
        assert iso.vectors.isfinite().all()
        assert slope.isfinite().all()
        ranks.append(bool(iso.vectors[:, 2].abs().max() > 0.1))
    assert ranks == sorted(ranks, reverse=True)  # one cut-off, by the heights alone
    assert 20 < sum(ranks) < 40  # between 1e-5 and 1e-10, the root of eps


def test_the_tolerance_is_a_part_of_the_largest_eigenvalue():
    axes = torch.eye(3).double()
    pos = torch.cat([torch.zeros(1, 3).double(), axes, -axes])
    edges = torch.stack([torch.arange(1, 7), torch.zeros(6).long()])
    weight = torch.tensor([1.0, 1.0, 0.15] * 2, dtype=torch.float64)
    topology = topology_of(edges, pos)
    slopes = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    for rtol, last in ((0.14, 3.0), (0.16, 0.0)):
        found = Isometric.of(pos, topology, weight, rtol=rtol).gradient(pos @ slopes)
        assert distance(found[0, :, 0], torch.tensor([1.0, 2.0, last])) < 1e-14


def test_a_tolerance_gives_the_tangent_planes_of_a_surface():
    x = normal(400, 3)
    x = x / x.norm(dim=1, keepdim=True)
    edges = knn_graph(x, 8)
    topology, ones = topology_of(edges, x), torch.ones(edges.shape[1]).double()
    slopes = normal(3, 1, seed=1)
    flat = Isometric.of(x, topology, rtol=0.1)
    assert relative(flat.vectors, by_loops(x, edges, ones, rtol=0.1)) < EXACT
    tangent = slopes[:, 0] - (x @ slopes) * x
    error = flat.gradient(x @ slopes)[..., 0] - tangent
    assert float(error.norm(dim=1).median()) < 0.1
    whole = Isometric.of(x, topology).gradient(x @ slopes)
    assert relative(whole, slopes) < EXACT


# ------------------------------------------------------------------ types, shapes and errors


def test_half_types_and_autocast_are_computed_in_float32():
    pos, topology = cloud(3, 1)
    pos, field = pos.bfloat16(), normal(14, 2).bfloat16()
    iso = Isometric.of(pos, topology)
    expected = Isometric.of(pos.float(), topology)
    assert iso.vectors.dtype == torch.float32
    assert torch.equal(iso.vectors, expected.vectors)
    assert torch.equal(iso.laplacian(field), expected.laplacian(field.float()))
    with torch.autocast("cpu", torch.bfloat16):
        found = Isometric.of(pos.float(), topology)
        assert torch.equal(found.vectors, expected.vectors)
        assert torch.equal(found.laplacian(field.float()), expected.laplacian(field.float()))


def test_what_is_not_a_number_stays_so_at_its_neighbours_only():
    pos, topology = cloud(3, 1)
    pos[0, 0] = torch.nan
    vectors = isometric_vectors(pos, topology)
    source, target = topology.edge_index
    touched = torch.zeros(len(pos), dtype=torch.bool)
    touched[target[source == 0]] = True
    touched[0] = True
    assert torch.equal(vectors.isfinite().all(1), ~touched[target])


def test_no_weight_is_no_edge():
    pos, topology = cloud(2, 3)
    weight = (torch.rand(topology.num_edges, generator=rng()) < 0.8).double()
    kept = weight > 0
    fewer = topology_of(topology.edge_index[:, kept], pos)
    found = isometric_vectors(pos, topology, weight)
    assert not found[~kept].any()
    assert relative(found[kept], isometric_vectors(pos, fewer)) < 1e-13


def test_shapes_are_checked():
    pos, topology = cloud(3, 0)
    iso = Isometric.of(pos, topology)
    with pytest.raises(ValueError, match=r"field: of rank 1 must have shape \[14, 3, f\], got"):
        iso.divergence(normal(14, 3))
    with pytest.raises(ValueError, match=r"field: of rank 0 must have shape \[14, f\], got"):
        iso.gradient(normal(13, 1))
    with pytest.raises(ValueError, match=r"rank: must be at least 1, got 0"):
        iso.contraction(normal(14, 1), 0)
    with pytest.raises(ValueError, match=r"pos: must have shape \[14, n\]"):
        isometric_vectors(pos[1:], topology)
    with pytest.raises(ValueError, match=r"weight: must have shape \["):
        isometric_vectors(pos, topology, torch.ones(3))
    with pytest.raises(ValueError, match="fields: must have one shape"):
        inner(normal(14, 3), normal(14, 2))
