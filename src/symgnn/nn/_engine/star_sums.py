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

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from symgnn.nn._engine.moment_sums import Geometry, Layout, Weights, plain_sums, repeated
from symgnn.nn._engine.policy import policy
from symgnn.nn._engine.torch_private import is_recorded, is_transformed, keeps_graph


def star_sums(
    table: Tensor, on_rays: Tensor | None, geometry: Geometry, weights: Weights, layout: Layout
) -> Tensor:
    """The sums over all pairs of rays of each vertex.

    Args:
        table: Of each node, what it adds to g and h as a vertex, then as a neighbour, `[2 N, w]`,
            where w is 2 c, or c if g and h are the same.
        on_rays: What each ray adds, `[R, w]`.
        geometry: What depends on the vectors of the rays.
        weights: The coefficients of the polynomials.
        layout: Where everything stands.

    Returns:
        `[V, c]`.
    """
    if is_transformed() or is_recorded(table):
        return plain_sums(table, on_rays, geometry, weights, layout)
    found: Tensor = _StarSums.apply(table, on_rays, *geometry, *weights, layout)
    return found


class _Tile(NamedTuple):
    """Some vertices of a group."""

    side: int  # their degree with padding
    few: bool  # whether they have few rays
    padded: bool  # whether there may be padding
    vertices: slice
    rows: slice  # among all rows
    many: slice  # of vertices with many rays: among theirs
    grams: slice  # of vertices with few rays: among the pairs of theirs

    @property
    def shape(self) -> tuple[int, int]:
        """The number of vertices, and their degree."""
        return self.vertices.stop - self.vertices.start, self.side


def _tiles(layout: Layout, width: int) -> Iterator[_Tile]:
    """The vertices in order, so that what is computed of them fits in the cache."""
    size, few_rows, stars = policy().tile, layout.few_rows, layout.stars
    p, features = len(layout.counts), sum(layout.counts)
    vertex = row = gram = 0
    for number, (vertices, side) in enumerate(stars.sizes):
        few = number < layout.split
        each = max(1, size // (width * (p * side if few else max(side, features))))
        for start in range(0, vertices, each):
            count = min(each, vertices - start)
            rows = slice(row, row + count * side)
            squares = slice(gram, gram + (count * side * side if few else 0))
            many = slice(rows.start - few_rows, rows.stop - few_rows)
            here = slice(vertex, vertex + count)
            yield _Tile(side, few, stars.padded[number], here, rows, many, squares)
            vertex, row, gram = here.stop, rows.stop, squares.stop


class _StarSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, on_rays: Tensor | None, *rest: Any) -> Tensor:
        geometry, weights, layout = Geometry(*rest[:3]), Weights(*rest[3:5]), rest[5]
        work = _Work(table, on_rays, geometry, weights, layout)
        stars, (p, c), width = layout.stars, weights.few.shape, table.shape[1]
        vertices, few = stars.at_vertex.shape[0], layout.few_vertices
        terms = table.new_empty(vertices, max(p, weights.many.shape[0]), c)
        wanted = any(ctx.needs_input_grad[:2])
        rows = table.new_empty(stars.rows, width) if wanted else None
        total = table.new_empty(vertices, width) if wanted else None
        for tile in _tiles(layout, width):
            into = None if rows is None else rows[tile.rows]
            out = terms[tile.vertices]
            if tile.few:
                both = work.factors(tile, into)
                work.by_pairs(tile, both, out, wanted)
            elif work.apart:
                both = work.by_moments_of_nodes(tile, work.gathered(tile, into), out, wanted)
            else:
                both = work.factors(tile, into)
                work.by_moments(tile, both, out, wanted)
            if total is not None:
                torch.sum(both, 1, out=total[tile.vertices])
        if work.apart and few < vertices:
            work.equals(terms[few:, p], None if total is None else total[few:])
        ctx.layout = layout
        ctx.save_for_backward(table, on_rays, *rest[:5], terms, rows, total)
        parts = []
        if few:
            parts.append((terms[:few, :p] * weights.few).sum(1))
        if few < vertices:
            parts.append((terms[few:] * weights.many).sum(1))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        table, on_rays, *rest, terms, rows, total = ctx.saved_tensors
        geometry, weights, layout = Geometry(*rest[:3]), Weights(*rest[3:5]), ctx.layout
        given, wanted = (table, on_rays, *rest), ctx.needs_input_grad
        if torch.is_grad_enabled():  # for a second derivative
            return (*_again(given, layout, grad, wanted), None)
        found: list[Tensor | None] = [None] * 7
        grad = grad.contiguous()
        if rows is not None:
            moved = torch.empty_like(rows) if keeps_graph() else rows
            of_table, of_rays = _by_factors(grad, rows, total, layout, moved, on_rays is not None)
            if layout.apart(on_rays):
                _add_equals(of_table, grad, table, weights, layout)
            found[:2] = of_table, of_rays
        if any(wanted[2:5]):
            work = _Work(table, on_rays, geometry, weights, layout)
            found[2:5] = work.by_geometry(grad, wanted[2:5])
        few, p = layout.few_vertices, weights.few.shape[0]
        if wanted[5]:
            found[5] = (terms[:few, :p] * grad[:few].unsqueeze(1)).sum(0)
        if wanted[6]:
            found[6] = (terms[few:] * grad[few:].unsqueeze(1)).sum(0)
        return (*(each if want else None for each, want in zip(found, wanted, strict=False)), None)


def _by_factors(
    grad: Tensor, rows: Tensor, total: Tensor, layout: Layout, moved: Tensor, on_rays: bool
) -> tuple[Tensor, Tensor | None]:
    """The derivatives by what nodes and what rays add; `moved` is filled, and may be `rows`."""
    stars, c, width = layout.stars, grad.shape[1], rows.shape[1]
    twice = torch.cat([grad, grad], 1) if width > c else 2 * grad
    row = vertex = 0
    for count, side in stars.sizes:
        here, out = slice(row, row + count * side), twice[vertex : vertex + count].unsqueeze(1)
        shape = (count, side, width)
        torch.mul(rows[here].view(shape), out, out=moved[here].view(shape))
        row, vertex = here.stop, vertex + count
    # F.embedding_bag in mode "sum" with include_last_offset, without its checks
    found = torch.embedding_bag(moved, stars.reads, stars.offsets, False, 0, False, None, True)[0]
    found.index_copy_(0, stars.at_vertex.long(), total * twice)
    of_rays = _exchanged(moved.index_select(0, stars.place), c) if on_rays else None
    return _exchanged(found, c), of_rays


def _add_equals(
    found: Tensor, grad: Tensor, table: Tensor, weights: Weights, layout: Layout
) -> None:
    """Add the derivative of the products `b_j b'_j` of pairs of equals by the table."""
    stars, few, c = layout.stars, layout.few_vertices, grad.shape[1]
    if few:
        grad = torch.cat([torch.zeros_like(grad[:few]), grad[few:]])
    read = torch.embedding_bag(grad, stars.vertices, stars.ends, False, 0, False, None, True)[0]
    read *= weights.many[-1:]
    count = table.shape[1] // c
    into, rows = (each.reshape(-1, 2, count, c)[:, 1] for each in (found, table))
    into.addcmul_(rows.flip(1), read.unsqueeze(1), value=2 / count)


def _exchanged(rows: Tensor, c: int) -> Tensor:
    return torch.cat([rows[..., c:], rows[..., :c]], -1) if rows.shape[-1] > c else rows


def _product(rows: Tensor, c: int) -> Tensor:
    """`g h`, `[.., w] -> [.., c]`."""
    return rows[..., :c] * rows[..., -c:]


class _Work:
    """What is computed of a tile."""

    def __init__(
        self,
        table: Tensor,
        on_rays: Tensor | None,
        geometry: Geometry,
        weights: Weights,
        layout: Layout,
    ) -> None:
        self.table, self.on_rays, self.layout = table, on_rays, layout
        self.geometry, self.weights = geometry, weights
        self.p, self.c = weights.few.shape
        self.at_vertex = table.index_select(0, layout.stars.at_vertex)
        #: Whether S is 1 for all rays.
        self.unit = layout.ones
        count = table.shape[1] // self.c
        few, many = (torch.cat([each, each], 1) if count > 1 else each for each in weights)
        self.gram, self.own = few, many[self.p :]
        if layout.many:
            self.moment = repeated(many[: self.p], layout.counts)
        #: How often a derivative by g is also one by h.
        self.twice = 2 // count
        #: Whether a and b are added apart.
        self.apart = layout.apart(on_rays)
        #: [V, 2 c], the moments G_0 and H_0 of the vertices with many rays.
        self.lowest = table.new_empty(layout.sums.shape[0] if self.apart else 0, table.shape[1])

    def gathered(self, tile: _Tile, into: Tensor | None = None) -> Tensor:
        """What neighbours add to g and h, `[V, D, 2 c]`; anything for padding."""
        neighbours = self.layout.stars.at_neighbour[tile.rows]
        if into is None:
            into = self.table.new_empty(neighbours.shape[0], self.table.shape[1])
        torch.index_select(self.table, 0, neighbours, out=into)
        return into.view(*tile.shape, into.shape[1])

    def factors(self, tile: _Tile, into: Tensor | None = None) -> Tensor:
        """The factors g and h, `[V, D, 2 c]`; 0 for padding."""
        stars = self.layout.stars
        both = self.gathered(tile, into)
        if self.on_rays is not None:
            both += self.on_rays.index_select(0, stars.ray[tile.rows]).view_as(both)
        both += self.at_vertex[tile.vertices].unsqueeze(1)
        if tile.padded:
            both *= stars.there[tile.rows].to(both.dtype).view(*tile.shape, 1)
        return both

    def by_moments(self, tile: _Tile, both: Tensor, terms: Tensor, wanted: bool) -> None:
        """B and the pairs of equals of vertices with many rays; their factors become Z."""
        c, p = self.c, self.p
        features = self.geometry.features[tile.many].view(*tile.shape, -1)
        moments = torch.bmm(features.mT, both)
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

    def by_moments_of_nodes(self, tile: _Tile, both: Tensor, terms: Tensor, wanted: bool) -> Tensor:
        """B of vertices with many rays, from b and a; b becomes Z, but for `o_j b_j`."""
        c, few = self.c, self.layout.few_vertices
        here = slice(tile.vertices.start - few, tile.vertices.stop - few)
        a, sums = self.at_vertex[tile.vertices], self.layout.sums[here]
        features = self.geometry.features[tile.many].view(*tile.shape, -1)
        moments = torch.bmm(features.mT, both)
        moments.addcmul_(sums.unsqueeze(2), a.unsqueeze(1))
        self.lowest[here] = moments[:, 0]
        terms[:, : self.p] = torch.matmul(self.layout.degrees, _product(moments, c))
        if wanted:
            moments.mul_(self.moment)
            moments[:, 0].addcmul_(self.own, a)
            torch.bmm(features, moments, out=both)
        return both

    def equals(self, terms: Tensor, total: Tensor | None) -> None:
        """The pairs of equals of vertices with many rays `[V, c]`, and what they add to the sums
        of Z.
        """
        stars, c, few = self.layout.stars, self.c, self.layout.few_vertices
        b = self.table.reshape(-1, 2, self.table.shape[1])[:, 1]
        squares, where = _product(b, c), (stars.neighbours, stars.starts)
        sums = torch.embedding_bag(squares, *where, False, 0, False, None, True)[0]
        a, lowest = self.at_vertex[few:], self.lowest
        # of the neighbours alone
        lowest = lowest.addcmul_(self.layout.sums[:, :1], a, value=-1)
        one, other = a[:, :c], a[:, -c:]
        torch.addcmul(sums[few:], other, lowest[:, :c], out=terms)
        terms.addcmul_(one, lowest[:, -c:])
        terms.addcmul_(one * other, self.layout.sums[:, :1])
        if total is not None:
            total.addcmul_(self.own, lowest)

    def by_pairs(self, tile: _Tile, both: Tensor, terms: Tensor, wanted: bool) -> None:
        """B of vertices with few rays; their factors become Z."""
        c = self.c
        gram = self.geometry.grams[tile.grams].view(*tile.shape, tile.side * self.p)
        turned = torch.bmm(gram.mT, both).unflatten(1, (tile.side, self.p))
        product = turned[..., -c:] * both[..., :c].unsqueeze(2)
        torch.sum(product, 1, out=terms[:, : self.p])
        if wanted:
            torch.sum(turned.mul_(self.gram), 2, out=both)

    def by_geometry(self, grad: Tensor, wanted: Sequence[bool]) -> list[Tensor | None]:
        """The derivatives by K, F and S."""
        c, given = self.c, self.geometry
        grams, features, own = map(torch.empty_like, given)
        for tile in _tiles(self.layout, self.table.shape[1]):
            out, both = grad[tile.vertices].unsqueeze(1), self.factors(tile)
            g, h = both[..., :c], both[..., -c:]
            if tile.few:
                change = (out * self.weights.few).unsqueeze(1) * h.unsqueeze(2)
                into = grams[tile.grams].view(*tile.shape, tile.side * self.p)
                torch.bmm(g, change.flatten(1, 2).mT, out=into)
                continue
            if wanted[1]:
                of_rays = given.features[tile.many].view(*tile.shape, -1)
                moments = torch.bmm(of_rays.mT, both)
                moments = _exchanged(moments, c).mul_(self.moment)
                moments.unflatten(2, (-1, c)).mul_(self.twice * out.unsqueeze(2))
                torch.bmm(both, moments.mT, out=features[tile.many].view(*tile.shape, -1))
            if wanted[2]:
                change = (g * h).mul_(out).flatten(0, 1)
                torch.mm(change, self.weights.many[self.p :].T, out=own[tile.many])
        return [grams, features, own]


def _again(
    given: Sequence[Any], layout: Layout, grad: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """The derivatives of the plain operations, which can be differentiated again."""
    with torch.enable_grad():
        # as tensors of their own: factors of a later layer depend on the same geometry
        given = [None if each is None else each.view_as(each) for each in given]
        table, on_rays, *rest = given
        out = plain_sums(table, on_rays, Geometry(*rest[:3]), Weights(*rest[3:]), layout)
    chosen = [each for each, want in zip(given, wanted, strict=False) if want]
    found = iter(torch.autograd.grad(out, chosen, grad, create_graph=True, allow_unused=True))
    return [next(found) if want else None for want in wanted[: len(given)]]
