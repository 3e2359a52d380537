"""Reading a large table a few rows at a time, in many small graphs of operations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from symgnn.nn.movements import recorded


class Portions:
    """Rows of a table `[R, h]`, read in portions.

    Each portion that is read by itself would have a gradient as large as the table. Here they are
    added where they belong in one that all portions share, and the table gets it once.
    """

    def __init__(self, table: Tensor) -> None:
        self.table = table
        self.shares = table.requires_grad and torch.is_grad_enabled() and not recorded(table)
        self.gradient: Tensor | None = None
        self.handle = _Whole.apply(table, self) if self.shares else table

    def rows(self, index: Tensor) -> Tensor:
        """The rows `[K, h]` of the numbers `index [K]`."""
        if not self.shares:
            return self.table.index_select(0, index)
        return _Portion.apply(self.handle, index, self)


class _Whole(torch.autograd.Function):
    """Something to depend on: its backward pass comes after those of all portions."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, portions: Portions) -> Tensor:
        ctx.portions = portions
        return table.new_empty(0)

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, None]:
        gradient, ctx.portions.gradient = ctx.portions.gradient, None
        return gradient, None


class _Portion(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, handle: Tensor, index: Tensor, portions: Portions) -> Tensor:
        ctx.portions = portions
        ctx.save_for_backward(handle, index)
        return portions.table.detach().index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        handle, index = ctx.saved_tensors
        portions = ctx.portions
        if portions.gradient is None:
            portions.gradient = torch.zeros_like(portions.table)
        if torch.is_grad_enabled():  # for second derivatives
            portions.gradient = portions.gradient.index_add(0, index, grad)
        else:
            portions.gradient.index_add_(0, index, grad)
        return torch.zeros_like(handle), None, None
