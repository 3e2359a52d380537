"""Tensors of IsoGCN at degenerate neighbourhoods, their gradients, wrong input"""

import functools
import itertools

import numpy as np
import pytest
import torch

from helpers import both_ways, distance, generic_edges, rng
from nn.isometric_cases import EXACT, NO_EDGES, by_loops, cloud, normal, relative, topology_of
from symgnn.graphs import knn_graph
from symgnn.nn.isometric import Isometric, inner, isometric_vectors

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
