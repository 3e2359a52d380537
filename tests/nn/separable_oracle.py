"""Angle updates of product form and handedness in plain loops, beside :mod:`nn.oracle`.

Every angle is listed, the polynomial is summed from its definition by cosines or by powers, and a
determinant is the sum over all permutations.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

from nn import oracle
from nn.oracle import Oracle
from nn.oracle_blocks import State
from nn.oracle_formulas import Values, dot, mlp, norm, rho


def chebyshev(p: int, t: Tensor) -> Tensor:
    """T_p(t) = sum_k (-1)^k p / (p - k) C(p - k, k) 2^(p - 2 k - 1) t^(p - 2 k)."""
    if p == 0:
        return t**0
    terms = [
        (-1) ** k * p * math.comb(p - k, k) * 2.0 ** (p - 2 * k - 1) / (p - k) * t ** (p - 2 * k)
        for k in range(p // 2 + 1)
    ]
    return sum(terms[1:], terms[0])


def legendre(p: int, t: Tensor) -> Tensor:
    """P_p(t) = 2^-p sum_k C(p, k)^2 (t - 1)^(p - k) (t + 1)^k."""
    terms = [math.comb(p, k) ** 2 * (t - 1) ** (p - k) * (t + 1) ** k for k in range(p + 1)]
    return sum(terms[1:], terms[0]) / 2**p


def determinant(rows: list[Tensor]) -> Tensor:
    """The sum over all permutations, by Leibniz."""
    n = len(rows)
    total = torch.zeros((), dtype=torch.float64)
    for columns in itertools.permutations(range(n)):
        swaps = sum(columns[a] > columns[b] for a, b in itertools.combinations(range(n), 2))
        term = torch.tensor((-1.0) ** swaps, dtype=torch.float64)
        for row, column in zip(rows, columns, strict=True):
            term = term * row[column]
        total = total + term
    return total


def direction(ray: Tensor) -> Tensor:
    return ray / norm(ray) if bool((ray != 0).any()) else 0.0 * ray


def conformal(rays: list[Tensor]) -> list[Tensor]:
    """The rays of a vertex inverted, centred, divided by their root mean square, and drawn into
    the unit ball.
    """
    there = [bool((ray != 0).any()) for ray in rays]
    inverted = [ray / dot(ray, ray) for ray, is_there in zip(rays, there, strict=True) if is_there]
    if not inverted or max(norm(y - inverted[0]).item() for y in inverted) == 0:
        return [0.0 * ray for ray in rays]
    centre = rho("mean", inverted, len(inverted[0]))
    centred = [y - centre for y in inverted]
    square = rho("mean", [dot(y, y).reshape(1) for y in centred], 1)
    found = iter([y / (square + dot(y, y)).sqrt() for y in centred])
    return [
        next(found) if is_there else 0.0 * ray for ray, is_there in zip(rays, there, strict=True)
    ]


class SeparableOracle(Oracle):
    """What a separable or chiral model should give."""

    conformal = False

    def updated(self, block: nn.Module, name: str, s: State, now: Values, keys: list) -> Values:
        phi = block.updates[name].phi if name in block.updates else None
        kind = type(phi).__name__
        if kind == "Separable":
            assert name == "angle"
            new = {key: self.product(phi, s, *key) for key in keys}
            return Values(new, phi.out)
        if kind == "Chiral":
            seen = {key: self.block.node(s, *key) for key in keys}
            new = {i: mlp(phi, [*seen[(i,)], self.handedness(phi, s, i)]) for (i,) in keys}
            return Values(new, phi.out)
        return super().updated(block, name, s, now, keys)

    def product(self, phi: nn.Module, s: State, j: int, i: int, k: int) -> Tensor:
        """a_jik = g_j h_k Q(t_jik)."""
        near = s.graph.neighbours(i)
        if self.conformal:
            vectors = dict(zip(near, conformal([s.x[m] - s.x[i] for m in near]), strict=True))
        else:
            vectors = {m: direction(s.x[m] - s.x[i]) for m in (j, k)}
        t = dot(vectors[j], vectors[k])
        polynomials = {"chebyshev": chebyshev, "legendre": legendre}[phi.basis]
        degree = phi.coefficients.shape[1] - 1
        q = sum(phi.coefficients[:, p] * polynomials(p, t) for p in range(degree + 1))
        g = phi.first.weight @ self.read(s, i, j) + phi.first.bias
        second = phi.first if phi.tied else phi.second
        h = second.weight @ self.read(s, i, k) + second.bias
        return g * h * q

    def read(self, s: State, i: int, j: int) -> Tensor:
        """What a factor reads, in the order of the specification."""
        parts = [s.v[i], s.v[j]]
        if isinstance(self.block, oracle.AGNEdges):
            parts.append(self.block.ray(s, i, j))
        if isinstance(self.block, oracle.AGNDistances):
            parts.append(s.d2(j, i))
        return torch.cat([part for part in [*parts, s.u[()]] if part is not None])

    def handedness(self, phi: nn.Module, s: State, i: int) -> Tensor:
        """Determinants of the first moments over the edges that end at i."""
        n, edges = s.x.width, s.graph.into(i)
        rays = [s.x[j] - s.x[i] for j, _, _ in edges]
        rays = conformal(rays) if self.conformal else [direction(ray) for ray in rays]
        values = [[part for part in (s.v[e[0]], s.e[e]) if part is not None] for e in edges]
        values = [torch.cat(parts) for parts in values]
        width = phi.weights.shape[1] - 1
        mean = rho("mean", values, width)
        away = [value - mean for value in values]
        variance = rho("mean", [dot(value, value).reshape(1) / width for value in away], 1)
        one = torch.ones(1, dtype=torch.float64)
        weights = [torch.cat([one, value / (variance + 1e-6).sqrt()]) for value in away]
        moments = []  # n vectors for each channel
        for row in phi.weights:
            terms = [(row @ weight) * ray for weight, ray in zip(weights, rays, strict=True)]
            moments.append(rho("sum", terms, n) / max(len(terms), 1) ** 0.5)
        return torch.stack(
            [determinant([moments[a * phi.out + c] for a in range(n)]) for c in range(phi.out)]
        )


class ConformalOracle(SeparableOracle):
    """The same with inverted, centred and normalised rays."""

    conformal = True
