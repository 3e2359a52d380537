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
    derivatives_again,
    named,
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


class _RaySums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        (added, geometry, weights), layout = named(given), given[8]
        work, c = _RayWork(added, geometry, weights, layout), weights.few.shape[1]
        width, wanted = added.by_vertex.shape[1], any(ctx.needs_input_grad)
        h, sums, out = (weights.few.new_empty(layout.stars.rows, c) for _ in range(3))
        g = h if width == c else torch.empty_like(h)
        for tile in tiles_of(layout, width, h.dtype):
            shape = (*tile.shape, c)
            first = second = work.factor(tile, slice(width - c, None), h[tile.rows])
            if width > c:
                first = work.factor(tile, slice(0, c), g[tile.rows])
            total = sums[tile.rows].view(shape)
            work.sums(tile, second, work.moments_of(tile, second), total)
            torch.mul(first, total, out=out[tile.rows].view(shape))
        ctx.layout = layout
        ctx.save_for_backward(*given[:8], *((g, h, sums) if wanted else (None, None, None)))
        return out.index_select(0, layout.stars.place)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        *given, g, h, sums = ctx.saved_tensors
        (added, geometry, weights), layout = named(given), ctx.layout
        wanted = ctx.needs_input_grad
        if torch.is_grad_enabled():  # for a second derivative
            return (*derivatives_again(plain_ray_sums, given, layout, grad, wanted), None)
        work, c, width = _RayWork(added, geometry, weights, layout), h.shape[1], len(added[0].T)
        tied, shape = width == c, (len(added.by_vertex), c)
        by_h, at_vertex = torch.empty_like(h), [h.new_empty(shape)]
        by_g = by_h if tied else torch.empty_like(h)
        if not tied:
            at_vertex.insert(0, h.new_empty(shape))
        of_geometry = [torch.zeros_like(each) for each in geometry]
        of_weights = [torch.zeros_like(each) for each in weights]
        for tile in tiles_of(layout, width, h.dtype):
            first, second, total, of_g, of_h = (
                each[tile.rows].view(*tile.shape, c) for each in (g, h, sums, by_g, by_h)
            )
            here = grad.index_select(0, tile.ray).view_as(first)
            y = here * first
            moments = work.moments_of(tile, y)
            if any(wanted[3:]):
                work.by_others(tile, second, y, moments, of_geometry, of_weights, wanted)
            work.sums(tile, y, moments, of_h)
            if tied:
                of_h.addcmul_(here, total)
            else:
                torch.mul(here, total, out=of_g)
            for rows, into in zip((of_g, of_h)[-len(at_vertex) :], at_vertex, strict=True):
                if tile.there is not None:
                    rows *= tile.there
                torch.sum(rows, 1, out=into[tile.vertices])
        parts, stars = ([by_h] if tied else [by_g, by_h]), layout.stars
        where = (stars.reads, stars.ends, False, 0, False, None, True)
        by_node = torch.cat([torch.embedding_bag(each, *where)[0] for each in parts], 1)
        by_ray = None
        if added.by_ray is not None:
            by_ray = torch.cat([each.index_select(0, stars.place) for each in parts], 1)
        all = (torch.cat(at_vertex, 1), by_node, by_ray, *of_geometry, *of_weights)
        return (*(each if want else None for each, want in zip(all, wanted, strict=False)), None)


class _RayWork(StarWork):
    """What is computed of a tile where one ray is left free."""

    def __init__(self, added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> None:
        super().__init__(added, geometry, weights, layout)
        self.of_pairs, self.of_own = weights.few, weights.many[self.p :]
        if layout.many:
            self.of_feature = repeated(weights.many[: self.p], layout.counts)

    def factor(self, tile: Tile, half: slice, into: Tensor) -> Tensor:
        """The factor g or h `[V, D, c]`; 0 for padding."""
        by_vertex, by_neighbour, by_ray = self.added
        torch.index_select(by_neighbour[:, half], 0, tile.neighbour, out=into)
        if by_ray is not None:
            into += by_ray[:, half].index_select(0, tile.ray)
        found = into.view(*tile.shape, self.c)
        found += by_vertex[tile.vertices, half].unsqueeze(1)
        return found if tile.there is None else found.mul_(tile.there)

    def own_rows(self, tile: Tile) -> Tensor:
        """S of a tile `[V, D, s]`."""
        return self.geometry.own[tile.many].view(*tile.shape, -1)

    def moments_of(self, tile: Tile, h: Tensor) -> Tensor:
        """H of a tile `[V, M, c]`; of few rays, `sum_k K_pjk h_k` `[V, D, p, c]`."""
        if not tile.few:
            return torch.bmm(self.features(tile).mT, h)
        gram = self.geometry.grams[tile.grams].view(*tile.shape, tile.side * self.p)
        return torch.bmm(gram.mT, h).view(*tile.shape, self.p, self.c)

    def sums(self, tile: Tile, h: Tensor, moments: Tensor, into: Tensor) -> None:
        """T of each ray; the moments are used up."""
        if tile.few:
            torch.sum(moments.mul_(self.of_pairs), 2, out=into)
            return
        own = self.of_own if self.unit else self.own_rows(tile) @ self.of_own
        torch.mul(h, own, out=into)
        into.baddbmm_(self.features(tile), moments.mul_(self.of_feature))

    def by_others(
        self,
        tile: Tile,
        h: Tensor,
        y: Tensor,
        moments: Tensor,
        geometry: list[Tensor],
        weights: list[Tensor],
        wanted: Sequence[bool],
    ) -> None:
        """Add the derivatives by the geometry and the coefficients; `moments` are those of y."""
        mine = self.moments_of(tile, h)
        grams, of_features, own = geometry
        if tile.few:
            weights[0] += (mine * y.unsqueeze(2)).sum((0, 1))
            if wanted[3]:
                change = (y.unsqueeze(2) * self.of_pairs).flatten(1, 2)  # by K_pjk: y_j q_p h_k
                found = torch.bmm(h, change.mT)
                grams[tile.grams].view(found.shape).copy_(found)
            return
        product = (h * y).flatten(0, 1)
        weights[1][: self.p] += self.layout.degrees @ (mine * moments).sum(0)
        weights[1][self.p :] += self.own_rows(tile).flatten(0, 1).T @ product
        if wanted[4]:
            change = torch.bmm(mine.mul_(self.of_feature), y.mT)
            change.baddbmm_(moments * self.of_feature, h.mT)  # [V, M, D]
            of_features[:, tile.many].view(len(of_features), *tile.shape).copy_(
                change.transpose(0, 1)
            )
        if wanted[5]:
            torch.mm(product, self.of_own.T, out=own[tile.many])
