"""Sums over angles of product form, through moments of the rays: no pair of rays is listed.

With unit vectors r and a polynomial Q_c(t) = sum_p q_cp t^p for each channel c,

    sum_k h_kc Q_c(r_j . r_k) = sum_m q_cp(m) F_jm H_mc,   H_mc = sum_k F_km h_kc,

where F_jm are the monomials of r_j up to the degree of Q, each times the square root of its
multinomial coefficient, so that <F_j, F_k> restricted to degree p is (r_j . r_k)^p. The term k = j
is sum_p q_cp |r_j|^(2p) h_jc and is subtracted. A vertex of degree d costs O(d).
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from symgnn.geometry.measures import at_least_float32
from symgnn.graphs.stars import stars_of
from symgnn.graphs.topology import Topology
from symgnn.nn._engine.rows import move
from symgnn.nn._engine.values import lift


@cache
def monomials(n: int, degree: int) -> tuple[tuple[int, int, float], ...]:
    """All monomials of n variables from degree 1 to `degree`, by degree.

    Returns:
        For each monomial the number of the one of a degree less that it is a multiple of (0 is
        the constant 1), the variable it is multiplied by, and its factor: the square root of the
        ratio of their multinomial coefficients.
    """
    number: dict[tuple[int, ...], int] = {(): 0}
    found = []
    for p in range(1, degree + 1):
        for variables in combinations_with_replacement(range(n), p):
            number[variables] = len(number)
            factor = math.sqrt(_multinomial(variables) / _multinomial(variables[:-1]))
            found.append((number[variables[:-1]], variables[-1], factor))
    return tuple(found)


def _multinomial(variables: tuple[int, ...]) -> int:
    repeats = (variables.count(each) for each in set(variables))
    return math.factorial(len(variables)) // math.prod(map(math.factorial, repeats))


@cache
def degrees(n: int, degree: int) -> tuple[int, ...]:
    """The degree of each monomial of n variables up to `degree`, the constant among them."""
    return tuple(p for p in range(degree + 1) for _ in range(math.comb(n + p - 1, p)))


def features(vectors: Tensor, degree: int) -> Tensor:
    """The monomials F of each vector up to a degree, `[R, n] -> [R, M]`."""
    n = vectors.shape[1]
    one = vectors.new_ones(vectors.shape[0], 1)
    if degree == 0:
        return one
    blocks, start = [one], 0  # one block for each degree; `start` numbers its first monomial
    found = monomials(n, degree)
    for p in range(1, degree + 1):
        size = math.comb(n + p - 1, p)
        rows = found[start : start + size]
        before = start + 1 - blocks[-1].shape[1]  # the number of the first one of degree p - 1
        parent = torch.tensor([r[0] - before for r in rows], device=vectors.device)
        variable = torch.tensor([r[1] for r in rows], device=vectors.device)
        factor = vectors.new_tensor([r[2] for r in rows])
        product = blocks[-1].index_select(1, parent) * vectors.index_select(1, variable)
        blocks.append(product * factor)
        start += size
    return torch.cat(blocks, 1)


class Moments:
    """The rays of all vertices with one vector `[R, n]` each, and sums over pairs of them.

    The monomials are computed once for all updates that read the same vectors.
    """

    def __init__(self, topology: Topology, vectors: Tensor) -> None:
        self.topology, self.vectors = topology, vectors
        self._features: dict[int, Tensor] = {}

    def weigh(self, values: Tensor, coefficients: Tensor) -> Tensor:
        """`sum_k values_kc Q_c(r_j . r_k)` over the other rays k of the vertex of j.

        Args:
            values: h, `[R, c]`.
            coefficients: q, those of the powers in Q, `[c, degree + 1]`.

        Returns:
            `[R, c]`, at least in single precision.
        """
        device = values.device.type
        with torch.autocast(device, enabled=False):  # the subtraction needs all digits
            values = at_least_float32(values)
            vectors = self.vectors.to(values.dtype)
            coefficients = coefficients.to(values.dtype)
            degree, n = coefficients.shape[1] - 1, vectors.shape[1]
            index = torch.tensor(degrees(n, degree), device=values.device)
            weights = coefficients.T.index_select(0, index)  # [M, c]
            if torch.compiler.is_compiling():
                found = self._by_movements(values, features(vectors, degree), weights)
            else:
                found = self._by_products(values, vectors, degree, weights)
            square = vectors.square().sum(1, keepdim=True)
            powers = torch.cat([torch.ones_like(square), *_powers(square, degree)], 1)
            return torch.addcmul(found, values, powers @ coefficients.T, value=-1)

    def _by_products(self, values: Tensor, vectors: Tensor, degree: int, weights: Tensor) -> Tensor:
        """Two products of matrices for each vertex."""
        stars = stars_of(self.topology)
        if not stars.sizes:
            return torch.zeros_like(values)
        if degree not in self._features:
            rows = features(vectors, degree)
            if stars.place is not None:
                rows = rows.new_zeros(stars.rows, rows.shape[1]).index_copy(0, stars.place, rows)
            self._features[degree] = rows
        monomial, rows = self._features[degree], values
        if stars.place is not None:
            rows = rows.new_zeros(stars.rows, rows.shape[1]).index_copy(0, stars.place, rows)
        places, parts = [v * d for v, d in stars.sizes], []
        split = zip(stars.sizes, monomial.split(places), rows.split(places), strict=True)
        for (vertices, side), of_rays, weighed in split:
            of_rays = of_rays.view(vertices, side, of_rays.shape[1])
            weighed = weighed.view(vertices, side, weighed.shape[1])
            moments = torch.bmm(of_rays.mT, weighed) * weights
            parts.append(torch.bmm(of_rays, moments).flatten(0, 1))
        found = torch.cat(parts) if len(parts) > 1 else parts[0]
        return found if stars.place is None else lift(found, stars.place)

    def _by_movements(self, values: Tensor, monomial: Tensor, weights: Tensor) -> Tensor:
        """The same in operations whose sizes depend on the numbers of rays and nodes alone."""
        rays = self.topology.rays
        assert rays is not None
        size, channels = monomial.shape[1], values.shape[1]
        outer = (monomial.unsqueeze(2) * values.unsqueeze(1)).flatten(1)
        moments = move(outer, rays.near.T) * weights.flatten()
        back = move(moments, rays.near).unflatten(1, (size, channels))
        return (monomial.unsqueeze(2) * back).sum(1)


def _powers(square: Tensor, degree: int) -> list[Tensor]:
    found: list[Tensor] = []
    for _ in range(degree):
        found.append(square if not found else found[-1] * square)
    return found
