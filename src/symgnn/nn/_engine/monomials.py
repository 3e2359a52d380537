"""The monomials of vectors, each times the square root of its multinomial coefficient.

So the inner product of those of degree p of two vectors is the power p of their inner product.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from symgnn.nn._engine.harmonics import harmonics, number_of_harmonics


class Table(NamedTuple):
    """The monomials of n variables of one degree p > 0, each a multiple of one of degree p - 1."""

    parent: Tensor  # [M_p], the number of that one among those of its degree
    variable: Tensor  # [M_p], what it is multiplied by
    factor: Tensor  # [M_p, 1], the square root of the ratio of their multinomial coefficients
    harmonic: Tensor  # [H_p, M_p], the harmonics of this degree


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
        kind: Any = {"dtype": like.dtype, "device": like.device}
        compiling = torch.compiler.is_compiling()  # which uses no harmonics
        found.append(
            Table(
                torch.tensor([k for k, _ in grown], device=like.device),
                torch.tensor([each[-1] for each in before], device=like.device),
                torch.tensor(factor, **kind),
                torch.empty(0) if compiling else torch.tensor(harmonics(n, p), **kind),
            )
        )
    return found


def features(vectors: Tensor, there: Tensor, degree: int, unit: bool) -> Tensor:
    """The monomials of each vector up to a degree, or the harmonics of unit vectors.

    Args:
        vectors: `[n, P]`, 0 for padding.
        there: `[1, P]`, 0 for padding, else 1.
        degree: The largest degree.
        unit: Whether harmonics are enough.

    Returns:
        `[P, M]`, 0 for padding.
    """
    known, found = tables(vectors.shape[0], degree, vectors), [there]  # one for each degree
    for parent, variable, factor, _ in known:
        product = found[-1].index_select(0, parent) * vectors.index_select(0, variable)
        found.append(product * factor)
    monomial = torch.cat(found).T
    if not unit:
        return monomial.contiguous()
    return monomial @ torch.block_diag(there.new_ones(1, 1), *(each.harmonic.T for each in known))


def powers(vectors: Tensor, there: Tensor, degree: int) -> Tensor:
    """`|r|^(2p)` for p from 0 to a degree, `[n, P] -> [degree + 1, P]`; 0 for padding."""
    square = vectors.square().sum(0, keepdim=True)
    found = [there]
    for _ in range(degree):
        found.append(found[-1] * square)
    return torch.cat(found)


def counts(n: int, degree: int, unit: bool) -> list[int]:
    """How many features there are of each degree.

    Example:
        >>> counts(3, 3, unit=False), counts(3, 3, unit=True)
        ([1, 3, 6, 10], [1, 3, 5, 7])
    """
    if unit:
        return [number_of_harmonics(n, p) for p in range(degree + 1)]
    return [math.comb(n + p - 1, p) for p in range(degree + 1)]
