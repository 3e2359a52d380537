"""The sums over the second rays of each first ray, in groups of vertices that fit into the cache.

    out_j = g_j T_j,   T_j = sum_m F_jm w_m H_m + o_j h_j,   H_m = sum_k F_km h_k,

in each channel. With y_j = grad_j g_j and its moments Y, the derivatives are

    by g_j: grad_j T_j,   by h_j: sum_m F_jm w_m Y_m + o_j y_j,   by w_m: H_m Y_m,

and for vertices with few rays the same with the matrices of their pairs. Second derivatives are
those of :func:`symgnn.nn._engine.moment_sums.plain_sums_to_rays`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from symgnn.nn._engine.moment_sums import (
    Added,
    Geometry,
    Layout,
    Weights,
    plain_sums_to_rays,
    repeated,
)
from symgnn.nn._engine.star_tiles import Tile, tiles_of
from symgnn.nn._engine.star_work import StarWork
from symgnn.nn._engine.torch_private import is_recorded, is_transformed
from symgnn.nn._engine.values import lift


def ray_sums(added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The sums over the second rays of each ray, `[R, c]`; arguments as of `star_sums`."""
    if is_transformed() or is_recorded(added.by_neighbour):
        return plain_ray_sums(added, geometry, weights, layout)
    found: Tensor = _RaySums.apply(*added, *geometry, *weights, layout)
    return found


def plain_ray_sums(added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The same in plain operations."""
    return lift(plain_sums_to_rays(added, geometry, weights, layout), layout.stars.place)


def _named(given: Sequence[Any]) -> tuple[Added, Geometry, Weights]:
    """The tensors of a call."""
    return Added(*given[:3]), Geometry(*given[3:6]), Weights(*given[6:8])


class _RaySums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        (added, geometry, weights), layout = _named(given), given[8]
        work, c = _RayWork(added, geometry, weights, layout), weights.few.shape[1]
        width, wanted = added.by_vertex.shape[1], any(ctx.needs_input_grad)
        rows = weights.few.new_empty(layout.stars.rows, width)
        sums = rows.new_empty(len(rows), c)
        for tile in tiles_of(layout, width, rows.dtype):
            both = work.complete(tile, work.gathered(tile, rows[tile.rows]))
            here = sums[tile.rows].view(*tile.shape, c)
            work.turned(tile, both[..., -c:], here)
        ctx.layout = layout
        ctx.save_for_backward(*given[:8], *((rows, sums) if wanted else (None, None)))
        return (rows[:, :c] * sums).index_select(0, layout.stars.place)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        *given, rows, sums = ctx.saved_tensors
        (added, geometry, weights), layout = _named(given), ctx.layout
        wanted = ctx.needs_input_grad
        if torch.is_grad_enabled():  # for a second derivative
            return (*_again(given, layout, grad, wanted), None)
        work, stars, c = _RayWork(added, geometry, weights, layout), layout.stars, grad.shape[1]
        grad = grad.new_zeros(len(rows), c).index_copy_(0, stars.place, grad)
        y, tied = grad * rows[:, :c], rows.shape[1] == c
        of_rows = torch.empty_like(rows)
        of_vertex = rows.new_empty(added.by_vertex.shape)
        of_weights = [torch.zeros_like(each) for each in weights]
        of_geometry = [torch.zeros_like(each) for each in geometry]
        for tile in tiles_of(layout, rows.shape[1], rows.dtype):
            one, other = (each[tile.rows].view(*tile.shape, -1) for each in (rows, y))
            h, out = one[..., -c:], of_rows[tile.rows].view(*tile.shape, -1)
            work.turned(tile, other, out[..., -c:])
            first = (grad[tile.rows] * sums[tile.rows]).view(*tile.shape, c)
            if tied:
                out += first
            else:
                out[..., :c] = first
            if tile.there is not None:
                out *= tile.there
            torch.sum(out, 1, out=of_vertex[tile.vertices])
            if any(wanted[6:8]):
                work.by_weights(tile, h, other, of_weights)
            if any(wanted[3:6]):
                work.by_geometry_of_rays(tile, h, other, of_geometry)
        found = torch.embedding_bag(of_rows, stars.reads, stars.ends, False, 0, False, None, True)
        by_ray = None if added.by_ray is None else of_rows.index_select(0, stars.place)
        all = (of_vertex, found[0], by_ray, *of_geometry, *of_weights)
        return (*(each if want else None for each, want in zip(all, wanted, strict=False)), None)


class _RayWork(StarWork):
    """What is computed of a tile where one ray is left free."""

    def __init__(self, added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> None:
        super().__init__(added, geometry, weights, layout)
        self.of_pairs, self.of_own = weights.few, weights.many[self.p :]
        if layout.many:
            self.of_feature = repeated(weights.many[: self.p], layout.counts)

    def own_rows(self, tile: Tile) -> Tensor:
        """S of a tile `[V, D, s]`."""
        return self.geometry.own[tile.many].view(*tile.shape, -1)

    def matrices(self, tile: Tile) -> Tensor:
        """K of a tile `[V, D, D p]`."""
        return self.geometry.grams[tile.grams].view(*tile.shape, tile.side * self.p)

    def by_pair(self, tile: Tile, rows: Tensor) -> Tensor:
        """`sum_k K_pjk h_k`, `[V, D, p, c]`."""
        found = torch.bmm(self.matrices(tile).mT, rows)
        return found.view(*tile.shape, self.p, self.c)

    def turned(self, tile: Tile, rows: Tensor, into: Tensor) -> None:
        """`T` of each ray, of factors h `[V, D, c]`."""
        if tile.few:
            torch.sum(self.by_pair(tile, rows).mul_(self.of_pairs), 2, out=into)
            return
        features = self.features(tile)
        moments = torch.bmm(features.mT, rows).mul_(self.of_feature)
        own = self.of_own if self.unit else self.own_rows(tile) @ self.of_own
        into.copy_(torch.baddbmm(rows * own, features, moments))

    def by_weights(self, tile: Tile, h: Tensor, y: Tensor, found: list[Tensor]) -> None:
        """Add the derivatives by the coefficients."""
        if tile.few:
            found[0] += (self.by_pair(tile, h) * y.unsqueeze(2)).sum((0, 1))
            return
        features = self.features(tile)
        product = (torch.bmm(features.mT, h) * torch.bmm(features.mT, y)).sum(0)
        found[1][: self.p] += self.layout.degrees @ product
        own = self.own_rows(tile).flatten(0, 1)
        found[1][self.p :] += own.T @ (h * y).flatten(0, 1)

    def by_geometry_of_rays(self, tile: Tile, h: Tensor, y: Tensor, found: list[Tensor]) -> None:
        """The derivatives by K, F and S."""
        grams, of_features, own = found
        if tile.few:
            change = (y.unsqueeze(2) * self.of_pairs).flatten(1, 2)  # of K_pjk: y_j q_p h_k
            into = torch.bmm(h, change.mT).view(*tile.shape, tile.side * self.p)
            grams[tile.grams].view_as(into).copy_(into)
            return
        features = self.features(tile)
        one, other = (torch.bmm(features.mT, each).mul_(self.of_feature) for each in (h, y))
        change = torch.bmm(one, y.mT).baddbmm_(other, h.mT)  # [V, M, D]
        of_features[:, tile.many] = change.transpose(0, 1).flatten(1)
        torch.mm((h * y).flatten(0, 1), self.of_own.T, out=own[tile.many])


def _again(
    given: Sequence[Any], layout: Layout, grad: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """The derivatives of the plain operations, which can be differentiated again."""
    with torch.enable_grad():
        # as tensors of their own: factors of a later layer depend on the same geometry
        given = [None if each is None else each.view_as(each) for each in given]
        out = plain_ray_sums(*_named(given), layout)
    chosen = [each for each, want in zip(given, wanted, strict=False) if want]
    found = iter(torch.autograd.grad(out, chosen, grad, create_graph=True, allow_unused=True))
    return [next(found) if want else None for want in wanted[: len(given)]]
