"""Orthogonal polynomials of one variable, by the recurrences of their bases."""

from __future__ import annotations

import torch
from numpy.polynomial import chebyshev, legendre
from torch import Tensor

#: The coefficients of the powers in each polynomial of a basis.
BASES = {"chebyshev": chebyshev.cheb2poly, "legendre": legendre.leg2poly}


def polynomials(t: Tensor, degree: int, basis: str) -> list[Tensor]:
    """The polynomials P_0(t), ..., P_degree(t) of a basis, each as large as t.

    Args:
        t: Any numbers, from -1 to 1 where the polynomials are orthogonal.
        degree: The largest degree.
        basis: "chebyshev" or "legendre".

    Example:
        >>> [float(each) for each in polynomials(torch.tensor(0.5), 3, "chebyshev")]
        [1.0, 0.5, -0.5, -1.0]
    """
    found = [torch.ones_like(t), t][: degree + 1]
    for p in range(1, degree):
        if basis == "chebyshev":
            found.append(2 * t * found[p] - found[p - 1])
        else:
            found.append(((2 * p + 1) * t * found[p] - p * found[p - 1]) / (p + 1))
    return found
