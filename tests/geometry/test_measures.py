"""Lengths, angles and kappa against plain formulas, and at the places where those break down."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import distance, rng
from symgnn.geometry import (
    TRANSFORMATIONS,
    angle,
    direction,
    kappa,
    length,
    ray_pairs,
    squared_distance,
)

few = settings(max_examples=25, deadline=None)
dimensions = st.integers(1, 6)
seeds = st.integers(0, 10**6)
DTYPES = [torch.float32, torch.float64]


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64).to(dtype)


def gradient(function, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*inputs).sum(), inputs)


# ------------------------------------------------------------------ against plain formulas


@given(n=dimensions, seed=seeds)
@few
def test_distance_length_and_direction(n, seed):
    x, y = normal(7, n, seed=seed), normal(7, n, seed=seed + 1)
    apart = (x - y).numpy()
    norm = np.linalg.norm(apart, axis=1)
    assert np.allclose(squared_distance(x, y), (apart**2).sum(1), rtol=1e-14, atol=0)
    assert np.allclose(length(x - y), norm, rtol=1e-14, atol=0)
    assert np.allclose(direction(x - y), apart / norm[:, None], rtol=1e-14, atol=1e-15)


@given(n=dimensions, seed=seeds)
@few
def test_angle(n, seed):
    p, q = normal(9, n, seed=seed), normal(9, n, seed=seed + 1)
    dot = (p * q).sum(1).numpy()
    cosine = dot / (np.linalg.norm(p, axis=1) * np.linalg.norm(q, axis=1))
    # the plain formula loses half of the digits near 0 and pi
    assert np.allclose(angle(p, q), np.arccos(cosine.clip(-1, 1)), rtol=0, atol=1e-7)
    assert np.allclose(angle(p, q).cos(), cosine, rtol=0, atol=1e-14)
    assert torch.equal(angle(p, q), angle(q, p))
    assert distance(angle(p, -q), math.pi - angle(p, q)) < 1e-14


@given(power=st.floats(-15, 0), flip=st.booleans(), n=st.integers(2, 6), seed=seeds)
@few
def test_angle_keeps_its_digits_near_0_and_pi(power, flip, n, seed):
    """A known angle between two orthonormal directions, to an absolute error of some 1e-16."""
    small = 10.0**power
    q, _ = torch.linalg.qr(normal(n, n, seed=seed))
    first, other = q[:, 0], q[:, 1]
    second = math.cos(small) * first + math.sin(small) * other
    found = float(angle(3 * first, -0.2 * second if flip else 0.2 * second))
    error = abs(found - (math.pi - small if flip else small))
    assert error < 2e-15, f"angle {small}, flipped {flip}, in {n}d: error {error}"


def naive_s(rays: np.ndarray) -> tuple[np.ndarray, float]:
    """The s of all pairs, `[d, n] -> [d, d]` with nan on the diagonal, and their mean."""
    d = len(rays)
    s = np.full((d, d), np.nan)
    for j, k in itertools.permutations(range(d), 2):
        lengths = np.linalg.norm(rays[j]) * np.linalg.norm(rays[k])
        s[j, k] = np.linalg.norm(rays[j] - rays[k]) / lengths
    return s, float(np.nanmean(s))


@given(n=dimensions, d=st.integers(2, 7), seed=seeds)
@few
def test_kappa(n, d, seed):
    rays = normal(4, d, n, seed=seed)
    found = kappa(rays)
    assert found.shape == (4, d, d - 1)
    for vertex in range(4):
        s, mean = naive_s(rays[vertex].numpy())
        # s is a difference of inverted rays, which may be much longer than it
        tolerance = 1e-14 * (1 + float(1 / rays[vertex].norm(dim=1).min()) / mean)
        for j, k in itertools.permutations(range(d), 2):
            error = abs(float(found[vertex, j, k - (k > j)]) - s[j, k] / mean)
            assert error < tolerance, f"pair ({j}, {k}) of {d} in {n}d: error {error}"
    assert distance(found.mean((1, 2)), torch.ones(4)) < 1e-13


@given(
    n=dimensions,
    kind=st.sampled_from(
        ["translation", "rotation", "reflection", "dilation", "inversion", "special-conformal"]
    ),
    seed=seeds,
)
@few
def test_kappa_is_kept_by_moebius_maps(n, kind, seed):
    pos = normal(8, n, seed=seed)
    moved = TRANSFORMATIONS[kind].random(pos, generator=rng(seed))(pos)
    error = distance(kappa((pos[1:] - pos[0])[None]), kappa((moved[1:] - moved[0])[None]))
    assert error < 1e-9, f"{kind} in {n}d: {error}"


def test_kappa_is_not_kept_by_affine_maps():
    pos = normal(8, 3)
    moved = pos * torch.tensor([1.0, 1.0, 2.0])
    error = distance(kappa((pos[1:] - pos[0])[None]), kappa((moved[1:] - moved[0])[None]))
    assert error > 0.01, error


@given(m=st.integers(0, 3), d=st.integers(2, 6))
@few
def test_ray_pairs_are_all_ordered_pairs_once(m, d):
    numbers = torch.arange(m * d).view(m, d, 1)
    first, second = ray_pairs(numbers)
    assert first.shape == (m, d, 1, 1)
    assert second.shape == (m, d, d - 1, 1)
    for vertex in range(m):
        found = [
            (int(first[vertex, j, 0, 0]), int(second[vertex, j, s, 0]))
            for j, s in itertools.product(range(d), range(d - 1))
        ]
        assert sorted(found) == list(itertools.permutations(range(vertex * d, (vertex + 1) * d), 2))
        assert found[0] == (vertex * d, vertex * d + 1)


# ------------------------------------------------------------------ gradients


@pytest.mark.parametrize("n", range(1, 7))
def test_gradients(n):
    x, y = (normal(5, n, seed=s).requires_grad_() for s in (n, n + 1))
    for function in (length, direction):
        assert torch.autograd.gradcheck(function, (x,))
        assert torch.autograd.gradgradcheck(function, (x,), fast_mode=True)
    assert torch.autograd.gradcheck(squared_distance, (x, y))
    if n > 1:  # in one dimension all rays are collinear
        assert torch.autograd.gradcheck(angle, (x, y))
        assert torch.autograd.gradgradcheck(angle, (x, y), atol=1e-4, rtol=1e-3, fast_mode=True)
    rays = normal(2, 4, n, seed=n).requires_grad_()
    assert torch.autograd.gradcheck(kappa, (rays,), atol=1e-4, rtol=1e-3)
    assert torch.autograd.gradgradcheck(kappa, (rays,), atol=1e-4, rtol=1e-3, fast_mode=True)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("small", [1e-1, 1e-3, 1e-5, 1e-7])
def test_gradient_of_the_angle_near_0_and_pi(small, flip, n):
    """Against finite differences, with steps that are small against the angle itself."""
    q, _ = torch.linalg.qr(normal(n, n, seed=n))
    first = 1.7 * q[:, 0]
    second = 0.6 * (math.cos(small) * q[:, 0] + math.sin(small) * q[:, 1]) * (-1 if flip else 1)
    for found, (x, y) in zip(
        gradient(angle, first, second), [(first, second), (second, first)], strict=True
    ):
        step = 1e-3 * small * float(x.norm())
        for k in range(n):
            offset = torch.zeros(n, dtype=torch.float64)
            offset[k] = step
            expected = float(angle(x + offset, y) - angle(x - offset, y)) / (2 * step)
            # second order of the step, and the rounding of the difference
            tolerance = 1e-5 + 2e-15 / step
            error = abs(float(found[k]) - expected)
            assert error < tolerance, f"angle {small}, entry {k}: {found[k]} against {expected}"
    size = float(gradient(angle, first, second)[0].norm())
    assert abs(size - 1 / 1.7) < 1e-6, f"the gradient is 1 / |ray| long, not {size}"


# ------------------------------------------------------------------ where they are not defined

ZERO = torch.zeros(3, dtype=torch.float64)


def test_length_and_direction_of_zero():
    for n, dtype in itertools.product((1, 3, 6), DTYPES):
        zero = torch.zeros(4, n, dtype=dtype)
        assert torch.equal(length(zero), torch.zeros(4, dtype=dtype))
        assert torch.equal(direction(zero), zero)
        for function in (length, direction, lambda x: squared_distance(x, 0 * x)):
            assert torch.equal(gradient(function, zero)[0], zero)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ([1.0, 2.0, 2.0], [2.0, 4.0, 4.0], 0.0),
        ([1.0, 2.0, 2.0], [-1.0, -2.0, -2.0], math.pi),
        ([1.0, 2.0, 2.0], [0.0, 0.0, 0.0], 0.0),
        ([0.0, 0.0, 0.0], [0.0, 1.0, 0.0], 0.0),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0.0),
        ([5.0], [2.0], 0.0),
        ([5.0], [-2.0], math.pi),
        ([0.0], [-2.0], 0.0),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_angle_of_collinear_rays_and_of_zero(first, second, value, dtype):
    p, q = (torch.tensor(x, dtype=dtype) for x in (first, second))
    found = angle(p, q)
    assert found.dtype == dtype
    assert float(found) == pytest.approx(value, abs=1e-6 if dtype == torch.float32 else 1e-15)
    for x, size in zip((p, q), gradient(angle, p, q), strict=True):
        assert torch.equal(size, torch.zeros_like(x)), f"gradient {size} at {first}, {second}"


@given(n=dimensions, seed=seeds, power=st.floats(-18, -6), flip=st.booleans())
@few
def test_angle_of_nearly_collinear_rays_has_a_bounded_gradient(n, seed, power, flip):
    p = normal(n, seed=seed)
    q = (-2.0 if flip else 2.0) * p + 10**power * normal(n, seed=seed + 1)
    for dtype in DTYPES:
        x, y = p.to(dtype), q.to(dtype)
        for ray, found in zip((x, y), gradient(angle, x, y), strict=True):
            bound = 1.01 / float(ray.norm())
            assert float(found.norm()) <= bound, f"{dtype}: {found.norm()} exceeds {bound}"


def test_kappa_leaves_rays_without_length_out():
    rays = normal(1, 4, 3)
    with_zero = torch.cat([rays, ZERO.expand(1, 1, 3)], 1)
    found, expected = kappa(with_zero)[0], kappa(rays)[0]
    for j, s in itertools.product(range(5), range(4)):
        k = s + (s >= j)
        if 4 in (j, k):
            assert float(found[j, s]) == 0.0, f"pair ({j}, {k})"
        else:
            error = abs(float(found[j, s] - expected[j, k - (k > j)]))
            assert error < 1e-14, f"pair ({j}, {k}): {error}"
    (slope,) = gradient(lambda x: kappa(x).square(), with_zero)
    assert slope.isfinite().all()
    assert torch.equal(slope[0, 4], ZERO)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kappa_of_neighbours_in_one_place(dtype):
    one = torch.tensor([1.0, -2.0, 0.5], dtype=dtype)
    for rays in (one.expand(1, 4, 3), torch.zeros(2, 3, 3, dtype=dtype)):
        assert torch.equal(kappa(rays), torch.zeros_like(kappa(rays)))
        (slope,) = gradient(kappa, rays)
        assert torch.equal(slope, torch.zeros_like(rays)), slope
    # two of them in one place: their own s is 0, the others are as always
    pair = torch.stack([one, one, -one])[None]
    assert kappa(pair)[0, 0, 0] == 0.0
    assert kappa(pair).sum() == pytest.approx(6.0, abs=1e-5)
    (slope,) = gradient(lambda x: kappa(x).square(), pair)
    assert slope.isfinite().all()


def test_kappa_of_two_neighbours_is_one():
    assert distance(kappa(normal(3, 2, 4)), torch.ones(3, 2, 1)) < 1e-15
    assert kappa(normal(0, 3, 2)).shape == (0, 3, 2)


# ------------------------------------------------------------------ types and sizes


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_computed_in_float32(dtype):
    x, y = normal(5, 3, dtype=dtype), normal(5, 3, seed=1, dtype=dtype)
    rays = normal(2, 4, 3, dtype=dtype)
    for function, inputs in (
        (squared_distance, (x, y)),
        (length, (x,)),
        (direction, (x,)),
        (angle, (x, y)),
        (kappa, (rays,)),
    ):
        found = function(*inputs)
        assert found.dtype == torch.float32, function
        assert torch.equal(found, function(*(t.float() for t in inputs))), function
        for slope, t in zip(gradient(function, *inputs), inputs, strict=True):
            assert slope.dtype == t.dtype
            assert slope.isfinite().all()
    # 300^2 overflows float16
    far = torch.full((1, 3), 300.0, dtype=dtype)
    assert float(squared_distance(far, -far)) == pytest.approx(3 * 600**2, rel=1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [-30, -15, -6, 0, 6, 15, 30])
def test_sizes(power, dtype):
    """Lengths far beyond the root of what the type holds, and angles of whatever length."""
    size = 10.0**power
    x, y = normal(6, 3, dtype=dtype), normal(6, 3, seed=1, dtype=dtype)
    rounding = 1e-5 if dtype == torch.float32 else 1e-13
    assert distance(length(size * x) / size, length(x)) < rounding
    assert distance(direction(size * x), direction(x)) < rounding
    assert distance(angle(size * x, y), angle(x, y)) < rounding
    assert distance(kappa(size * x.view(2, 3, 3)), kappa(x.view(2, 3, 3))) < rounding
    slopes = [
        *gradient(length, size * x),
        *gradient(angle, size * x, y),
        *gradient(lambda r: kappa(r).square(), size * x.view(2, 3, 3)),
    ]
    for slope in slopes:
        assert slope.isfinite().all(), slope


def test_axes_in_front():
    """Whatever stands before the last axis is kept."""
    x, y = normal(2, 3, 4, 5), normal(1, 3, 1, 5)
    for function in (squared_distance, angle):
        assert function(x, y).shape == (2, 3, 4)
        assert float(function(x, y)[1, 2, 3]) == float(function(x[1, 2, 3], y[0, 2, 0]))
    assert length(x).shape == (2, 3, 4)
    assert direction(x).shape == x.shape
    assert length(normal(0, 3)).shape == (0,)
    assert angle(normal(0, 3), normal(0, 3)).shape == (0,)


def test_the_derivative_of_a_direction_along_an_axis() -> None:
    for n in (1, 2, 3):
        vector = torch.zeros(n, dtype=torch.float64)
        vector[0] = 2.0
        found = torch.autograd.functional.jacobian(direction, vector)
        expected = torch.eye(n, dtype=torch.float64) / 2
        expected[0, 0] = 0.0  # a longer vector has the same direction
        torch.testing.assert_close(found, expected)
