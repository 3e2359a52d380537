"""Gather and sum: the two movements of rows between domains.

Both are products with a matrix of zeros and ones (:class:`symgnn.graphs.Movement`), computed by one
`index_select` or `embedding_bag`: these write each row once and need no atomic additions, so
results do not depend on the order of threads. The backward pass is the product with the transpose,
computed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.graphs import Topology
from symgnn.graphs.movement import Movement
from symgnn.nn._engine.policy import policy
from symgnn.nn._engine.torch_private import (
    apply_function,
    is_exporting,
    left_to_torch,
    transforms,
)

#: Fewer columns than this make a product whose result has them as rows faster.
NARROW = 16
#: A value `[rows, w]` and the map `[h, w]` that is applied to it.
Product = tuple[Tensor, Tensor]


def move(rows: Tensor, movement: Movement) -> Tensor:
    """`M rows`, `[R, h] -> [L, h]`."""
    if not torch.compiler.is_compiling():
        return apply_function(_Assemble, rows, *movement)
    if not is_exporting() and not transforms():
        return _move(rows, *movement)
    index, offsets = movement[:2]  # in operations that every compiler and every transform knows
    if movement.is_lift:
        return rows.index_select(0, index)
    out = rows.new_zeros(offsets.shape[0] - 1, rows.shape[-1])
    if movement.T.is_lift:
        return out.index_add(0, movement.back_reads, rows)
    row = torch.arange(offsets.shape[0] - 1, device=index.device)
    row = torch.repeat_interleave(row, offsets.diff(), output_size=index.shape[0])
    return out.index_add(0, row, rows.index_select(0, index))


def few(like: Tensor, rows: int) -> bool:
    """Whether so many rows, as wide as those of `like`, take no longer than the start of an
    operation; not where torch.func, the compiler or autocast are at work, for which movements are
    made.
    """
    return (
        not torch.compiler.is_compiling()
        and rows * like.shape[-1] <= policy().few
        and not torch.is_autocast_enabled(like.device.type)
        and not transforms()
    )


def kept(topology: Topology, key: Any, make: Callable[[], Tensor]) -> Tensor:
    """Something that depends on the topology alone, made once and kept with it."""
    if left_to_torch()[0]:
        return make()
    known: dict[Any, Tensor] = topology.__dict__.setdefault("_kept", {})
    if key not in known:
        with torch.inference_mode(False):  # it may be saved for a backward pass later on
            known[key] = make()
    return known[key]


def angle_rays(topology: Topology) -> Tensor:
    """The first and the second ray of each angle `[2, A]`, made once and kept."""
    return kept(topology, "angle rays", lambda: topology.angle_rays)


def total(rows: Tensor, index: Tensor, lift: Movement) -> Tensor:
    """The sum of the rows of equal `index [L]`, by which `lift` reads, `[L, h] -> [R, h]`."""
    if few(rows, rows.shape[0]):
        return rows.new_zeros(lift.size, rows.shape[-1]).index_add(0, index, rows)
    return move(rows, lift.T)


@torch.library.custom_op("symgnn::move", mutates_args=())
def _move(
    rows: Tensor, reads: Tensor, offsets: Tensor, back_reads: Tensor, back_offsets: Tensor
) -> Tensor:
    """:func:`move` as one operation of a compiled graph: the compiler would take the sums apart
    into additions, which are slower.
    """
    return bag(rows, Movement(reads, offsets, back_reads, back_offsets))


@_move.register_fake
def _(rows: Tensor, reads: Tensor, offsets: Tensor, *_: Tensor) -> Tensor:
    lift = offsets.shape[0] == 0
    return rows.new_empty(reads.shape[0] if lift else offsets.shape[0] - 1, rows.shape[1])


def _keep_movement(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:])


def _move_back(ctx: Any, grad: Tensor) -> tuple:
    return _move(grad, *Movement(*ctx.saved_tensors).T), None, None, None, None


_move.register_autograd(_move_back, setup_context=_keep_movement)


def assemble(rows: Tensor, movement: Movement, products: Sequence[Product]) -> Tensor:
    """`M rows + sum_k value_k map_k^T`, `[L, h]`: what an update of L things starts with.

    The products are added in place, one pass over the L rows each.
    """
    if torch.is_autocast_enabled(rows.device.type) or torch.compiler.is_compiling():
        hidden = move(rows, movement)
        for value, weight in products:
            hidden = hidden + linear(value, weight)
        return hidden
    flat = [part for value, weight in products for part in (value.to(weight.dtype), weight)]
    return apply_function(_Assemble, rows, *movement, *flat)


def linear(rows: Tensor, weight: Tensor) -> Tensor:
    """A linear map; of a single number as a product, which autocast leaves in full precision."""
    if rows.dtype != weight.dtype and not torch.is_autocast_enabled(rows.device.type):
        rows = rows.to(weight.dtype)
    if weight.shape[1] == 1:
        return rows * weight[:, 0]
    if weight.shape[1] < NARROW and not torch.is_autocast_enabled(rows.device.type):
        return rows @ _transposed(weight)
    return F.linear(rows, weight)


def plus_linear(added: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
    """`added + linear(rows, weight)`, in one pass where that changes nothing but the time."""
    if torch.is_autocast_enabled(rows.device.type) or weight.shape[1] == 1:
        return added + linear(rows, weight)
    return torch.addmm(added, rows.to(weight.dtype), _transposed(weight))


def _transposed(weight: Tensor) -> Tensor:
    """`[h, w] -> [w, h]`, such that the derivative by a narrow weight is a fast product.

    PyTorch computes that derivative in the order in which the transpose lies in memory. Where w is
    small, a product that gives `[w, h]` takes a fifth of the time of one that gives `[h, w]`.
    """
    return weight.mT.contiguous() if weight.shape[1] < NARROW else weight.mT


def bag(rows: Tensor, movement: Movement) -> Tensor:
    """:func:`move` without derivatives, `[..., R, h] -> [..., L, h]`."""
    index, offsets = movement[:2]
    if movement.is_lift:
        return rows.index_select(-2, index)
    if rows.dim() == 2:
        if not index.shape[0]:
            return rows.new_zeros(offsets.shape[0] - 1, rows.shape[1])
        # F.embedding_bag in mode "sum" with include_last_offset, without its checks
        return torch.embedding_bag(rows, index, offsets, False, 0, False, None, True)[0]
    stack = rows.flatten(0, -3)
    copies = torch.arange(len(stack), device=index.device, dtype=index.dtype).unsqueeze(1)
    starts = offsets[:-1] + copies * len(index)
    repeated = Movement(
        (index + copies * rows.shape[-2]).flatten(),
        torch.cat([starts.flatten(), starts.new_full((1,), len(index) * len(stack))]),
        *movement.T[:2],
    )
    # not -1 for the rows: it is ambiguous where the stack or the graph is empty
    shape = (*rows.shape[:-2], len(offsets) - 1, rows.shape[-1])
    return bag(stack.flatten(0, 1), repeated).view(shape)


def in_front(value: Tensor, dim: int | None, size: int) -> Tensor:
    """The batch dimension of vmap as the first one."""
    return value.expand(size, *value.shape) if dim is None else value.movedim(dim, 0)


def assembled(rows: Tensor, movement: Movement, products: Sequence[Tensor]) -> Tensor:
    """:func:`assemble` without derivatives; `products` are value, map, value, map, ..."""
    hidden = bag(rows, movement)
    for value, weight in zip(products[::2], products[1::2], strict=True):
        if hidden.dim() == 2:
            hidden.addmm_(value, weight.mT)
        elif hidden.dim() == 3:
            hidden.baddbmm_(value, weight.mT)
        else:
            hidden += value @ weight.mT
    return hidden


class _Assemble(torch.autograd.Function):
    @staticmethod
    def forward(rows: Tensor, *rest: Tensor) -> Tensor:
        return assembled(rows, Movement(*rest[:4]), rest[4:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        saved = ctx.saved_tensors
        movement, products = Movement(*saved[:4]), saved[4:]
        grads: list[Tensor | None] = [None] * (5 + len(products))
        if ctx.needs_input_grad[0]:
            grads[0] = move(grad, movement.T)
        for k in range(0, len(products), 2):
            value, weight = products[k], products[k + 1]
            if ctx.needs_input_grad[5 + k]:
                grads[5 + k] = grad @ weight
            if ctx.needs_input_grad[6 + k]:
                narrow = value.shape[-1] < NARROW
                grads[6 + k] = (value.mT @ grad).mT if narrow else grad.mT @ value
        return tuple(grads)

    @staticmethod
    def jvp(ctx: Any, rows: Tensor | None, *rest: Tensor | None) -> Tensor:
        saved = ctx.saved_tensors
        parts = [] if rows is None else [move(rows, Movement(*saved[:4]))]
        for k in range(4, len(saved), 2):
            value, weight = rest[k : k + 2]
            parts += [] if value is None else [value @ saved[k + 1].mT]
            parts += [] if weight is None else [saved[k] @ weight.mT]
        return torch.stack(parts).sum(0)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, rows: Tensor, *rest: Tensor) -> tuple[Tensor, int]:
        fronted = [
            in_front(value, dim, info.batch_size)
            for value, dim in zip(rest[4:], in_dims[5:], strict=True)
        ]
        rows = in_front(rows, in_dims[0], info.batch_size)
        return _Assemble.apply(rows, *rest[:4], *fronted), 0
