"""Sums over all pairs of rays of each vertex, as one operation with its derivative by hand.

The derivative that autograd finds for :func:`plain_sums` passes over all rays many more times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from symgnn.nn._engine.torch_private import is_transformed

#: Of each group of vertices, their number and their degree with padding.
Sizes = Sequence[tuple[int, int]]


def node_sums(
    factors: Tensor,
    monomial: Tensor,
    power: Tensor,
    weights: Tensor,
    coefficients: Tensor,
    sizes: Sizes,
) -> Tensor:
    """`sum_m w_mc G_mc H_mc - sum_jp q_pc |r_j|^(2p) g_jc h_jc` for each vertex.

    Args:
        factors: g and h of each ray `[P, 2 c]`.
        monomial: F, `[M, P]`.
        power: `|r|^(2p)`, `[degree + 1, P]`.
        weights: w, `[M, c]`.
        coefficients: q, `[degree + 1, c]`.
        sizes: The groups of vertices.

    Returns:
        `[V, c]`.
    """
    given = (factors, monomial, power, weights, coefficients)
    if is_transformed():
        return plain_sums(*given, sizes)
    found: Tensor = _NodeSums.apply(*given, sizes)
    return found


def plain_sums(
    factors: Tensor,
    monomial: Tensor,
    power: Tensor,
    weights: Tensor,
    coefficients: Tensor,
    sizes: Sizes,
) -> Tensor:
    """:func:`node_sums` in operations of PyTorch."""
    parts = []
    for both, of_rays, of_self in groups(factors, monomial, power, sizes):
        pairs = both.unflatten(2, (2, both.shape[2] // 2))
        g, h = torch.bmm(of_rays, both).unflatten(2, pairs.shape[2:]).unbind(2)
        first, second = pairs.unbind(2)
        own = torch.bmm(of_self, first * second)
        parts.append((g * h * weights).sum(1) - (own * coefficients).sum(1))
    return torch.cat(parts)


def groups(
    factors: Tensor, monomial: Tensor, power: Tensor, sizes: Sizes
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The factors `[V, D, w]`, the monomials `[V, M, D]` and the powers of each group."""
    places = [vertices * side for vertices, side in sizes]
    split = zip(
        sizes,
        factors.split(places),  # not by slices, whose backward passes fill all rows
        monomial.split(places, 1),
        power.split(places, 1),
        strict=True,
    )
    return [
        (
            rows.unflatten(0, size),
            of_rays.unflatten(1, size).transpose(0, 1),
            of_self.unflatten(1, size).transpose(0, 1),
        )
        for size, rows, of_rays, of_self in split
    ]


class _NodeSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *tensors, sizes = given
        factors, monomial, power, weights, coefficients = tensors
        c, parts, kept = weights.shape[1], [], []
        for both, of_rays, of_self in groups(factors, monomial, power, sizes):
            moments = torch.bmm(of_rays, both)
            own = torch.bmm(of_self, both[..., :c] * both[..., c:])
            kept += [moments, own]
            found = (moments[..., :c] * moments[..., c:]).mul_(weights).sum(1)
            parts.append(found.sub_((own * coefficients).sum(1)))
        ctx.sizes = sizes
        ctx.save_for_backward(*tensors, *kept)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        saved: tuple[Tensor, ...] = ctx.saved_tensors
        factors, monomial, power, weights, coefficients, *kept = saved
        given = (factors, monomial, power, weights, coefficients)
        wanted = [k for k in range(5) if ctx.needs_input_grad[k]]
        if torch.is_grad_enabled():  # for a second derivative
            with torch.enable_grad():
                # as tensors of their own: factors of a later layer depend on the same monomials
                given = tuple(each.view_as(each) for each in given)  # type: ignore[assignment]
                out = plain_sums(*given, ctx.sizes)
            found = torch.autograd.grad(out, [given[k] for k in wanted], grad, create_graph=True)
            grads: list[Tensor | None] = [None] * 6
            for k, each in zip(wanted, found, strict=True):
                grads[k] = each
            return tuple(grads)
        return (*_derivatives(given, kept, ctx.sizes, grad, wanted), None)


def _derivatives(
    given: Sequence[Tensor], kept: Sequence[Tensor], sizes: Sizes, grad: Tensor, wanted: list[int]
) -> list[Tensor | None]:
    """The derivatives of the sums by those of the five inputs that are wanted."""
    factors, monomial, power, weights, coefficients = given
    c = weights.shape[1]
    by_factor, by_monomial, by_power = map(torch.empty_like, given[:3])
    by_weight, by_coefficient = torch.zeros_like(weights), torch.zeros_like(coefficients)
    targets = groups(by_factor, by_monomial, by_power, sizes)
    for k, (both, of_rays, of_self) in enumerate(groups(factors, monomial, power, sizes)):
        moments, own = kept[2 * k : 2 * k + 2]
        start = sum(vertices for vertices, _ in sizes[:k])
        out = grad[start : start + sizes[k][0]].unsqueeze(1)
        g, h = moments[..., :c], moments[..., c:]
        by_weight += (g * h).mul_(out).sum(0)
        by_coefficient -= (own * out).sum(0)
        change, moved = out * weights, torch.empty_like(moments)
        torch.mul(change, h, out=moved[..., :c])
        torch.mul(change, g, out=moved[..., c:])
        to_both, to_rays, to_self = targets[k]
        own_change = out * coefficients
        if 0 in wanted:
            torch.bmm(of_rays.mT, moved, out=to_both)
            change = torch.bmm(of_self.mT, own_change)
            to_both[..., :c].addcmul_(change, both[..., c:], value=-1)
            to_both[..., c:].addcmul_(change, both[..., :c], value=-1)
        if 1 in wanted:
            to_rays.copy_(torch.bmm(moved, both.mT))
        if 2 in wanted:
            product = both[..., :c] * both[..., c:]
            to_self.copy_(torch.bmm(own_change, product.mT).neg_())
    found = (by_factor, by_monomial, by_power, by_weight, by_coefficient)
    return [each if k in wanted else None for k, each in enumerate(found)]
