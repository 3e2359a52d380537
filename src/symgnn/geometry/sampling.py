"""Random numbers and matrices behind the random transformations.

All draws are made in float64 on the CPU, so one seed gives one element whatever the type and the
device of the coordinates it is meant for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from symgnn._argument_checks import check_at_least, check_count


class Cloud(NamedTuple):
    """The points of a graph in float64 on the CPU, with their place and size."""

    points: Tensor
    """`[N, n]`"""
    centroid: Tensor
    """`[n]`"""
    radius: float
    """The largest distance from the centroid; 1 where all points are in one place."""

    @property
    def n(self) -> int:
        """The dimension."""
        return self.points.size(1)


def cloud_of(pos: Tensor) -> Cloud:
    """Check the coordinates `[N, n]` and measure them."""
    if pos.dim() != 2 or pos.size(1) < 1 or not pos.is_floating_point():
        raise ValueError(
            f"pos: must hold one row of coordinates per node, got {pos.dtype} of shape "
            f"{list(pos.shape)}; pass a floating-point tensor of shape [N, n] with n >= 1"
        )
    points = pos.detach().cpu().double()
    if not points.isfinite().all():
        raise ValueError("pos: has coordinates that are not finite; remove or repair these nodes")
    if len(points) == 0:
        return Cloud(points, points.new_zeros(pos.size(1)), 1.0)
    centroid = points.mean(0)
    radius = float((points - centroid).norm(dim=1).max())
    # coincident points can differ from their rounded mean, so the comparison is not with 0
    distinct = radius > 1e-12 * float(points.abs().max())
    return Cloud(points, centroid, radius if distinct else 1.0)


def uniform(low: float, high: float, generator: Generator | None) -> float:
    """A number that is uniform on `[low, high)`."""
    return low + (high - low) * float(torch.rand((), generator=generator, dtype=torch.float64))


def random_direction(n: int, generator: Generator | None = None) -> Tensor:
    """A unit vector that is uniform on the sphere, `[n]`."""
    direction = torch.randn(n, generator=generator, dtype=torch.float64)
    return direction / direction.norm()


def random_orthogonal(n: int, generator: Generator | None = None) -> Tensor:
    """A Haar-distributed element of O(n), in float64 on the CPU.

    Args:
        n: The number of coordinates.
        generator: Of random numbers; the global one if not given.

    Returns:
        An orthogonal matrix.

    Shapes:
        -> `[n, n]`.

    Example:
        >>> q = symgnn.geometry.random_orthogonal(4)
        >>> torch.allclose(q @ q.T, torch.eye(4, dtype=torch.float64))
        True
    """
    check_count("n", n)
    q, r = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))
    # QR fixes the signs of the columns by a rule of its own; those of R's diagonal undo it
    return q * torch.where(r.diagonal() < 0, -1.0, 1.0)


def random_rotation(n: int, generator: Generator | None = None) -> Tensor:
    """A Haar-distributed element of SO(n), `[n, n]`, in float64 on the CPU."""
    q = random_orthogonal(n, generator)
    if torch.linalg.det(q) < 0:
        q[:, 0].neg_()
    return q


@lru_cache(maxsize=1024)
def affine_scale(n: int, mu: float) -> float:
    """The `s` for which the mean of `|A^T A - I|_F` over `A = Q + s Z` in n dimensions is `mu`.

    `Q` is orthogonal and `Z` standard Gaussian. The mean is a Monte-Carlo one over fixed samples,
    accurate to better than 1 %; the global random state is left alone.
    """
    check_count("n", n)
    check_at_least("mu", mu, 0)
    if mu == 0:
        return 0.0
    # With G = Q^T Z, Gaussian like Z, the deviation is s (G + G^T) + s^2 G^T G: three numbers per
    # sample give its norm for every s. Each sample is used with both signs. The relative spread
    # of the norm falls like 1/n, hence the number of samples.
    generator = torch.Generator().manual_seed(0)
    g = torch.randn(max(16, 100_000 // n**2), n, n, generator=generator, dtype=torch.float64)
    linear, quadratic = g + g.mT, g.mT @ g
    constant = linear.square().sum((1, 2))
    slope = 2 * (linear * quadratic).sum((1, 2))
    curvature = quadratic.square().sum((1, 2))

    def mean(s: float) -> float:
        even = constant + s**2 * curvature
        # rounding can take the square of a vanishing norm below 0
        norms = torch.stack([even + s * slope, even - s * slope]).clamp(min=0).sqrt()
        return s * float(norms.mean())

    high = 1.0
    while mean(high) < mu:
        high *= 2
    while mean(high / 2) >= mu:
        high /= 2
    low = high / 2
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < mu else (low, middle)
    return high
