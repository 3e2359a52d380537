"""Frames of a cloud of points: finite sets of rotations that turn with the cloud."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

#: Sizes that differ by less than this, relative to the cloud, are the same.
SAME = 1e-5
#: The most frames of one cloud.
MOST = 512


def main_axes(points: Tensor, reflections: bool) -> Tensor | None:
    """The main axes of points `[N, n]` with all signs, as matrices `[F, n, n]`; rows are axes.

    None where two moments are the same, so that the axes are not unique.
    """
    n = points.size(1)
    values, vectors = torch.linalg.eigh(points.T @ points)
    largest = float(values.detach().max())
    if largest == 0 or bool((values.detach().diff() < SAME * largest).any()):
        return None
    signs = torch.tensor(list(itertools.product((1.0, -1.0), repeat=n))).to(points)
    frames = signs[:, :, None] * vectors.T
    return frames if reflections else frames[torch.linalg.det(frames.detach()) > 0]


def point_frames(points: Tensor, reflections: bool) -> Tensor:
    """Frames made of the points `[N, n]` themselves, as matrices `[F, n, n]`; rows are axes.

    The first axis points to a point that is farthest from the origin, the next to one that is
    farthest from the axes so far, and so on. All points that are as far are used, so that the set
    of frames turns with the cloud and does not depend on the order of the points. Axes that no
    point reaches are taken in all orders and signs.
    """
    n, size = points.size(1), float(points.detach().norm(dim=1).max())
    partial = [points.new_zeros(0, n)]
    for _ in range(n):
        longer: list[Tensor] = []
        for axes in partial:
            rest = points - points @ axes.T @ axes
            lengths = rest.norm(dim=1)
            top = float(lengths.detach().max())
            if top <= SAME * size:
                longer.append(axes)
                continue
            for k in (lengths >= top - SAME * size).nonzero().flatten().tolist():
                longer.append(torch.cat([axes, rest[k : k + 1] / lengths[k]]))
        partial = _distinct(longer)
        if len(partial) > MOST:
            raise ValueError(
                f"model: the points have more than {MOST} frames; use method='quadrature'"
            )
    return torch.stack([frame for axes in partial for frame in _completed(axes, n, reflections)])


def _distinct(found: list[Tensor]) -> list[Tensor]:
    kept: list[Tensor] = []
    for one in found:
        same = [(one - o).detach() for o in kept if o.shape == one.shape]
        if not any(off.numel() == 0 or float(off.abs().max()) < 10 * SAME for off in same):
            kept.append(one)
    return kept


def _completed(axes: Tensor, n: int, reflections: bool) -> list[Tensor]:
    """Full frames with these first axes; the others in all orders and signs."""
    left = n - len(axes)
    if left == 0:
        right = reflections or float(torch.linalg.det(axes.detach())) > 0
        return [axes if right else torch.cat([axes[:-1], -axes[-1:]])]
    full = torch.linalg.qr(torch.cat([axes.detach(), torch.eye(n).to(axes)]).T).Q.T
    frames = []
    for order in itertools.permutations(range(left)):
        others = full[len(axes) : n][list(order)]
        for signs in itertools.product((1.0, -1.0), repeat=left):
            frame = torch.cat([axes, others.new_tensor(signs)[:, None] * others])
            if reflections or float(torch.linalg.det(frame.detach())) > 0:
                frames.append(frame)
    return frames


def quadrature(n: int, degree: int, reflections: bool) -> tuple[Tensor, Tensor]:
    """Matrices `[F, n, n]` and weights `[F]`: exact for polynomials of the degree in the matrix.

    In 2 dimensions equal angles; in 3 Euler's angles, equal ones and Gauss points.
    """
    angles = [2 * math.pi * k / (degree + 1) for k in range(degree + 1)]
    if n == 2:
        frames = [_turn(2, 0, 1, angle) for angle in angles]
        weights = [1.0] * len(frames)
    elif n == 3:
        import numpy as np

        points, gauss = np.polynomial.legendre.leggauss(degree // 2 + 1)
        frames, weights = [], []
        for a, (c, w), b in itertools.product(angles, zip(points, gauss, strict=True), angles):
            middle = _turn(3, 2, 0, math.acos(float(c)))
            frames.append(_turn(3, 0, 1, a) @ middle @ _turn(3, 0, 1, b))
            weights.append(float(w))
    else:
        raise ValueError(
            f"method: a quadrature is known in 2 and 3 dimensions, not in {n}; use 'frame'"
        )
    found, shares = torch.stack(frames), torch.tensor(weights, dtype=torch.float64)
    if reflections:
        mirror = torch.eye(n, dtype=torch.float64)
        mirror[0, 0] = -1
        found, shares = torch.cat([found, found @ mirror]), torch.cat([shares, shares])
    return found, shares / shares.sum()


def _turn(n: int, a: int, b: int, angle: float) -> Tensor:
    matrix = torch.eye(n, dtype=torch.float64)
    c, s = math.cos(angle), math.sin(angle)
    matrix[a, a], matrix[a, b], matrix[b, a], matrix[b, b] = c, -s, s, c
    return matrix
