"""The monomials of vectors, each times the square root of its multinomial coefficient.

So the inner product of those of degree p of two vectors is the power p of their inner product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from symgnn.nn._engine.harmonics import number_of_harmonics

V = TypeVar("V")


class Table(NamedTuple):
    """The monomials of n variables of one degree p > 0, each a multiple of one of degree p - 1."""

    parent: Tensor  # [M_p], the number of that one among those of its degree
    variable: Tensor  # [M_p], what it is multiplied by
    factor: Tensor  # [M_p, 1], the square root of the ratio of their multinomial coefficients


def constant(make: Callable[..., V], like: Tensor, *given: Any) -> V:
    """`make(*given, like)`, made once for each type and device."""
    if torch.compiler.is_compiling():
        return make(*given, like)
    key = (make, *given, like.dtype, like.device)
    if key not in _KNOWN:
        with torch.inference_mode(False):  # it may be saved for a backward pass later on
            _KNOWN[key] = make(*given, like)
    found: V = _KNOWN[key]
    return found


_KNOWN: dict[Any, Any] = {}


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


def features(vectors: Tensor, there: Tensor, degree: int) -> Tensor:
    """The monomials of each vector up to a degree.

    Args:
        vectors: `[n, P]`.
        there: `[1, P]`, 0 for padding, else 1.
        degree: The largest degree.

    Returns:
        `[M, P]`, 0 for padding.
    """
    found = [there]  # one for each degree
    for parent, variable, factor in constant(_tables, vectors, vectors.shape[0], degree):
        product = found[-1].index_select(0, parent) * vectors.index_select(0, variable)
        found.append(product * factor)
    return torch.cat(found)


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
