"""Orthogonal polynomials of one variable, by the recurrences of their bases."""

from __future__ import annotations

import numpy as np
import torch
from numpy.polynomial import chebyshev, legendre
from torch import Tensor

#: The coefficients of the powers in each polynomial of a basis.
BASES = {"chebyshev": chebyshev.cheb2poly, "legendre": legendre.leg2poly}


def polynomials(t: Tensor, degree: int, basis: str, weight: Tensor | None = None) -> list[Tensor]:
    """The polynomials P_0(t), ..., P_degree(t) of a basis, each as large as t.

    Args:
        t: Any numbers, from -1 to 1 where the polynomials are orthogonal.
        degree: The largest degree.
        basis: "chebyshev" or "legendre".
        weight: What all of them are multiplied by, as large as t.

    Example:
        >>> [float(each) for each in polynomials(torch.tensor(0.5), 3, "chebyshev")]
        [1.0, 0.5, -0.5, -1.0]
    """
    found = [torch.ones_like(t), t] if weight is None else [weight, t * weight]
    found = found[: degree + 1]
    for p in range(1, degree):
        if basis == "chebyshev":
            found.append(2 * t * found[p] - found[p - 1])
        else:
            found.append(((2 * p + 1) * t * found[p] - p * found[p - 1]) / (p + 1))
    return found


def powers_of(basis: str, degree: int) -> list[list[float]]:
    """The coefficients of the powers `[degree + 1, degree + 1]`, one row for each polynomial.

    Example:
        >>> powers_of("chebyshev", 2)
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 2.0]]
    """
    table = np.zeros((degree + 1, degree + 1))
    for p, unit in enumerate(np.eye(degree + 1)):
        found = BASES[basis](unit[: p + 1])
        table[p, : len(found)] = found
    return table.tolist()
