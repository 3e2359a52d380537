"""Motions that keep the angles at the vertices of a graph: infinitesimal ones, and finite ones."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from symgnn.geometry.redrawing import (
    LONGEST,
    SHORTEST,
    direction_matrix,
    null_space,
    translations_and_dilations,
    without,
)
from symgnn.geometry.rigidity import rigid_motions
from symgnn.geometry.sampling import Cloud

if TYPE_CHECKING:
    import networkx as nx

#: Rays are collinear where the sine of their angle is below this.
COLLINEAR = 1e-6


class Angles:
    """The angles at the vertices of a graph, as equations that other coordinates have to meet.

    An angle between rays of directions p and q is kept if `p . q` is. Where the rays are
    collinear, the derivative of `p . q` vanishes, so there the equation is that of the
    directions, `p = q` or `p = -q`.
    """

    def __init__(self, x: Tensor, graph: nx.Graph) -> None:
        corners = [(i, j, k) for i in graph for j, k in itertools.combinations(sorted(graph[i]), 2)]
        i, j, k = torch.tensor(corners, dtype=torch.long).reshape(-1, 3).T
        long = (x[i] - x[j]).norm(dim=1).minimum((x[i] - x[k]).norm(dim=1)) > 1e-9
        i, j, k = i[long], j[long], k[long]
        self.x = x
        first, second = _unit(x[j] - x[i]), _unit(x[k] - x[i])
        cosine = (first * second).sum(1)
        flat = (first - cosine.unsqueeze(1) * second).norm(dim=1) < COLLINEAR
        self.bent, self.flat = (i[~flat], j[~flat], k[~flat]), (i[flat], j[flat], k[flat])
        self.cosine, self.sign = cosine[~flat], cosine[flat].sign().unsqueeze(1)
        ends = torch.tensor(sorted(map(sorted, graph.edges)), dtype=torch.long).reshape(-1, 2).T
        lengths = (x[ends[0]] - x[ends[1]]).norm(dim=1)
        self.pairs, self.lengths = ends[:, lengths > 1e-9], lengths[lengths > 1e-9]
        self.short = ends[:, lengths <= 1e-9]

    def residual(self, x: Tensor) -> Tensor:
        """By how much the equations are missed `[equations]`."""
        i, j, k = self.bent
        bent = (_unit(x[j] - x[i]) * _unit(x[k] - x[i])).sum(1) - self.cosine
        i, j, k = self.flat
        flat = _unit(x[j] - x[i]) - self.sign * _unit(x[k] - x[i])
        together = x[self.short[0]] - x[self.short[1]]
        return torch.cat([bent, flat.flatten(), together.flatten()])

    def jacobian(self, x: Tensor) -> Tensor:
        """The angle rigidity matrix `[equations, N n]`."""
        n = x.size(1)
        i, j, k = self.bent
        (p, to_p), (q, to_q) = _unit_and_derivative(x[j] - x[i]), _unit_and_derivative(x[k] - x[i])
        bent = _rows(x, j, i, (q.unsqueeze(1) @ to_p)) + _rows(x, k, i, (p.unsqueeze(1) @ to_q))
        i, j, k = self.flat
        to_p, to_q = (_unit_and_derivative(x[end] - x[i])[1] for end in (j, k))
        flat = _rows(x, j, i, to_p) - _rows(x, k, i, self.sign.unsqueeze(2) * to_q)
        same = torch.eye(n, dtype=x.dtype, device=x.device).expand(self.short.size(1), n, n)
        return torch.cat([bent, flat, _rows(x, self.short[0], self.short[1], same)])

    def growth(self, x: Tensor) -> Tensor:
        """The ratio of the new to the old length of each edge."""
        return (x[self.pairs[0]] - x[self.pairs[1]]).norm(dim=1) / self.lengths


def _unit(rays: Tensor) -> Tensor:
    return rays / rays.norm(dim=1, keepdim=True)


def _unit_and_derivative(rays: Tensor) -> tuple[Tensor, Tensor]:
    """The directions of rays `[R, n]`, and their derivatives by the rays `[R, n, n]`."""
    length = rays.norm(dim=1).view(-1, 1, 1)
    unit = _unit(rays)
    across = torch.eye(rays.size(1), dtype=rays.dtype, device=rays.device)
    return unit, (across - unit.unsqueeze(2) * unit.unsqueeze(1)) / length


def _rows(x: Tensor, end: Tensor, start: Tensor, by_ray: Tensor) -> Tensor:
    """Rows `[R m, N n]` of derivatives by coordinates, from those by rays `[R, m, n]`."""
    rows, m, n = by_ray.shape
    found = x.new_zeros(rows, m, x.size(0), n)
    each = torch.arange(rows, device=x.device)
    found[each, :, end] = by_ray
    found[each, :, start] = -by_ray
    return found.view(rows * m, x.numel())


def torsion_velocities(x: Tensor, graph: nx.Graph) -> Tensor:
    """The velocities of turns about the bridges of a graph, as rows `[k, N n]`."""
    import networkx as nx  # when it is used: all else works without it

    n, rows = x.size(1), []
    for a, b in nx.bridges(graph):
        axis = x[b] - x[a]
        if n < 3 or axis.norm() < 1e-9:
            continue
        moved = sorted(nx.node_connected_component(nx.restricted_view(graph, [], [(a, b)]), b))
        others = torch.linalg.qr(axis.unsqueeze(1), mode="complete").Q[:, 1:]
        away = (x[moved] - x[b]) @ others
        for p, q in itertools.combinations(range(n - 1), 2):
            velocity = torch.zeros_like(x)
            velocity[moved] = away[:, [q]] * others[:, p] - away[:, [p]] * others[:, q]
            rows.append(velocity.flatten())
    return torch.stack(rows) if rows else x.new_zeros(0, x.numel())


def known_motions(x: Tensor, graph: nx.Graph) -> Tensor:
    """Velocities of similarities, redrawings and torsions, as rows `[k, N n]`."""
    pairs = torch.tensor(sorted(map(sorted, graph.edges)), dtype=torch.long).reshape(-1, 2).T
    parts = [
        rigid_motions(x),
        translations_and_dilations(x),
        null_space(direction_matrix(x, pairs)),
        torsion_velocities(x, graph),
    ]
    return torch.cat(parts)


def angle_flexes(x: Tensor, graph: nx.Graph, angles: Angles) -> Tensor:
    """Velocities that keep the angles, beyond :func:`known_motions`, as rows `[k, N n]`."""
    return without(null_space(angles.jacobian(x)), known_motions(x, graph))


def restore_angles(x: Tensor, angles: Angles) -> Tensor | None:
    """The nearby coordinates `[N, n]` with the given angles, by Gauss-Newton.

    None where the iteration does not converge.
    """
    for _ in range(30):
        error = angles.residual(x)
        if not x.isfinite().all():
            return None
        if not error.numel() or float(error.abs().max()) < 2e-14:
            return x
        step = torch.linalg.lstsq(
            angles.jacobian(x), -error.unsqueeze(1), rcond=1e-9, driver="gelsd"
        ).solution
        x = x + step.view_as(x)
    return x if float(angles.residual(x).abs().max()) < 1e-12 else None


def angle_flexed(
    cloud: Cloud, graph: nx.Graph, size: float, generator: Generator | None
) -> Tensor | None:
    """Other coordinates `[N, n]` with the same angles at the vertices, beyond known motions.

    The cloud moves along a random path on which some node goes about `size` of the cloud's
    radius. None where the graph has no such motion, or none was found.
    """
    start = (cloud.points - cloud.centroid) / cloud.radius
    angles = Angles(start, graph)
    if not len(angle_flexes(start, graph, angles)):
        return None
    for attempt in range(5):
        steps = 10 * 2 ** min(attempt, 2)
        velocity = torch.randn(start.shape, generator=generator, dtype=torch.float64)
        end = _walk(start, graph, angles, velocity, size / 2 ** (attempt // 2), steps)
        if end is not None:
            return cloud.centroid + cloud.radius * end
    return None


def _walk(
    x: Tensor, graph: nx.Graph, angles: Angles, velocity: Tensor, size: float, steps: int
) -> Tensor | None:
    for _ in range(steps):
        basis = angle_flexes(x, graph, angles)
        part = ((basis @ velocity.flatten()) @ basis).view_as(x)
        longest = float(part.norm(dim=1).max())
        if longest < 1e-9:
            return None
        moved = restore_angles(x + part * (size / steps / longest), angles)
        if moved is None or float((moved - x).norm(dim=1).max()) < 0.1 * size / steps:
            return None
        growth = angles.growth(moved)
        if len(growth) and not SHORTEST < float(growth.min()) <= float(growth.max()) < LONGEST:
            return None
        velocity, x = moved - x, moved
    return x
