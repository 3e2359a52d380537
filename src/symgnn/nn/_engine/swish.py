"""The swish with its first and second derivative in closed form, for training on forces.

Where a derivative is differentiated again, PyTorch computes that of its own swish in some ten
operations, each with a matrix of its own in memory, and differentiates every one of them. Here the
derivative is one operation, and that of it a few in the processor's cache.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.nn._engine.torch_private import apply_function, is_recorded, is_transformed

#: Numbers of a tile.
TILE = 2**17


def swish(rows: Tensor) -> Tensor:
    """`x sigmoid(x)`, `[rows, h] -> [rows, h]`."""
    exact = rows.dtype in (torch.float32, torch.float64)
    if not (rows.is_cpu and exact) or is_transformed() or is_recorded(rows):
        return F.silu(rows)
    found: Tensor = apply_function(_Swish, rows)
    return found


class _Swish(torch.autograd.Function):
    @staticmethod
    def forward(rows: Tensor) -> Tensor:
        return F.silu(rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        found: Tensor = apply_function(_Slope, grad, *ctx.saved_tensors)
        return found


class _Slope(torch.autograd.Function):
    """`g s'(x)`, of g and x, where s is the swish."""

    @staticmethod
    def forward(grad: Tensor, rows: Tensor) -> Tensor:
        return torch.ops.aten.silu_backward(grad, rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, again: Tensor) -> tuple[Tensor | None, Tensor | None]:
        grad, rows = ctx.saved_tensors
        of_grad, of_rows = ctx.needs_input_grad
        return (
            apply_function(_Slope, again, rows) if of_grad else None,
            _bend(again, grad, rows) if of_rows else None,
        )


def _bend(again: Tensor, grad: Tensor, rows: Tensor) -> Tensor:
    """`u g s''(x)`, where `s'' = p (1 - p) (2 + x (1 - 2 p))` and p is the sigmoid."""
    if torch.is_grad_enabled():  # for third derivatives
        p = torch.sigmoid(rows)
        return again * grad * p * (1 - p) * (2 + rows * (1 - 2 * p))
    found = torch.empty_like(rows)
    size = max(TILE // max(rows.shape[-1], 1), 1)
    for start in range(0, len(rows), size):
        tile = slice(start, start + size)
        p = torch.sigmoid(rows[tile])
        here = torch.mul(p, -2, out=found[tile])
        here.add_(1).mul_(rows[tile]).add_(2).mul_(p).mul_(p.neg_().add_(1))
        here.mul_(again[tile]).mul_(grad[tile])
    return found
