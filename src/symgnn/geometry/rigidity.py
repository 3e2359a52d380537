"""Motions of bar frameworks: infinitesimal ones, and finite ones that keep every bar's length."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from symgnn.geometry.sampling import Cloud


def rigidity_matrix(x: Tensor, pairs: Tensor, lengths: Tensor) -> Tensor:
    """The derivative of `|x_i - x_j|^2 / (2 length)` for each bar, `[E, N n]`.

    Coordinates `x` are `[N, n]`, the ends of the bars `pairs` `[2, E]`, their `lengths` `[E]`.
    """
    bars = torch.arange(pairs.size(1))
    units = (x[pairs[0]] - x[pairs[1]]) / lengths.unsqueeze(1)
    rows = x.new_zeros(len(bars), *x.shape)
    rows[bars, pairs[0]] = units
    rows[bars, pairs[1]] = -units
    return rows.flatten(1)


def rigid_motions(x: Tensor) -> Tensor:
    """Velocities that span the rigid motions of the cloud `[N, n]`: `[n (n + 1) / 2, N n]`."""
    n = x.size(1)
    shifts = torch.eye(n, dtype=x.dtype).unsqueeze(1).expand(n, *x.shape)
    i, j = torch.triu_indices(n, n, 1)
    turns = x.new_zeros(len(i), *x.shape)
    planes = torch.arange(len(i))
    turns[planes, :, i] = x[:, j].T
    turns[planes, :, j] = -x[:, i].T
    return torch.cat([shifts, turns]).flatten(1)


def flexing_part(velocity: Tensor, x: Tensor, pairs: Tensor, lengths: Tensor) -> Tensor | None:
    """The part of a velocity `[N, n]` that stretches no bar and is no rigid motion.

    None where that part is zero.
    """
    kept = torch.cat([rigidity_matrix(x, pairs, lengths), rigid_motions(x)])
    _, values, rows = torch.linalg.svd(kept, full_matrices=False)
    rows = rows[values > 1e-6 * values[0]]
    flat = velocity.flatten()
    part = (flat - rows.T @ (rows @ flat)).view_as(x)
    return part if len(rows) < x.numel() and part.norm() > 1e-6 * velocity.norm() else None


def restore_lengths(x: Tensor, pairs: Tensor, lengths: Tensor) -> Tensor | None:
    """The nearby coordinates `[N, n]` with the given bar lengths, by Gauss-Newton.

    None where the iteration does not converge.
    """
    tolerance = 1e-13 * lengths + 4e-16
    for _ in range(30):
        found = (x[pairs[0]] - x[pairs[1]]).norm(dim=1)
        if bool(((found - lengths).abs() <= tolerance).all()):
            return x
        error = (found.square() - lengths.square()) / (2 * lengths)
        step = torch.linalg.lstsq(
            rigidity_matrix(x, pairs, lengths), -error.unsqueeze(1), rcond=1e-9, driver="gelsd"
        ).solution
        x = x + step.view_as(x)
        if not x.isfinite().all():
            return None
    return None


def _walk(
    x: Tensor, pairs: Tensor, lengths: Tensor, velocity: Tensor, size: float, steps: int
) -> Tensor | None:
    """Follow a velocity `[N, n]` in equal steps; None where it leads nowhere."""
    for _ in range(steps):
        part = flexing_part(velocity, x, pairs, lengths)
        if part is None:
            return None
        step = part * (size / steps / part.norm(dim=1).max())
        moved = restore_lengths(x + step, pairs, lengths)
        if moved is None:
            return None
        # Some bars can be at rest only to first order, so that such velocities lead nowhere. What
        # is left of the step once lengths are restored is a motion of the framework: go on in it.
        velocity, x = moved - x, moved
        if velocity.norm(dim=1).max() < 1e-6:
            return None
    return x


def flexed(cloud: Cloud, pairs: Tensor, size: float, generator: Generator | None) -> Tensor | None:
    """Other coordinates `[N, n]` with the same distance between the ends of each pair `[2, E]`.

    The cloud moves along a random path on which some node goes about `size` of the cloud's radius.
    None where no motion is found that clearly changes the distance of any two nodes.
    """
    scaled = (cloud.points - cloud.centroid) / cloud.radius
    lengths = (scaled[pairs[0]] - scaled[pairs[1]]).norm(dim=1)
    # nodes that an edge of length 0 holds together move as one
    i, j = pairs[:, lengths == 0].numpy()
    from scipy.sparse import coo_array  # when it is used: all else works without scipy
    from scipy.sparse.csgraph import connected_components

    joined = coo_array((torch.ones(len(i)).numpy(), (i, j)), shape=(len(scaled),) * 2)
    bodies = torch.from_numpy(connected_components(joined, directed=False)[1]).long()
    start = scaled.new_zeros(int(bodies.max()) + 1, cloud.n).index_copy(0, bodies, scaled)
    pairs, lengths = bodies[pairs[:, lengths > 0]], lengths[lengths > 0]
    # a first step that is too long does not find back, so each attempt takes shorter ones
    for attempt in range(5):
        steps = math.ceil(max(10.0, size / 0.03)) * min(2**attempt, 4)
        velocity = torch.randn(start.shape, generator=generator, dtype=torch.float64)
        if flexing_part(velocity, start, pairs, lengths) is None:
            return None
        end = _walk(start, pairs, lengths, velocity, size, steps)
        if end is not None and (torch.pdist(end) - torch.pdist(start)).abs().max() > 0.05 * size:
            return cloud.centroid + cloud.radius * end[bodies]
    return None
