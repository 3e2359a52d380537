"""The harmonics of unit vectors, each degree from the one below.

    Y_0 = w,   Y_p = A_p (Y_p-1 x r),   dY_p / dr_i = p A_pi Y_p-1,

where w is the weight of a vector (:func:`symgnn.nn._engine.harmonics.step`). So a derivative by r
takes one product of matrices for each degree. Second derivatives are those of the recursion.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from symgnn.nn._engine.harmonics import number_of_harmonics, step
from symgnn.nn._engine.monomials import constant
from symgnn.nn._engine.torch_private import is_recorded, is_transformed, needs_derivative


def unit_features(vectors: Tensor, weight: Tensor, degree: int) -> Tensor:
    """The harmonics of each vector up to a degree.

    Args:
        vectors: Of length 1, `[n, P]`.
        weight: What they are multiplied by, `[1, P]`; 0 for padding.
        degree: The largest degree.

    Returns:
        `[M, P]`.
    """
    if not degree or is_transformed() or is_recorded(vectors) or weight.requires_grad:
        return torch.cat(_recursion(vectors, weight, degree))
    if not needs_derivative(vectors):
        return _without_derivative(vectors, weight, degree)
    found: Tensor = _UnitFeatures.apply(vectors, weight, degree)
    return found


def _recursion(vectors: Tensor, weight: Tensor, degree: int) -> list[Tensor]:
    """The harmonics of each degree."""
    found = [weight, weight * vectors][: degree + 1]
    for map in constant(_steps, vectors, vectors.shape[0], degree):
        product = found[-1].unsqueeze(1) * vectors
        found.append(map @ product.flatten(0, 1))
    return found


def _without_derivative(vectors: Tensor, weight: Tensor, degree: int) -> Tensor:
    """The harmonics of all degrees from 1 on, each made where it stands, without derivatives."""
    (n, size), maps = vectors.shape, constant(_steps, vectors, vectors.shape[0], degree)
    found = vectors.new_empty(1 + n + sum(len(map) for map in maps), size)
    found[:1] = weight
    lower = torch.mul(vectors, weight, out=found[1 : 1 + n])
    start = 1 + n
    for map in maps:
        product = (lower.unsqueeze(1) * vectors).flatten(0, 1)
        lower = torch.mm(map, product, out=found[start : start + len(map)])
        start += len(map)
    return found


def _steps(n: int, degree: int, like: Tensor) -> list[Tensor]:
    """A of each degree from 2 on, `[M_p, M_p-1 n]`; that of degree 1 changes nothing."""
    tables = [step(n, p) for p in range(2, degree + 1)]
    return [
        torch.as_tensor(each, dtype=like.dtype, device=like.device).flatten(1) for each in tables
    ]


def _slopes(n: int, degree: int, like: Tensor) -> list[Tensor]:
    """The derivatives A p of each degree, with the coordinates in front, `[n M_p-1, M_p]`."""
    return [
        torch.as_tensor(p * step(n, p).transpose(2, 1, 0), dtype=like.dtype, device=like.device)
        .flatten(0, 1)
        .contiguous()
        for p in range(1, degree + 1)
    ]


class _UnitFeatures(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, degree: int) -> Tensor:
        found = _without_derivative(vectors, weight, degree)
        ctx.degree = degree
        ctx.counts = [number_of_harmonics(len(vectors), p) for p in range(degree + 1)]
        ctx.save_for_backward(vectors, weight, found)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None]:
        vectors, weight, found = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative
            vectors = vectors.view_as(vectors)
            again = torch.cat(_recursion(vectors, weight, ctx.degree))
            (of_vectors,) = torch.autograd.grad(again, vectors, grad, create_graph=True)
            return of_vectors, None, None
        n, total = vectors.shape[0], torch.zeros_like(vectors)
        below, above = found.split(ctx.counts), grad.split(ctx.counts)
        slopes = constant(_slopes, vectors, n, ctx.degree)
        for map, of_this, lower in zip(slopes, above[1:], below[:-1], strict=True):
            if len(of_this):  # one dimension has none above degree 1
                by_lower = (map @ of_this).unflatten(0, (n, len(lower)))
                total += by_lower.mul_(lower).sum(1)
        return total, None, None
