import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clouds import points, rng
from symgnn.geometry.transformations import Inversion, SpecialConformal

CONFORMAL = [Inversion, SpecialConformal]

few = settings(max_examples=25, deadline=None)
dimensions = st.integers(1, 6)
seeds = st.integers(0, 10**6)


def cross_ratio(x, a, b, c, d):
    def distance(i, j):
        return (x[i] - x[j]).norm()

    return distance(a, b) * distance(c, d) / (distance(a, c) * distance(b, d))


def vertex_angles(x):
    first, second = x[1:-1] - x[:-2], x[1:-1] - x[2:]
    return torch.acos((first * second).sum(1) / (first.norm(dim=1) * second.norm(dim=1)))


@given(n=dimensions, seed=seeds)
@few
def test_special_conformal_maps_of_one_centre_compose_by_adding_vectors(n, seed):
    pos = points(n, seed)
    element = SpecialConformal.random(pos, generator=rng(seed))
    inverse = SpecialConformal(-element.vector, element.centre)
    assert torch.allclose(inverse(element(pos)), pos, rtol=1e-9, atol=1e-9)
    twice = SpecialConformal(2 * element.vector, element.centre)
    near = element.centre + 0.1 * (pos - element.centre)
    assert torch.allclose(element(element(near)), twice(near), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", CONFORMAL)
@given(n=dimensions, seed=seeds)
@few
def test_conformal_maps_keep_cross_ratios_and_no_ratio_of_distances(kind, n, seed):
    pos = points(n, seed)
    image = kind.random(pos, generator=rng(seed))(pos)
    for quadruple in itertools.islice(itertools.permutations(range(6), 4), 0, None, 17):
        assert torch.isclose(
            cross_ratio(image, *quadruple), cross_ratio(pos, *quadruple), rtol=1e-8
        )
    ratios = torch.pdist(image) / torch.pdist(pos)
    assert ratios.max() / ratios.min() > 1.2  # a similarity has 1


@pytest.mark.parametrize("kind", CONFORMAL)
@given(n=dimensions, seed=seeds)
@few
def test_conformal_weights(kind, n, seed):
    """|f(x) - f(y)|^2 = W(x) W(y) |x - y|^2."""
    pos = points(n, seed)
    element = kind.random(pos, generator=rng(seed))
    if kind is Inversion:
        weight = element.radius**2 / (pos - element.centre).square().sum(1)
    else:
        weight = 1 / element.denominator(pos)
    weights = weight.outer(weight)[tuple(torch.triu_indices(len(pos), len(pos), 1))]
    image = element(pos)
    assert torch.allclose(torch.pdist(image).square(), weights * torch.pdist(pos).square())


@pytest.mark.parametrize("kind", CONFORMAL)
@pytest.mark.parametrize("n", [2, 3, 6])
def test_conformal_maps_change_angles_at_vertices(kind, n):
    pos = points(n)
    image = kind.random(pos, generator=rng(1))(pos)
    assert (vertex_angles(image) - vertex_angles(pos)).abs().max() > 0.02


@pytest.mark.parametrize("kind", CONFORMAL)
def test_conformal_maps_keep_angles_in_the_small(kind):
    pos = points(3)
    jacobian = torch.func.jacrev(kind.random(pos, generator=rng(1)))(pos[:1])[0, :, 0]
    gram = jacobian.T @ jacobian
    assert torch.allclose(gram, gram[0, 0] * torch.eye(3, dtype=torch.float64), atol=1e-12)


@given(n=dimensions, seed=seeds, scale=st.sampled_from([1e-3, 1.0, 1e4]))
@few
def test_poles_are_away_from_the_cloud(n, seed, scale):
    pos = scale * points(n, seed)
    centroid = pos.mean(0)
    radius = (pos - centroid).norm(dim=1).max()
    centre = Inversion.random(pos, generator=rng(seed)).centre
    assert (pos - centre).norm(dim=1).min() >= 0.499 * radius
    assert 0.499 * radius <= (centre - centroid).norm() <= 2.001 * radius
    denominator = SpecialConformal.random(pos, generator=rng(seed)).denominator(pos)
    assert denominator.min() >= 0.2
    assert denominator.max() <= 2.5


@pytest.mark.parametrize("kind", CONFORMAL)
def test_symmetric_clouds_are_not_mapped_by_similarities(kind):
    angles = torch.arange(12, dtype=torch.float64) * math.tau / 12
    pos = torch.stack([angles.cos(), angles.sin()], 1)
    for seed in range(20):
        ratios = torch.pdist(kind.random(pos, generator=rng(seed))(pos)) / torch.pdist(pos)
        assert ratios.max() / ratios.min() > 1.2
