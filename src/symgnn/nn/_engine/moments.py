"""Sums over angles of product form, through moments of the rays: no pair of rays is listed.

With unit vectors r and a polynomial Q_c(t) = sum_p q_cp t^p for each channel c,

    sum_k h_kc Q_c(r_j . r_k) = sum_m q_cp(m) F_jm H_mc,   H_mc = sum_k F_km h_kc,

and sum_jk g_jc h_kc Q_c(r_j . r_k) = sum_m q_cp(m) G_mc H_mc,

where F_jm are the monomials of r_j up to the degree of Q, each times the square root of its
multinomial coefficient, so that <F_j, F_k> restricted to degree p is (r_j . r_k)^p. The term k = j
is sum_p q_cp |r_j|^(2p) g_jc h_jc and is subtracted. A vertex of degree d costs O(d).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from symgnn.geometry.measures import at_least_float32
from symgnn.graphs.stars import stars_of
from symgnn.graphs.topology import Topology
from symgnn.nn._engine.moment_sums import Sizes, groups, node_sums
from symgnn.nn._engine.rows import move
from symgnn.nn._engine.values import LazyValues, lift


class Table(NamedTuple):
    """The monomials of n variables of one degree p > 0, each a multiple of one of degree p - 1."""

    parent: Tensor  # [M_p], the number of that one among those of its degree
    variable: Tensor  # [M_p], what it is multiplied by
    factor: Tensor  # [M_p, 1], the square root of the ratio of their multinomial coefficients


def tables(n: int, degree: int, like: Tensor) -> list[Table]:
    """The monomials from degree 1 to `degree`, made once for each type and device."""
    if torch.compiler.is_compiling():
        return _tables(n, degree, like)
    key = (n, degree, like.dtype, like.device)
    if key not in _KNOWN:
        with torch.inference_mode(False):  # they may be saved for a backward pass later on
            _KNOWN[key] = _tables(n, degree, like)
    return _KNOWN[key]


_KNOWN: dict[Any, list[Table]] = {}


def _tables(n: int, degree: int, like: Tensor) -> list[Table]:
    found: list[Table] = []
    before: list[tuple[int, ...]] = [()]  # the variables of each monomial, in order
    for p in range(1, degree + 1):
        grown = [
            (k, (*each, variable))
            for k, each in enumerate(before)
            for variable in range(each[-1] if each else 0, n)
        ]
        before = [each for _, each in grown]
        # p! / prod(repeats!), over the same of the one of degree p - 1
        factor = [[math.sqrt(p / each.count(each[-1]))] for each in before]
        found.append(
            Table(
                torch.tensor([k for k, _ in grown], device=like.device),
                torch.tensor([each[-1] for each in before], device=like.device),
                torch.tensor(factor, dtype=like.dtype, device=like.device),
            )
        )
    return found


def features(vectors: Tensor, degree: int) -> Tensor:
    """The monomials F of each vector up to a degree, `[n, R] -> [M, R]`."""
    found = [torch.ones_like(vectors[:1])]  # one for each degree
    for parent, variable, factor in tables(vectors.shape[0], degree, vectors):
        product = found[-1].index_select(0, parent) * vectors.index_select(0, variable)
        found.append(product * factor)
    return torch.cat(found)


def powers(vectors: Tensor, degree: int) -> Tensor:
    """`|r|^(2p)` for p from 0 to a degree, `[n, R] -> [degree + 1, R]`."""
    square = vectors.square().sum(0, keepdim=True)
    found = [torch.ones_like(square)]
    for _ in range(degree):
        found.append(found[-1] * square)
    return torch.cat(found)


class Moments:
    """The rays of all vertices, with one vector `[R, n]` each.

    Their monomials are computed once for all updates that read the same vectors.
    """

    def __init__(self, topology: Topology, vectors: Tensor) -> None:
        self.topology, self.vectors = topology, vectors
        self._made: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = {}

    @property
    def padded(self) -> bool:
        """Whether rays stand as in :class:`symgnn.graphs.stars.Stars`; not while compiling, where
        sizes have to be those of the graph.
        """
        return not torch.compiler.is_compiling()

    def factors(self, table: Tensor, on_rays: Tensor | None) -> Tensor:
        """The factors of each ray: what its nodes add, `[2 N, w]`, and itself, `[R, w]`."""
        rays = self.topology.rays
        assert rays is not None
        stars = stars_of(self.topology) if self.padded else None
        rows = move(table, rays.both if stars is None else stars.both)
        if on_rays is None:
            return rows
        if stars is not None:
            empty = on_rays.new_zeros(stars.rows, on_rays.shape[1])
            on_rays = empty.index_copy(0, stars.place, on_rays)
        return rows + on_rays

    def weighted(self, factors: Tensor, on_rays: Tensor) -> Tensor:
        """The factors `[P, w]` times a number for each ray `[R, 1]`."""
        on_rays = on_rays.to(factors.dtype)
        if self.padded:
            stars = stars_of(self.topology)
            on_rays = on_rays.new_zeros(stars.rows, 1).index_copy(0, stars.place, on_rays)
        return factors * on_rays

    def made(self, degree: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The monomials `[M, P]` and the powers `[degree + 1, P]` of all rays."""
        key = (degree, dtype)
        if key not in self._made:
            vectors = self.vectors.to(dtype).T
            if self.padded:
                stars = stars_of(self.topology)
                empty = vectors.new_zeros(vectors.shape[0], stars.rows)
                vectors = empty.index_copy(1, stars.place, vectors)
            vectors = vectors.contiguous()
            self._made[key] = features(vectors, degree), powers(vectors, degree)
        return self._made[key]

    def product(self, factors: Tensor, coefficients: Tensor, to: str) -> Tensor:
        """`sum g_jc h_kc Q_c(r_j . r_k)` over pairs of different rays of a vertex.

        Args:
            factors: g and h as :meth:`factors` gives them, `[P, 2 c]`.
            coefficients: q, those of the powers in Q, `[c, degree + 1]`.
            to: "node" for the sum over j and k, `[N, c]`; "ray" for that over k, `[R, c]`.

        Returns:
            The sums, at least in single precision.
        """
        with torch.autocast(factors.device.type, enabled=False):  # differences need all digits
            factors = at_least_float32(factors)
            coefficients = coefficients.to(factors.dtype)
            degree, n = coefficients.shape[1] - 1, self.vectors.shape[1]
            sizes = [math.comb(n + p - 1, p) for p in range(degree + 1)]
            columns = coefficients.T.unsqueeze(1).unbind(0)
            weights = torch.cat(  # [M, c]
                [each.expand(size, -1) for each, size in zip(columns, sizes, strict=True)]
            )
            monomial, power = self.made(degree, factors.dtype)
            if not self.padded:
                return self._by_movements(factors, monomial, power, weights, coefficients, to)
            stars = stars_of(self.topology)
            c, nodes = coefficients.shape[0], self.topology.num_nodes
            if not stars.sizes:
                return factors.new_zeros(nodes if to == "node" else 0, c)
            given = (factors, monomial, power, weights, coefficients.T)
            if to == "ray":
                return lift(_to_rays(*given, stars.sizes), stars.place)
            total = node_sums(*given, stars.sizes)
            return total.new_zeros(nodes, c).index_copy(0, stars.vertex, total)

    def _by_movements(
        self,
        factors: Tensor,
        monomial: Tensor,
        power: Tensor,
        weights: Tensor,
        coefficients: Tensor,
        to: str,
    ) -> Tensor:
        """The same in operations whose sizes depend on the numbers of rays and nodes alone."""
        rays = self.topology.rays
        assert rays is not None
        g, h = factors.chunk(2, 1)
        monomial = monomial.T.unsqueeze(2)
        moments = move((monomial * h.unsqueeze(1)).flatten(1), rays.near.T) * weights.flatten()
        back = move(moments, rays.near).unflatten(1, weights.shape)
        found = g * ((monomial * back).sum(1) - h * (power.T @ coefficients.T))
        return found if to == "ray" else move(found, rays.near.T)


def _to_rays(
    factors: Tensor,
    monomial: Tensor,
    power: Tensor,
    weights: Tensor,
    coefficients: Tensor,
    sizes: Sizes,
) -> Tensor:
    """As :func:`node_sums`, but over the second rays alone, `[P, c]`."""
    parts = []
    for both, of_rays, of_self in groups(factors, monomial, power, sizes):
        first, second = both.unflatten(2, (2, both.shape[2] // 2)).unbind(2)
        pairs = torch.bmm(of_rays.mT, torch.bmm(of_rays, second) * weights)
        own = of_self.mT @ coefficients
        parts.append((first * torch.addcmul(pairs, second, own, value=-1)).flatten(0, 1))
    return torch.cat(parts)


class MomentValues(LazyValues):
    """The value of a form on rays: only its sums exist."""

    def __init__(self, topology: Topology, total: Callable[[str], Tensor]) -> None:
        super().__init__(topology, "angle", None)
        self.total = total

    def _climb_angles(self, to: str, op: str) -> Tensor:
        if to == "ray" or (to == "node" and ("ray", op) not in self._totals):
            return self.total(to)
        return super()._climb_angles(to, op)
