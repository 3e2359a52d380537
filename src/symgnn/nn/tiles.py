"""An angle update in tiles: pieces of the angles that stay in the processor's cache.

With many angles, moving their hidden numbers through memory takes longer than computing them. So
a tile goes through the whole update before the next one begins, and none of its hidden numbers is
kept: the backward pass computes them again, tile by tile.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.nn.movements import Product, assemble, in_front, move
from symgnn.topology import Part, Topology

#: How many hidden numbers a tile has, about: 1 MiB in single precision.
TILE = 2**18
#: From how many hidden numbers on tiles are faster, though they compute them twice.
WORTH_TILES = 2**21


def worth_tiles(rays: Tensor, angles: int) -> bool:
    """Whether an update with this many angles, which reads `rays [R, h]`, is better done so."""
    return angles * rays.shape[-1] * _Copies.apply(rays).shape[0] > WORTH_TILES


def tiled(
    topology: Topology,
    two: bool,
    rays: Tensor,
    products: Sequence[Product],
    last: nn.Linear | None,
) -> tuple[Tensor | None, Tensor]:
    """`s = swish(M rays + sum_k value_k map_k^T)` on the angles, and what is wanted of it:

    `last` of it `[A, o]`, or None without, and its sum over the angles of each first ray `[R, h]`.
    `M` lifts the rays `[R, h]` to the angles that they begin; with `two`, the rays are `[2 R, h]`
    and ray i adds row 2 i where it comes first and row 2 i + 1 where it comes second.
    """
    flat = [part for value, weight in products for part in (value.to(weight.dtype), weight)]
    weight, bias = (None, None) if last is None else (last.weight, last.bias)
    parts = partial(topology.parts, max(TILE // rays.shape[-1], 1))
    return _Tiled.apply(parts, two, rays, weight, bias, *flat)


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


#: The tiles. A function, so that torch.func does not look for tensors in it.
_Parts: TypeAlias = Callable[[], Iterator[Part]]
#: For each result, the matrices that it is made of, one above the other; none where it is None.
_Pieces: TypeAlias = Sequence[Sequence[Tensor]]


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(parts: _Parts, two: bool, *tensors: Tensor | None) -> tuple:
        return _each(_forward, parts, two, *tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.parts, ctx.two = inputs[:2]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[2:])
        ctx.save_for_forward(*inputs[2:])

    @staticmethod
    def backward(ctx: Any, of_rows: Tensor | None, of_total: Tensor | None) -> tuple:
        if of_rows is None and of_total is None:
            return (None,) * len(ctx.needs_input_grad)
        backward = partial(_backward, ctx.needs_input_grad[2:])
        given = (of_rows, of_total, *ctx.saved_tensors)
        return None, None, *_each(backward, ctx.parts, ctx.two, *given)

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, *tangents: Tensor | None) -> tuple:
        return _each(_tangent, ctx.parts, ctx.two, *ctx.saved_tensors, *tangents)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, parts: _Parts, two: bool, *tensors: Any) -> tuple:
        fronted = [
            None if value is None else in_front(value, dim, info.batch_size)
            for value, dim in zip(tensors, in_dims[2:], strict=True)
        ]
        out = _Tiled.apply(parts, two, *fronted)
        return out, tuple(None if value is None else 0 for value in out)


def _each(function: Callable[..., _Pieces], parts: _Parts, two: bool, *given: Any) -> tuple:
    """The results of a function of matrices, for each of those that vmap has stacked in `given`.

    It gives the pieces of each result, or None, and they are laid end to end once.
    """
    most = max(given, key=lambda value: 0 if value is None else value.dim())
    shape = most.shape[:-2]
    pieces: list[_Pieces] = []
    for place in itertools.product(*map(range, shape)):
        pieces.append(function(parts, two, *(v if v is None else v[place] for v in given)))
    return tuple(_stacked(shape, parts) for parts in zip(*pieces, strict=True))


def _stacked(shape: torch.Size, parts: Sequence[Sequence[Tensor]]) -> Tensor | None:
    pieces = [piece for of_member in parts for piece in of_member]
    return torch.cat(pieces).view(*shape, -1, *pieces[0].shape[1:]) if pieces else None


def _hidden(part: Part, two: bool, rays: Tensor, products: Sequence[Tensor]) -> Tensor:
    """Before the swish, `[angles of the part, h]`."""
    values, weights = [value[part.cut.angles] for value in products[::2]], products[1::2]
    movement = part.pairs.both if two else part.pairs.near
    return assemble(_of(part, two, rays), movement, list(zip(values, weights, strict=True)))


def _of(part: Part, two: bool, rays: Tensor) -> Tensor:
    """The rays of a part."""
    start, stop = part.cut.rays.start, part.cut.rays.stop
    return rays[2 * start : 2 * stop] if two else rays[start:stop]


def _forward(
    parts: _Parts,
    two: bool,
    rays: Tensor,
    last: Tensor | None,
    bias: Tensor | None,
    *products: Tensor,
) -> _Pieces:
    rows, total = [], []
    for part in parts():
        swish = F.silu(_hidden(part, two, rays, products))
        total.append(move(swish, part.pairs.near.T))
        if last is not None:
            rows.append(F.linear(swish, last, bias))
    return rows, total


def _backward(
    needed: Sequence[bool],
    parts: _Parts,
    two: bool,
    of_rows: Tensor | None,
    of_total: Tensor | None,
    rays: Tensor,
    last: Tensor | None,
    bias: Tensor | None,
    *products: Tensor,
) -> _Pieces:
    """The gradients of what is `needed`, of the tensors from `rays` on."""
    pieces: list[list[Tensor]] = [[] for _ in needed]  # one for each tile
    one = rays.new_ones(())
    for part in parts():
        angles, pairs = part.cut.angles, part.pairs
        hidden = _hidden(part, two, rays, products)
        of_swish = None if of_total is None else move(of_total[part.cut.rays], pairs.near)
        if of_rows is None or last is None:
            of_hidden = _through_swish(of_swish, hidden)
        else:
            sigmoid = torch.sigmoid(hidden)
            swish = hidden * sigmoid
            through = of_rows[angles] @ last
            of_swish = through if of_swish is None else of_swish + through
            of_hidden = of_swish * torch.lerp(swish, one, sigmoid)
            pieces[1].append(of_rows[angles].mT @ swish)
        pieces[0].append(move(of_hidden, (pairs.both if two else pairs.near).T))
        for k in range(0, len(products), 2):
            if needed[3 + k]:
                pieces[3 + k].append(of_hidden @ products[k + 1])
            if needed[4 + k]:
                pieces[4 + k].append(of_hidden.mT @ products[k][angles])
    if needed[2] and of_rows is not None:
        pieces[2].append(of_rows.sum(0))
    sums = (1, 2, *range(4, len(needed), 2))
    for k in sums:
        pieces[k] = [torch.stack(pieces[k]).sum(0)] if len(pieces[k]) > 1 else pieces[k]
    return pieces


def _through_swish(grad: Tensor | None, hidden: Tensor) -> Tensor:
    """`grad` times the derivative of the swish; the fast way has no derivative itself."""
    assert grad is not None
    if not torch.is_grad_enabled():
        return torch.ops.aten.silu_backward(grad, hidden)
    sigmoid = torch.sigmoid(hidden)
    return grad * sigmoid * (1 + hidden * (1 - sigmoid))


def _tangent(
    parts: _Parts,
    two: bool,
    rays: Tensor,
    last: Tensor | None,
    bias: Tensor | None,
    *rest: Any,
) -> _Pieces:
    """The derivative of both results; `rest` are the products, then the tangents of all."""
    count = (len(rest) - 3) // 2
    products, (of_rays, of_last, of_bias), of_products = (
        rest[:count],
        rest[count : count + 3],
        rest[count + 3 :],
    )
    rows, total = [], []
    for part in parts():
        angles, movement = part.cut.angles, part.pairs.both if two else part.pairs.near
        hidden = _hidden(part, two, rays, products)
        change = torch.zeros_like(hidden)
        if of_rays is not None:
            change = change + move(_of(part, two, of_rays), movement)
        for k in range(0, count, 2):
            if of_products[k] is not None:
                change = change + of_products[k][angles] @ products[k + 1].mT
            if of_products[k + 1] is not None:
                change = change + products[k][angles] @ of_products[k + 1].mT
        of_swish = _through_swish(change, hidden)
        total.append(move(of_swish, part.pairs.near.T))
        if last is not None:
            row = of_swish @ last.mT
            row = row if of_last is None else row + F.silu(hidden) @ of_last.mT
            rows.append(row if of_bias is None else row + of_bias)
    return rows, total
