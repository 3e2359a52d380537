"""An angle update in tiles: pieces of the angles that fit into the processor's cache.

With many angles, allocating memory for their hidden values takes longer than computing them. So
each tile goes through the whole update before the next one, and its hidden values are not kept: the
backward pass recomputes them, tile by tile. If the process keeps freed memory
(:func:`symgnn.train.keep_memory`), recomputing takes longer than it saves, and tiles are used only
for sizes at which memory is scarce.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from symgnn.graphs import Topology
from symgnn.nn._engine.policy import policy
from symgnn.nn._engine.rows import Product, in_front
from symgnn.nn._engine.sparse_dropout import drawn_zeros
from symgnn.nn._engine.tile_passes import Tiles, backward, backward_with_graph, forward, tangent
from symgnn.nn._engine.torch_private import apply_function


def worth_tiles(table: Tensor, angles: int, hidden: int) -> bool:
    """Whether an update of this many angles and hidden numbers, which reads `table [R, w]`, is
    better done so.
    """
    return angles * hidden * apply_function(_Copies, table).shape[0] > policy().worth_tiles


def tiled(
    topology: Topology,
    two: bool,
    rays: Tensor,
    products: Sequence[Product],
    last: nn.Linear | None,
    keep: bool,
    rate: float = 0.0,
) -> tuple[Tensor | None, Tensor]:
    """`s = swish(M rays + sum_k value_k map_k^T)` on the angles, and what is wanted of it:

    With `keep`, `last` of it `[A, o]`, or itself without `last`, else None; and its sum over the
    angles of each first ray `[R, h]`.
    `M` lifts the rays `[R, h]` to the angles that they begin; with `two`, the rays are `[2 R, h]`
    and ray i adds row 2 i where it comes first and row 2 i + 1 where it comes second. With a
    `rate`, dropout follows the swish.
    """
    flat = [part for value, weight in products for part in (value.to(weight.dtype), weight)]
    weight, bias = (None, None) if last is None else (last.weight, last.bias)
    width = rays.shape[-1]
    size = max(policy().tile * torch.get_num_threads() // width, 1)
    tiles, zeros = Tiles(topology, two, size, keep, 1 / (1 - rate)), None
    if rate:
        zeros = drawn_zeros(rays, topology.num_angles * width, rate)
    return apply_function(_Tiled, tiles, rays, weight, bias, zeros, *flat)


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(tiles: Tiles, *tensors: Tensor | None) -> tuple:
        return _each(partial(forward, tiles), *tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.tiles, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, of_rows: Tensor | None, of_total: Tensor | None) -> tuple:
        if of_rows is None and of_total is None:
            return (None,) * len(ctx.needs_input_grad)
        # with a graph of its own, for second derivatives, in plain operations
        function = backward_with_graph if torch.is_grad_enabled() else backward
        gradients = partial(function, ctx.tiles, ctx.needs_input_grad[1:])
        return None, *_each(gradients, of_rows, of_total, *ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> tuple:
        return _each(partial(tangent, ctx.tiles), *ctx.saved_tensors, *tangents)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, tiles: Tiles, *tensors: Any) -> tuple:
        fronted = [
            None if value is None else in_front(value, dim, info.batch_size)
            for value, dim in zip(tensors, in_dims[1:], strict=True)
        ]
        out = _Tiled.apply(tiles, *fronted)
        return out, tuple(None if value is None else 0 for value in out)


class _Copies(torch.autograd.Function):
    """As many numbers as vmap computes at once: the size is what counts."""

    @staticmethod
    def forward(rows: Tensor) -> Tensor:
        return rows.new_empty(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def jvp(ctx: Any, rows: Tensor) -> None:
        return None

    @staticmethod
    def vmap(info: Any, in_dims: tuple, rows: Tensor) -> tuple[Tensor, None]:
        return rows.new_empty(info.batch_size * _Copies.apply(rows).shape[0]), None


def _each(function: Callable[..., tuple], *given: Any) -> tuple:
    """A function of matrices, for each of those that vmap has stacked."""
    most = max(given, key=lambda value: 0 if value is None else value.dim())
    shape = most.shape[:-2]
    if not shape:
        return function(*given)
    results = [
        function(*(value if value is None else value[place] for value in given))
        for place in itertools.product(*map(range, shape))
    ]
    return tuple(
        None if parts[0] is None else torch.stack(parts).view(*shape, *parts[0].shape)
        for parts in zip(*results, strict=True)
    )
