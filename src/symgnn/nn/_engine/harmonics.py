"""Harmonics of unit vectors in any dimension, as combinations of monomials.

On the unit sphere a monomial of degree p is also a combination of harmonics of the degrees p,
p - 2, ..., so the harmonics up to a degree are as good as the monomials, and fewer: 16 of 20 in
three dimensions up to degree 3, 7 of 10 in the plane. They are orthonormal in the inner product
of the scaled monomials, in which the harmonics of degree p are orthogonal to all multiples of |r|^2
(Stein and Weiss, 1971, chapter IV). So the inner product of those of two unit vectors is

    <Y_p(r), Y_p(s)> = t^p + terms of degree p - 2, p - 4, ...,   t = r . s,

a multiple of the Gegenbauer polynomial of degree p.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np


def number_of_harmonics(n: int, p: int) -> int:
    """How many harmonics of degree p there are in n dimensions.

    Example:
        >>> [number_of_harmonics(3, p) for p in range(4)]
        [1, 3, 5, 7]
    """
    below = math.comb(n + p - 3, p - 2) if p > 1 else 0
    return math.comb(n + p - 1, p) - below


@lru_cache(maxsize=64)
def harmonics(n: int, p: int) -> np.ndarray:
    """The harmonics of degree p in the scaled monomials, `[number of them, monomials]`.

    Monomials are in the order of :func:`symgnn.nn._engine.monomials.tables`, each times the square
    root of its multinomial coefficient.
    """
    names = _names(n, p)
    if p < 2:
        return np.eye(len(names))
    place = {name: k for k, name in enumerate(names)}
    multiples = np.zeros((len(names), math.comb(n + p - 3, p - 2)))  # |r|^2 times a monomial
    for column, below in enumerate(_names(n, p - 2)):
        for variable in range(n):
            name = tuple(sorted((*below, variable, variable)))
            multiples[place[name], column] = 1.0 / _scale(name)
    rest = np.linalg.qr(multiples, mode="complete")[0][:, multiples.shape[1] :]
    return rest.T.copy()


@lru_cache(maxsize=64)
def step(n: int, p: int) -> np.ndarray:
    """How harmonics of degree p > 0 follow from those of degree p - 1.

    The derivatives of a harmonic are harmonics of one degree less, so with `A` given here

        Y_p(r) = A (Y_p-1(r) x r),   dY_p(r) / dr_i = p A_i Y_p-1(r).

    Returns:
        A, `[harmonics of degree p, harmonics of degree p - 1, n]`.
    """
    upper, lower = harmonics(n, p), harmonics(n, p - 1)
    place = {name: k for k, name in enumerate(_names(n, p - 1))}
    derivative = np.zeros((n, len(place), upper.shape[1]))  # of monomials, each with its scale
    for column, name in enumerate(_names(n, p)):
        for variable in set(name):
            below = list(name)
            below.remove(variable)
            derivative[variable, place[tuple(below)], column] = math.sqrt(p * name.count(variable))
    return np.einsum("ha,iba,kb->hki", upper, derivative, lower) / p


@lru_cache(maxsize=64)
def powers_in_harmonics(n: int, degree: int) -> np.ndarray:
    """The powers of t in the inner products of harmonics, `[degree + 1, degree + 1]`.

    Row p has the coefficients of `t^p`. In one dimension there is no harmonic above degree 1, and
    t^2 is 1.
    """
    polynomials = np.zeros((degree + 1, degree + 1))  # of each inner product, by powers of t
    for p in range(degree + 1):
        polynomials[p, p] = 1.0
        if p > 1:  # t C_p-1 - b C_p-2, monic Gegenbauer polynomials of index n / 2 - 1
            k = p - 1
            b = 0.5 if n == 2 and k == 1 else k * (k + n - 3) / ((2 * k + n - 2) * (2 * k + n - 4))
            polynomials[p, 1:] += polynomials[p - 1, :-1]
            polynomials[p, p] = 1.0
            polynomials[p] -= b * polynomials[p - 2]
    return np.linalg.inv(polynomials)


def _names(n: int, p: int) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(n), p))


def _scale(name: tuple[int, ...]) -> float:
    """The square root of the multinomial coefficient."""
    counts = [name.count(each) for each in set(name)]
    return math.sqrt(math.factorial(len(name)) / math.prod(map(math.factorial, counts)))
