"""What is computed of each tile of an angle update: values, gradients and tangents.

Matrices alone: :mod:`symgnn.nn._engine.tiles` calls these functions for each of the matrices that
`torch.vmap` has stacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.graphs import Movement, Part, Topology
from symgnn.nn._engine.rows import assemble, assembled, bag, move
from symgnn.nn._engine.sparse_dropout import mask_of, zeros_within


@dataclass(frozen=True)
class Tiles:
    """Where the angles are, for torch.func to pass on untouched."""

    topology: Topology
    two: bool
    size: int
    keep: bool
    scale: float  # of what dropout leaves

    def __iter__(self) -> Iterator[tuple[slice, slice, slice, Movement, Movement]]:
        """Of each tile: angles, rays, rows that rays add, how these are lifted, first rays."""
        for part in self.topology.tiles(self.size):
            rays = part.cut.rays
            rows = slice(2 * rays.start, 2 * rays.stop) if self.two else rays
            yield part.cut.angles, rays, rows, self.lift(part), part.pairs.first

    def lift(self, part: Part) -> Movement:
        """From what rays add to the angles of a part."""
        return part.pairs.both if self.two else part.pairs.first

    def drop(self, values: Tensor, zeros: Tensor | None, angles: slice) -> Tensor:
        """Dropout of the values of a tile, in place."""
        if zeros is not None:
            places = _places(zeros, values, angles)
            values.mul_(self.scale).view(-1).index_fill_(0, places, 0.0)
        return values

    def add_products(
        self, to: Tensor, rows: Tensor, values: Tensor, zeros: Tensor | None, angles: slice
    ) -> None:
        """Add `rows^T values`, of the values of a tile after dropout."""
        if zeros is None:
            to.addmm_(rows.mT, values)
            return
        places, flat = _places(zeros, values, angles), values.view(-1)
        dropped = flat[places]
        flat.index_fill_(0, places, 0.0)
        to.addmm_(rows.mT, values, alpha=self.scale)
        flat.index_copy_(0, places, dropped)

    @property
    def whole(self) -> tuple[Movement, Movement]:
        """How all that rays add is lifted, and all first rays."""
        (part,) = self.topology.parts()
        return self.lift(part), part.pairs.first


def forward(
    tiles: Tiles,
    rays: Tensor,
    last: Tensor | None,
    bias: Tensor | None,
    zeros: Tensor | None,
    *products: Tensor,
) -> tuple[Tensor | None, Tensor]:
    topology = tiles.topology
    width = rays.shape[1] if last is None else last.shape[0]
    rows = rays.new_empty(topology.num_angles, width) if tiles.keep else None
    total = rays.new_empty(topology.num_rays, rays.shape[1])
    for angles, first, here, lift, of_first in tiles:
        swish = F.silu(_hidden(angles, rays[here], lift, products), inplace=True)
        swish = tiles.drop(swish, zeros, angles)
        total[first] = bag(swish, of_first.T)
        if rows is not None:
            if last is None:
                rows[angles] = swish
            elif bias is None:
                torch.mm(swish, last.mT, out=rows[angles])
            else:
                torch.addmm(bias, swish, last.mT, out=rows[angles])
    return rows, total


def _hidden(angles: slice, rays: Tensor, lift: Movement, products: Sequence[Tensor]) -> Tensor:
    """Before the swish, on the angles of a tile."""
    here = [value[angles] if k % 2 == 0 else value for k, value in enumerate(products)]
    return assembled(rays, lift, here)


def backward(
    tiles: Tiles,
    needed: Sequence[bool],
    of_rows: Tensor | None,
    of_total: Tensor | None,
    rays: Tensor,
    last: Tensor | None,
    bias: Tensor | None,
    zeros: Tensor | None,
    *products: Tensor,
) -> tuple[Tensor | None, ...]:
    """The gradients of `rays`, `last`, `bias`, the zeros (none) and the products, if needed."""
    of_rays = torch.empty_like(rays)
    of_last = None if last is None or of_rows is None else torch.zeros_like(last)
    of_products = [
        None if not need else torch.zeros_like(p) if k % 2 else torch.empty_like(p)
        for k, (p, need) in enumerate(zip(products, needed[4:], strict=True))
    ]
    one = rays.new_ones(())
    for angles, first, here, lift, of_first in tiles:
        hidden = _hidden(angles, rays[here], lift, products)
        if of_total is None:
            grad = torch.zeros_like(hidden)
        else:
            grad = of_total[first].index_select(0, of_first.reads)
        if of_rows is not None and last is None:
            grad += of_rows[angles]
        if of_last is None or of_rows is None or last is None:
            grad = torch.ops.aten.silu_backward(tiles.drop(grad, zeros, angles), hidden)
        else:
            sigmoid = torch.sigmoid(hidden)
            swish = hidden.mul_(sigmoid)
            tiles.add_products(of_last, of_rows[angles], swish, zeros, angles)
            of_swish = tiles.drop(grad.addmm_(of_rows[angles], last), zeros, angles)
            grad = of_swish.mul_(swish.lerp_(one, sigmoid))
        of_rays[here] = bag(grad, lift.T)
        for k in range(0, len(products), 2):
            of_value, of_weight = of_products[k], of_products[k + 1]
            if of_value is not None:
                torch.mm(grad, products[k + 1], out=of_value[angles])
            if of_weight is not None:
                of_weight.addmm_(grad.mT, products[k][angles])
    of_bias = None if bias is None or of_rows is None else of_rows.sum(0)
    return of_rays, of_last, of_bias, None, *of_products


def backward_with_graph(
    tiles: Tiles,
    needed: Sequence[bool],
    of_rows: Tensor | None,
    of_total: Tensor | None,
    rays: Tensor,
    last: Tensor | None,
    bias: Tensor | None,
    zeros: Tensor | None,
    *products: Tensor,
) -> tuple[Tensor | None, ...]:
    """As :func:`backward`, all angles at once."""
    lift, of_first = tiles.whole
    hidden = assemble(rays, lift, list(zip(products[::2], products[1::2], strict=True)))
    grad = torch.zeros_like(hidden) if of_total is None else move(of_total, of_first)
    of_last = of_bias = None
    mask = None if zeros is None else mask_of(zeros, hidden, tiles.scale)
    if of_rows is not None and last is None:
        grad = grad + of_rows
    elif of_rows is not None and last is not None:
        grad = grad + of_rows @ last
        of_last = of_rows.mT @ _masked(F.silu(hidden), mask)
        of_bias = None if bias is None else of_rows.sum(0)
    grad = _masked(grad, mask) * _slope(hidden)
    of_products: list[Tensor | None] = []
    for k in range(0, len(products), 2):
        of_products.append(grad @ products[k + 1] if needed[4 + k] else None)
        of_products.append(grad.mT @ products[k] if needed[5 + k] else None)
    return move(grad, lift.T), of_last, of_bias, None, *of_products


def tangent(
    tiles: Tiles,
    rays: Tensor,
    last: Tensor | None,
    bias: Tensor | None,
    zeros: Tensor | None,
    *rest: Any,
) -> tuple[Tensor | None, Tensor]:
    """The derivative of both results; `rest` are the products, then the tangents of all."""
    count = (len(rest) - 4) // 2
    products, (of_rays, of_last, of_bias, _), of_products = (
        rest[:count],
        rest[count : count + 4],
        rest[count + 4 :],
    )
    lift, of_first = tiles.whole
    hidden = assemble(rays, lift, list(zip(products[::2], products[1::2], strict=True)))
    change = torch.zeros_like(hidden) if of_rays is None else move(of_rays, lift)
    for k in range(0, count, 2):
        if of_products[k] is not None:
            change = change + of_products[k] @ products[k + 1].mT
        if of_products[k + 1] is not None:
            change = change + products[k] @ of_products[k + 1].mT
    mask = None if zeros is None else mask_of(zeros, hidden, tiles.scale)
    change = _masked(change * _slope(hidden), mask)
    total = move(change, of_first.T)
    if last is None:
        return change if tiles.keep else None, total
    rows = change @ last.mT
    rows = rows if of_last is None else rows + _masked(F.silu(hidden), mask) @ of_last.mT
    return rows if of_bias is None else rows + of_bias, total


def _places(zeros: Tensor, values: Tensor, angles: slice) -> Tensor:
    """The zeros of dropout among the values of a tile, numbered from its first."""
    return zeros_within(zeros, values.numel(), angles.start * values.shape[1])


def _masked(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else values * mask


def _slope(hidden: Tensor) -> Tensor:
    """The derivative of the swish."""
    sigmoid = torch.sigmoid(hidden)
    return sigmoid * (1 + hidden * (1 - sigmoid))
