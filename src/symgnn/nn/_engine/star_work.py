"""The sums of a tile of vertices, and their derivatives by hand.

See :mod:`symgnn.nn._engine.star_sums` for the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from symgnn.nn._engine.moment_sums import (
    Added,
    Geometry,
    Layout,
    Weights,
    of_vertices,
    repeated,
)
from symgnn.nn._engine.star_tiles import Tile, tiles_of


def exchanged(rows: Tensor, c: int) -> Tensor:
    """Rows of g and h as those of h and g, `[.., 2 c]`; as they are if both are the same."""
    return torch.cat([rows[..., c:], rows[..., :c]], -1) if rows.shape[-1] > c else rows


def _all_exchanged(added: Added, c: int) -> Added:
    """What the factors h and g are the sum of."""
    by_ray = None if added.by_ray is None else exchanged(added.by_ray, c)
    return Added(exchanged(added.by_vertex, c), exchanged(added.by_neighbour, c), by_ray)


def _product(rows: Tensor, c: int) -> Tensor:
    """`g h`, `[.., w] -> [.., c]`."""
    return rows[..., :c] * rows[..., -c:]


class StarWork:
    """What is computed of a tile."""

    def __init__(self, added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> None:
        self.added, self.geometry, self.weights, self.layout = added, geometry, weights, layout
        self.p, self.c = weights.few.shape
        #: Whether S is 1 for all rays.
        self.unit = layout.ones
        width = added.by_vertex.shape[1]
        count = width // self.c
        if layout.few:
            self.gram = torch.cat([weights.few] * count, 1)
        if layout.many:
            many = torch.cat([weights.many] * count, 1)
            self.moment, self.own = repeated(many[: self.p], layout.counts), many[self.p :]
        #: How often a derivative by g is also one by h.
        self.twice = 2 // count
        #: Whether what vertices add goes to the moments.
        self.apart = layout.apart(added.by_ray)
        #: [V, 2 c], the moments G_0 and H_0 of the vertices with many rays.
        self.lowest = weights.many.new_empty(len(layout.sums) if self.apart else 0, width)
        self._memory: dict[str, Tensor] = {}

    def memory(self, name: str, *shape: int) -> Tensor:
        """Memory of any numbers, which all tiles use one after the other."""
        size, known = math.prod(shape), self._memory.get(name)
        if known is None or len(known) < size:
            known = self._memory[name] = self.weights.few.new_empty(size)
        return known[:size].view(shape)

    def many_rays(
        self, tile: Tile, into: Tensor, terms: Tensor, wanted: bool, kept: Tensor | None
    ) -> Tensor:
        """B of a tile, and the pairs of equals where they are not added later.

        Args:
            tile: Some vertices.
            into: Memory for the factors, which become Z if it is wanted `[rows, w]`.
            terms: Of all vertices, for B and the pairs of equals.
            wanted: Whether Z is.
            kept: Memory for the moments times their coefficients, of the vertices with many rays.

        Returns:
            Z, `[V, D, w]`.
        """
        out = terms[tile.vertices]
        both = self.gathered(tile, into)
        if tile.few or not self.apart:
            self.complete(tile, both)
        if tile.few:
            self.by_pairs(tile, both, out, wanted)
            return both
        memory = None if kept is None else kept[self.among_many(tile)]
        if self.apart:
            self.by_moments_of_nodes(tile, both, out, wanted, memory)
        else:
            self.by_moments(tile, both, out, wanted, memory)
        return both

    def sums_alone(self, tile: Tile, out: Tensor) -> None:
        """The sums of a tile without what their derivatives need `[V, c]`; without the pairs of
        equals where they are added later.
        """
        width = self.added.by_neighbour.shape[1]
        both = self.gathered(tile, self.memory("rows", len(tile.ray), width))
        if tile.few or not self.apart:
            self.complete(tile, both)
        if tile.few:
            self._pairs_alone(tile, both, out)
            return
        moments, c = self.moments(self.features(tile), both, None), self.c
        if self.apart:
            self.complete_moments(tile, moments)
        product = self.memory("product", *moments.shape[:2], c)
        torch.mul(moments[..., :c], moments[..., -c:], out=product)
        torch.sum(product.mul_(self.moment[:, :c]), 1, out=out)
        if not self.apart:
            out += self._equals_alone(tile, both)

    def _pairs_alone(self, tile: Tile, both: Tensor, out: Tensor) -> None:
        """The sums of vertices with few rays, of which only the factors h are multiplied by K."""
        (vertices, side), p, c = tile.shape, self.p, self.c
        gram = self.geometry.grams[tile.grams].view(vertices, side, side * p)
        turned = self.memory("turned", vertices, side * p, c)
        turned = torch.bmm(gram.mT, both[..., -c:], out=turned).view(vertices, side, p, c)
        of_ray = self.memory("product", vertices, side, c)
        torch.sum(turned.mul_(self.weights.few), 2, out=of_ray)
        torch.sum(of_ray.mul_(both[..., :c]), 1, out=out)

    def _equals_alone(self, tile: Tile, both: Tensor) -> Tensor:
        """The pairs of equals of vertices with many rays, `[V, c]`."""
        product, own = _product(both, self.c), self.own[:, : self.c]
        if self.unit:
            return product.sum(1) * own
        squares = self.geometry.own[tile.many].view(*tile.shape, -1)
        return (torch.bmm(squares.mT, product) * own).sum(1)

    def gathered(self, tile: Tile, into: Tensor | None = None) -> Tensor:
        """What neighbours add to g and h, `[V, D, 2 c]`; anything for padding."""
        table = self.added.by_neighbour
        if into is None:
            into = table.new_empty(len(tile.ray), table.shape[1])
        torch.index_select(table, 0, tile.neighbour, out=into)
        return into.view(*tile.shape, into.shape[1])

    def complete(self, tile: Tile, both: Tensor) -> Tensor:
        """Add what vertices and rays add: the factors g and h; 0 for padding."""
        if self.added.by_ray is not None:
            both += self.added.by_ray.index_select(0, tile.ray).view_as(both)
        both += self.added.by_vertex[tile.vertices].unsqueeze(1)
        if tile.there is not None:
            both *= tile.there
        return both

    def features(self, tile: Tile) -> Tensor:
        """F of a tile `[V, D, M]`."""
        return of_vertices(self.geometry.features[:, tile.many], tile.shape)

    def moments(self, features: Tensor, both: Tensor, kept: Tensor | None) -> Tensor:
        """`sum_j F_jm g_jc`, into memory that is kept for the backward pass or not."""
        if kept is None:
            kept = self.memory("moments", len(both), features.shape[2], both.shape[2])
        return torch.bmm(features.mT, both, out=kept)

    def among_many(self, tile: Tile) -> slice:
        """The vertices of a tile among those with many rays."""
        few = self.layout.few_vertices
        return slice(tile.vertices.start - few, tile.vertices.stop - few)

    def complete_moments(self, tile: Tile, moments: Tensor) -> Tensor:
        """Add a times the sums of F, and keep the moments of the first; gives a `[V, 2 c]`."""
        here, a = self.among_many(tile), self.added.by_vertex[tile.vertices]
        moments.addcmul_(self.layout.sums[here].unsqueeze(2), a.unsqueeze(1))
        self.lowest[here] = moments[:, 0]
        return a

    def by_moments(
        self, tile: Tile, both: Tensor, terms: Tensor, wanted: bool, kept: Tensor | None
    ) -> None:
        """B and the pairs of equals of vertices with many rays; their factors become Z."""
        c, p, features = self.c, self.p, self.features(tile)
        moments = self.moments(features, both, kept)
        terms[:, :p] = torch.matmul(self.layout.degrees, _product(moments, c))
        product = _product(both, c)
        if self.unit:
            torch.sum(product, 1, out=terms[:, p])
        else:
            own = self.geometry.own[tile.many].view(*tile.shape, -1)
            terms[:, p:] = torch.bmm(own.mT, product)
        if wanted:
            both *= self.own if self.unit else own @ self.own
            both.baddbmm_(features, moments.mul_(self.moment))

    def by_moments_of_nodes(
        self,
        tile: Tile,
        both: Tensor,
        terms: Tensor,
        wanted: bool,
        kept: Tensor | None,
    ) -> None:
        """B of vertices with many rays, from b and a; b becomes Z, but for `o_j b_j`."""
        c, features = self.c, self.features(tile)
        moments = self.moments(features, both, kept)
        a = self.complete_moments(tile, moments)
        terms[:, : self.p] = torch.matmul(self.layout.degrees, _product(moments, c))
        if wanted:
            moments.mul_(self.moment)
            # the first feature is constant: nothing else reads its moment as it is kept
            moments[:, 0].addcmul_(self.own, a)
            torch.bmm(features, moments, out=both)

    def equals(self, terms: Tensor, total: Tensor | None) -> None:
        """The pairs of equals of vertices with many rays `[V, c]`, and what they add to the sums
        of Z.
        """
        stars, c, few = self.layout.stars, self.c, self.layout.few_vertices
        squares = _product(self.added.by_neighbour, c)
        where = (stars.neighbours, stars.starts)
        sums = torch.embedding_bag(squares, *where, False, 0, False, None, True)[0]
        a, lowest = self.added.by_vertex[few:], self.lowest
        # of the neighbours alone
        lowest = lowest.addcmul_(self.layout.sums[:, :1], a, value=-1)
        one, other = a[:, :c], a[:, -c:]
        torch.addcmul(sums[few:], other, lowest[:, :c], out=terms)
        terms.addcmul_(one, lowest[:, -c:])
        terms.addcmul_(one * other, self.layout.sums[:, :1])
        if total is not None:
            total.addcmul_(self.own, lowest)

    def by_pairs(self, tile: Tile, both: Tensor, terms: Tensor, wanted: bool) -> None:
        """B of vertices with few rays; their factors become Z."""
        c = self.c
        gram = self.geometry.grams[tile.grams].view(*tile.shape, tile.side * self.p)
        vertices, side = tile.shape
        turned = self.memory("turned", vertices, side * self.p, both.shape[2])
        turned = torch.bmm(gram.mT, both, out=turned).view(vertices, side, self.p, -1)
        product = self.memory("product", vertices, side, self.p, c)
        torch.mul(turned[..., -c:], both[..., :c].unsqueeze(2), out=product)
        torch.sum(product, 1, out=terms[:, : self.p])
        if wanted:
            torch.sum(turned.mul_(self.gram), 2, out=both)

    def by_geometry(
        self, grad: Tensor, moments: Tensor | None, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """The derivatives by K, F and S.

        Args:
            grad: The derivative by the sums.
            moments: Those of vertices with many rays, times their coefficients.
            wanted: Which ones.
        """
        c, given, width, work = self.c, self.geometry, self.added.by_vertex.shape[1], self
        grams, own = torch.empty_like(given.grams), torch.empty_like(given.own)
        features = torch.empty_like(given.features)
        turned = bool(self.layout.many)
        if turned:  # rows of h and g: to get a derivative by F, g is multiplied by moments of h
            work = StarWork(_all_exchanged(self.added, c), given, self.weights, self.layout)
        for tile in tiles_of(self.layout, width, grad.dtype):
            out, into = grad[tile.vertices].unsqueeze(1), work.memory("rows", len(tile.ray), width)
            both = work.complete(tile, work.gathered(tile, into))
            if tile.few:
                g, h = both[..., :c], both[..., -c:]
                self.by_grams(tile, out, h if turned else g, g if turned else h, grams)
                continue
            if wanted[1]:
                assert moments is not None
                found = work.by_features(out, both, moments[self.among_many(tile)])
                into = features[:, tile.many].view(len(features), *tile.shape)
                into.copy_(found.permute(2, 0, 1))
            if wanted[2]:
                change = _product(both, c).mul_(out).flatten(0, 1)
                torch.mm(change, self.weights.many[self.p :].T, out=own[tile.many])
        return [grams, features, own]

    def by_grams(self, tile: Tile, out: Tensor, g: Tensor, h: Tensor, grams: Tensor) -> None:
        """The derivative by K."""
        change = (out * self.weights.few).unsqueeze(1) * h.unsqueeze(2)
        into = grams[tile.grams].view(*tile.shape, tile.side * self.p)
        torch.bmm(g, change.flatten(1, 2).mT, out=into)

    def by_features(self, out: Tensor, both: Tensor, moments: Tensor) -> Tensor:
        """The derivative by F `[V, D, M]`, from the factors h and g and the moments of g and h."""
        change = self.memory("moments", *moments.shape)
        halves = moments.unflatten(2, (-1, self.c)), (self.twice * out).unsqueeze(2)
        torch.mul(*halves, out=change.unflatten(2, (-1, self.c)))
        found = self.memory("features", *both.shape[:2], moments.shape[1])
        return torch.bmm(both, change.mT, out=found)
