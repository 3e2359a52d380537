"""Computation in parts; nothing of a part is kept for the backward pass.

The backward pass recomputes each part. Gradients are computed only with respect to the tensors
passed to :class:`Chunks` and to shared tensors, so a part must not read any other tensor that
requires a gradient. The parameters of the module are shared from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from symgnn.nn._engine.torch_private import keeps_graph, left_to_torch

#: Computes the part with this number, `[its rows, w]`.
Compute = Callable[[int], Tensor]


class Chunks:
    """A pass through a module with at most `size` edges or angles in memory at once.

    What the graph of operations needs for the backward pass, it has when this is closed.
    """

    def __init__(self, size: int, module: nn.Module) -> None:
        self.size = size
        self.runner = _Runner(module)
        self.given: list[Tensor] = []
        self.shared: list[Tensor] = []  # each of them, as parts read it
        self.tables: list[SharedRows] = []
        self.results: list[dict[Any, Tensor]] = []  # of parts, wherever they are kept
        #: What is recorded, compiled or transformed by torch.func is left to torch, which cannot
        #: compute again within derivatives of torch.func.
        self.plain, self.keeps = left_to_torch()
        named = list(self.runner.named_parameters())
        self.device = named[0][1].device if named else torch.device("cpu")
        self.parameters = {name: self.share(value) for name, value in named}

    def close(self) -> None:
        """Forget what later parts have read, and results, at the end of a pass.

        Parts hold on to this, and results to the parts they come from: in a circle that goes
        through the graph of operations, which Python cannot see, nothing would ever be freed.
        """
        self.given, self.shared, self.tables = [], [], []
        for found in self.results:
            found.clear()

    def share(self, value: Tensor) -> Tensor:
        """A value as parts may read it: one on which nothing depends but them."""
        if self.plain or not value.requires_grad or not torch.is_grad_enabled():
            return value
        self.given.append(value)
        self.shared.append(value.view_as(value))
        return self.shared[-1]

    def table(self, rows: Tensor) -> SharedRows:
        """Rows `[R, h]` of which each part may read a few."""
        table = SharedRows(len(self.given), self.share(rows))
        self.tables.append(table)
        return table

    def each(self, compute: Compute, places: Sequence[slice], like: Tensor) -> Tensor:
        """The rows of all parts, each at its place; `like [0, w]` if there are no parts."""
        if not places:
            return like
        if not self.plain:
            return _Each.apply(self, compute, places, *self.given)
        one = compute if self.keeps else partial(checkpoint, compute, use_reentrant=False)
        return torch.cat([one(number) for number in range(len(places))])

    def run(self, compute: Compute, number: int) -> Tensor:
        """A part, with the shared parameters."""
        return functional_call(self.runner, self.parameters, (compute, number))


class SharedRows:
    """Rows `[R, h]` that are read a few at a time.

    Whatever is read by itself would have a gradient as large as the table. While it is `adding`,
    they are added where they belong in one that all parts share.
    """

    def __init__(self, number: int, table: Tensor) -> None:
        self.number, self.table = number, table  # among what is shared
        self.adding = False
        self.gradient: Tensor | None = None

    def rows(self, index: Tensor | slice) -> Tensor:
        """Those of some numbers, `[K, h]`."""
        return _Some.apply(self.table, index, self) if self.adding else _read(self.table, index)


@contextmanager
def _adding(tables: Sequence[SharedRows]) -> Iterator[None]:
    """Tables add the gradients of their rows, from nothing."""
    for table in tables:
        table.adding = table.table.requires_grad
    try:
        yield
    finally:
        for table in tables:
            table.adding, table.gradient = False, None


def _read(table: Tensor, index: Tensor | slice) -> Tensor:
    return table[index] if isinstance(index, slice) else table.index_select(0, index)


class _Some(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor | slice, table: SharedRows) -> Tensor:
        ctx.table, ctx.index = table, index
        return _read(rows, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, None]:
        table, index = ctx.table, ctx.index
        if table.gradient is None:
            table.gradient = torch.zeros_like(table.table)
        if isinstance(index, slice):
            table.gradient[index] += grad
        else:
            table.gradient.index_add_(0, index, grad)
        return None, None, None


class _Runner(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, compute: Compute, number: int) -> Tensor:
        return compute(number)


class _Each(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, chunks: Chunks, compute: Compute, places: Sequence[slice], *given: Tensor
    ) -> Tensor:
        ctx.chunks, ctx.compute, ctx.places = chunks, compute, places
        ctx.tables, ctx.again = tuple(chunks.tables), _Again(chunks.device)
        ctx.save_for_backward(*chunks.shared)
        rows = chunks.run(compute, 0)
        # no list of parts, which would lie scattered in memory between what is computed
        result = rows.new_empty(places[-1].stop, rows.shape[1])
        for number, place in enumerate(places):
            result[place] = chunks.run(compute, number) if number else rows
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        twice = torch.is_grad_enabled()
        shared = ctx.saved_tensors
        grads: list[Tensor | None] = [None] * len(shared)
        with ctx.again, torch.enable_grad(), _adding(() if twice else ctx.tables):
            for number, place in enumerate(ctx.places):
                rows = ctx.chunks.run(ctx.compute, number)
                if not rows.requires_grad:
                    continue
                found = torch.autograd.grad(
                    rows, shared, grad[place], create_graph=twice, allow_unused=True
                )
                for k, more in enumerate(found):
                    if more is not None:
                        grads[k] = more if grads[k] is None else grads[k] + more
            for table in ctx.tables:
                if table.gradient is not None:
                    grads[table.number] = table.gradient
        if not keeps_graph():
            ctx.compute = ctx.tables = None  # with what they hold, as saved tensors are
        return None, None, None, *grads


class _Again:
    """The random numbers and the autocast of when it was made, wherever it is entered."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.autocast = torch.is_autocast_enabled(device.type)
        self.kind = torch.get_autocast_dtype(device.type)
        self.devices = [device] if device.type == "cuda" else []
        self.states = torch.get_rng_state(), *map(torch.cuda.get_rng_state, self.devices)

    def __enter__(self) -> None:
        self.stack = ExitStack()
        self.stack.enter_context(torch.random.fork_rng(self.devices))
        torch.set_rng_state(self.states[0])
        for device, state in zip(self.devices, self.states[1:], strict=True):
            torch.cuda.set_rng_state(state, device)
        cast = torch.autocast(self.device.type, self.kind, enabled=self.autocast)
        self.stack.enter_context(cast)

    def __exit__(self, *error: Any) -> None:
        self.stack.close()
