import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from clouds import points, rng
from symgnn.geometry.sampling import cloud_of
from symgnn.geometry.transformations import (
    Affine,
    Dilation,
    Inversion,
    Permutation,
    Reflection,
    Rotation,
    SpecialConformal,
    Translation,
    affine_scale,
    random_orthogonal,
)

KINDS = [
    Translation,
    Rotation,
    Reflection,
    Dilation,
    Inversion,
    SpecialConformal,
    Affine,
    Permutation,
]
EUCLIDEAN = [Translation, Rotation, Reflection]

few = settings(max_examples=25, deadline=None)
dimensions = st.integers(1, 6)
seeds = st.integers(0, 10**6)


@pytest.mark.parametrize("kind", KINDS)
@given(n=dimensions, seed=seeds)
@few
def test_one_seed_gives_one_element_in_every_type(kind, n, seed):
    pos = points(n, seed).float().double()
    state = torch.get_rng_state()
    image = kind.random(pos, generator=rng(seed))(pos)
    assert torch.equal(image, kind.random(pos, generator=rng(seed))(pos))
    assert torch.equal(state, torch.get_rng_state())
    single = kind.random(pos.float(), generator=rng(seed))(pos.float())
    assert image.dtype == torch.float64
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), image, rtol=1e-4, atol=1e-4 * float(image.abs().max()))


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_differ(kind):
    pos = points(3)
    images = [kind.random(pos, generator=rng(seed))(pos) for seed in range(4)]
    assert all(not torch.allclose(x, y) for x, y in itertools.combinations(images, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 3])
def test_gradients(kind, n):
    pos = points(n, count=4).requires_grad_()
    assert torch.autograd.gradcheck(kind.random(pos, generator=rng(3)), pos)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1])
def test_small_clouds(kind, count):
    # copies of one point whose mean is rounded give no tiny radius
    pos = torch.full((3 * count, 2), 0.1, dtype=torch.float64)
    image = kind.random(pos, generator=rng(1))(pos)
    assert cloud_of(pos).radius == 1
    assert image.shape == pos.shape
    assert image.isfinite().all()
    assert (image.abs() < 100).all()


@given(n=dimensions, seed=seeds)
@few
def test_orthogonal_matrices(n, seed):
    pos, identity = points(n, seed), torch.eye(n, dtype=torch.float64)
    drawn = random_orthogonal(n, rng(seed))
    rotation = Rotation.random(pos, generator=rng(seed)).matrix
    reflection = Reflection.random(pos, generator=rng(seed)).matrix
    for matrix in (drawn, rotation, reflection):
        assert torch.allclose(matrix @ matrix.T, identity, atol=1e-13)
    assert float(torch.linalg.det(rotation)) == pytest.approx(1)
    assert float(torch.linalg.det(reflection)) == pytest.approx(-1)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_random_orthogonal_is_haar(n):
    generator = rng(n)
    drawn = torch.stack([random_orthogonal(n, generator) for _ in range(3000)])
    # moments of the Haar measure: means 0, squares 1/n, determinants balanced
    assert drawn.mean(0).abs().max() < 0.08
    assert (drawn.square().mean(0) - 1 / n).abs().max() < 0.05
    assert torch.linalg.det(drawn).mean().abs() < 0.08
    # the trace of a Haar matrix has variance 1; without the sign fix it has not
    assert float(drawn.diagonal(dim1=1, dim2=2).sum(1).var()) == pytest.approx(1, abs=0.1)


def test_rotation_in_one_dimension_is_the_identity():
    pos = points(1)
    for seed in range(5):
        assert torch.equal(Rotation.random(pos, generator=rng(seed))(pos), pos)


@pytest.mark.parametrize("kind", EUCLIDEAN)
@given(n=dimensions, seed=seeds)
@few
def test_euclidean_maps_keep_distances(kind, n, seed):
    pos = points(n, seed)
    image = kind.random(pos, generator=rng(seed))(pos)
    assert torch.allclose(torch.pdist(image), torch.pdist(pos), rtol=1e-11)
    if kind is not Rotation or n > 1:
        assert (image - pos).norm(dim=1).max() > 1e-3


@given(n=dimensions, seed=seeds)
@few
def test_reflection_and_inversion_are_involutions(n, seed):
    pos = points(n, seed)
    for kind in (Reflection, Inversion):
        element = kind.random(pos, generator=rng(seed))
        assert torch.allclose(element(element(pos)), pos, rtol=1e-9, atol=1e-9)
        assert not torch.allclose(element(pos), pos)


@given(seed=seeds)
@few
def test_dilation_factor(seed):
    pos = points(2, seed)
    element = Dilation.random(pos, generator=rng(seed))
    assert 0.1 <= element.factor <= 0.8 or 1.25 <= element.factor <= 10
    assert torch.allclose(torch.pdist(element(pos)), element.factor * torch.pdist(pos))


def test_dilation_factor_is_log_uniform():
    pos, generator = points(2), rng(5)
    logs = np.log10([Dilation.random(pos, generator=generator).factor for _ in range(2000)])
    assert abs(logs.mean()) < 0.06
    # quarters of the logarithmic axis without its middle
    inner = np.log10(1.25) + np.log10(8) / 2
    assert np.mean(logs > inner) == pytest.approx(0.25, abs=0.04)
    assert np.mean(logs < -inner) == pytest.approx(0.25, abs=0.04)


def test_apply_shares_everything_but_pos():
    data = Data(pos=points(3), x=torch.rand(9, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    old = data.pos.clone()
    element = Rotation.random(data.pos, generator=rng(1))
    out = element.apply(data)
    assert torch.equal(out.pos, element(old))
    assert torch.equal(data.pos, old)
    assert out.x is data.x
    assert out.edge_index is data.edge_index
    with pytest.raises(ValueError, match="data: has no pos, which a rotation acts on"):
        element.apply(Data(x=torch.rand(9, 2)))


def test_errors_name_the_argument():
    pos = points(3)
    for kind in (Translation, Rotation, Reflection, Inversion, SpecialConformal, Affine):
        with pytest.raises(ValueError, match=f"this {kind.name} acts in 3 dimensions"):
            kind.random(pos, generator=rng())(points(2))
        with pytest.raises(ValueError, match="pos: must hold one row of coordinates per node"):
            kind.random(pos[0])
        with pytest.raises(ValueError, match="pos: must hold one row of coordinates per node"):
            kind.random(pos.long())
        with pytest.raises(ValueError, match="pos: has coordinates that are not finite"):
            kind.random(pos / 0)
    with pytest.raises(ValueError, match=r"factor: is -1\.0; give a positive number"):
        Dilation(-1.0)
    with pytest.raises(ValueError, match="radius: is 0; give a positive number"):
        Inversion(pos[0], 0)
    with pytest.raises(ValueError, match="n: is 0; give a whole number of at least 1"):
        random_orthogonal(0)
    with pytest.raises(ValueError, match="n: is 0; give a whole number of at least 1"):
        affine_scale(0, 1.0)
