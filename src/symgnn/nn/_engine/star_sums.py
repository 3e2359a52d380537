"""The sums of :mod:`symgnn.nn._engine.moment_sums`, in groups of vertices that fit into the cache.

The derivative of a vertex's sum `out_c` by a factor of its rays is the derivative of `out_c` times
a row that does not depend on it,

    Z_j = (sum_m F_jm w_m H_m + o_j h_j,  sum_m F_jm w_m G_m + o_j g_j),

so Z is computed in the forward pass, while the moments G and H are in the cache, and the backward
pass multiplies and sums. Rows of Z have the order of `[g, h]`, that is, with halves exchanged.
Second derivatives are computed by the plain operations.

If directions have length 1 and no input lives on rays, g_j = b_j + a with b of the neighbour and a
of the vertex. Then a need not be added to every ray: a times the sum of F is added to the moments,
and

    sum_j g_j h_j = sum_j b_j b'_j + a' G_0 + a H_0 - d a a'

needs one product per node instead of one per ray, since the first feature is 1.

If g and h are the same (tied factors), rows have one half, and its derivative counts twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from symgnn.nn._engine.moment_sums import (
    Added,
    Geometry,
    Layout,
    Weights,
    derivatives_again,
    named,
    plain_sums,
)
from symgnn.nn._engine.star_tiles import tiles_of
from symgnn.nn._engine.star_work import StarWork, exchanged
from symgnn.nn._engine.torch_private import (
    is_recorded,
    is_transformed,
    keeps_graph,
    needs_derivative,
)


def star_sums(added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The sums over all pairs of rays of each vertex.

    Args:
        added: What vertices, neighbours and rays add to the factors.
        geometry: What depends on the vectors of the rays.
        weights: The coefficients of the polynomials.
        layout: Where everything stands.

    Returns:
        `[V, c]`.
    """
    if is_transformed() or is_recorded(added.by_neighbour):
        return plain_sums(added, geometry, weights, layout)
    if not needs_derivative(*added, *geometry, *weights):
        return _sums_alone(added, geometry, weights, layout)
    found: Tensor = _StarSums.apply(*added, *geometry, *weights, layout)
    return found


def _sums_alone(added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The sums without anything that a derivative needs."""
    work, few = StarWork(added, geometry, weights, layout), layout.few_vertices
    out = weights.few.new_empty(len(added.by_vertex), work.c)
    for tile in tiles_of(layout, added.by_vertex.shape[1], out.dtype):
        work.sums_alone(tile, out[tile.vertices])
    if work.apart and few < len(out):
        equals = torch.empty_like(out[few:])
        work.equals(equals, None)
        out[few:].addcmul_(equals, weights.many[-1])
    return out


class _StarSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        (added, geometry, weights), layout = named(given), given[8]
        work = StarWork(added, geometry, weights, layout)
        (p, c), width = weights.few.shape, added.by_vertex.shape[1]
        vertices, few = len(added.by_vertex), layout.few_vertices
        terms = weights.few.new_empty(vertices, max(p, len(weights.many)), c)
        wanted = any(ctx.needs_input_grad[:3])
        tiles = tiles_of(layout, width, terms.dtype)
        size = layout.stars.rows if wanted else max(len(tile.ray) for tile in tiles)
        rows = terms.new_empty(size, width)
        total = terms.new_empty(vertices, width) if wanted else None
        moments = None
        if ctx.needs_input_grad[4] and few < vertices:
            moments = terms.new_empty(vertices - few, sum(layout.counts), width)
        for tile in tiles:
            into = rows[tile.rows] if wanted else rows[: len(tile.ray)]
            both = work.many_rays(tile, into, terms, wanted, moments)
            if total is not None:
                torch.sum(both, 1, out=total[tile.vertices])
        if work.apart and few < vertices:
            work.equals(terms[few:, p], None if total is None else total[few:])
        ctx.layout = layout
        ctx.save_for_backward(*given[:8], terms, rows if wanted else None, total, moments)
        parts = []
        if few:
            parts.append((terms[:few, :p] * weights.few).sum(1))
        if few < vertices:
            parts.append((terms[few:] * weights.many).sum(1))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        *given, terms, rows, total, moments = ctx.saved_tensors
        (added, geometry, weights), layout = named(given), ctx.layout
        wanted = ctx.needs_input_grad
        if torch.is_grad_enabled():  # for a second derivative
            return (*derivatives_again(plain_sums, given, layout, grad, wanted), None)
        found: list[Tensor | None] = [None] * 8
        grad = grad.contiguous()
        if rows is not None:
            moved = torch.empty_like(rows) if keeps_graph() else rows
            found[:3] = _by_factors(grad, rows, total, added, weights, layout, moved)
        if any(wanted[3:6]):
            work = StarWork(added, geometry, weights, layout)
            found[3:6] = work.by_geometry(grad, moments, wanted[3:6])
        few, p = layout.few_vertices, weights.few.shape[0]
        if wanted[6]:
            found[6] = (terms[:few, :p] * grad[:few].unsqueeze(1)).sum(0)
        if wanted[7]:
            found[7] = (terms[few:] * grad[few:].unsqueeze(1)).sum(0)
        return (*(each if want else None for each, want in zip(found, wanted, strict=False)), None)


def _by_factors(
    grad: Tensor,
    rows: Tensor,
    total: Tensor,
    added: Added,
    weights: Weights,
    layout: Layout,
    moved: Tensor,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The derivatives by what vertices, neighbours and rays add; `moved` is filled, and may be
    `rows`.
    """
    stars, c, width = layout.stars, grad.shape[1], rows.shape[1]
    twice = torch.cat([grad, grad], 1) if width > c else 2 * grad
    row = vertex = 0
    for count, side in stars.sizes:
        here, out = slice(row, row + count * side), twice[vertex : vertex + count].unsqueeze(1)
        shape = (count, side, width)
        torch.mul(rows[here].view(shape), out, out=moved[here].view(shape))
        row, vertex = here.stop, vertex + count
    # F.embedding_bag in mode "sum" with include_last_offset, without its checks
    found = torch.embedding_bag(moved, stars.reads, stars.ends, False, 0, False, None, True)[0]
    found = exchanged(found, c)
    if layout.apart(added.by_ray):
        _add_equals(found, grad, added.by_neighbour, weights, layout)
    by_ray = None
    if added.by_ray is not None:
        by_ray = exchanged(moved.index_select(0, stars.place), c)
    return exchanged(total * twice, c), found, by_ray


def _add_equals(
    found: Tensor, grad: Tensor, by_neighbour: Tensor, weights: Weights, layout: Layout
) -> None:
    """Add the derivative of the products `b_j b'_j` of pairs of equals by what neighbours add."""
    stars, few, c = layout.stars, layout.few_vertices, grad.shape[1]
    if few:
        grad = torch.cat([torch.zeros_like(grad[:few]), grad[few:]])
    read = torch.embedding_bag(grad, stars.vertices, stars.ends, False, 0, False, None, True)[0]
    read *= weights.many[-1:]
    count = by_neighbour.shape[1] // c
    into, rows = (each.view(-1, count, c) for each in (found, by_neighbour))
    into.addcmul_(rows.flip(1), read.unsqueeze(1), value=2 / count)
