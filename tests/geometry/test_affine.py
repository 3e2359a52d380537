import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clouds import points, rng
from symgnn.geometry.transformations import Affine, affine_scale

few = settings(max_examples=25, deadline=None)
dimensions = st.integers(1, 6)
seeds = st.integers(0, 10**6)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("n", "mu"), [(2, 0.1), (2, 1.0), (3, 1.0), (3, 5.0), (6, 0.5), (6, 2.0)])
def test_affine_deviation_has_mean_mu(n, mu):
    pos, generator = points(n), rng(n)
    drawn = torch.stack(
        [Affine.random(pos, generator=generator, mu=mu).matrix for _ in range(4000)]
    )
    deviation = drawn.mT @ drawn - torch.eye(n, dtype=torch.float64)
    assert float(deviation.norm(dim=(1, 2)).mean()) == pytest.approx(mu, rel=0.03)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 20.0])
def test_affine_scale_in_one_dimension(mu):
    # the mean of |2 s g + s^2 g^2| by quadrature
    s, g = affine_scale(1, mu), np.linspace(-12, 12, 200_001)
    density = np.exp(-(g**2) / 2) / math.sqrt(math.tau)
    mean = np.sum(np.abs(2 * s * g + s**2 * g**2) * density) * (g[1] - g[0])
    assert mean == pytest.approx(mu, rel=0.01)


def test_affine_scale_limits():
    assert affine_scale(3, 0.0) == 0
    assert affine_scale(100, 1.0) > 0
    # small mu: the linear term alone, whose mean norm is s E|G + G^T|
    assert affine_scale(3, 2e-6) == pytest.approx(2 * affine_scale(3, 1e-6), rel=1e-3)
    # large mu: the quadratic term alone
    assert affine_scale(3, 4e8) == pytest.approx(2 * affine_scale(3, 1e8), rel=1e-3)


def test_affine_scale_is_deterministic_and_leaves_the_random_state_alone():
    state = torch.get_rng_state()
    first = affine_scale(4, 0.7)
    affine_scale.cache_clear()
    torch.manual_seed(1)
    assert affine_scale(4, 0.7) == first
    torch.set_rng_state(state)
    affine_scale.cache_clear()
    affine_scale(4, 0.7)
    assert torch.equal(state, torch.get_rng_state())


@given(n=dimensions, seed=seeds)
@few
def test_affine_maps(n, seed):
    pos = points(n, seed)
    element = Affine.random(pos, generator=rng(seed))
    assert element.factor == 1
    middle = element((pos[:1] + pos[1:2]) / 2)
    assert torch.allclose(middle, element(pos)[:2].mean(0, keepdim=True))
    euclidean = Affine.random(pos, generator=rng(seed), mu=0.0)
    assert torch.allclose(torch.pdist(euclidean(pos)), torch.pdist(pos), rtol=1e-10)
    similar = Affine.random(pos, generator=rng(seed), mu=0.0, dilation=True)
    assert 0.1 <= similar.factor <= 10
    assert torch.allclose(torch.pdist(similar(pos)), similar.factor * torch.pdist(pos), rtol=1e-10)


@pytest.mark.parametrize("mu", [-1.0, math.nan, math.inf])
def test_affine_refuses_mu(mu):
    with pytest.raises(ValueError, match=f"mu: is {mu}; give a finite number of at least 0"):
        Affine.random(points(2), mu=mu)
