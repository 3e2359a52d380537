"""The derivative by a value that several layers read, added up by the products themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from symgnn.nn._engine.workspaces import Workspace


class GradientSink:
    """The derivative by a value, added up by all that read it."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace, self.name = workspace, name
        self.rows: Tensor | None = None
        self._begun = False

    def start(self, rows: int, width: int, like: Tensor) -> GradientSink:
        """Before a layer adds its tiles."""
        self._begun = self.rows is not None
        if self.rows is None:
            self.rows = self.workspace.take(self.name, rows, width, like)
        return self

    def add(self, grad: Tensor, map: Tensor, tile: slice) -> None:
        """`grad map` on a tile."""
        assert self.rows is not None
        if self._begun:
            self.rows[tile].addmm_(grad, map)
        else:
            torch.mm(grad, map, out=self.rows[tile])


class Shared(torch.autograd.Function):
    """A value as it is; its derivative is what its sink has."""

    @staticmethod
    def forward(ctx: Any, sink: GradientSink, value: Tensor) -> Tensor:
        ctx.sink = sink
        ctx.set_materialize_grads(False)
        return value.detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor | None) -> tuple:
        found = ctx.sink.rows
        if grad is not None:
            found = grad if found is None else found + grad
        return None, found
