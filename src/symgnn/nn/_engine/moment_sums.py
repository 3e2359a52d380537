"""Sums over all pairs of rays of each vertex, in operations of PyTorch.

With g and h of each ray and features F,

    out_c = sum_p q_pc B_pc + sum_s o_sc sum_j S_js g_jc h_jc,
    B_pc = sum_m of degree p G_mc H_mc,   G_mc = sum_j F_jm g_jc,

or, for the vertices with few rays, `B_pc = sum_jk K_pjk g_jc h_kc` with the matrices K of their
pairs. :mod:`symgnn.nn._engine.star_sums` computes the same faster.

Rows have g and h one after the other, `[.., 2 c]`, or one of the two where they are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from symgnn.graphs.stars import Stars
from symgnn.nn._engine.values import lift

#: Of a group of vertices, their number and their degree with padding.
Size = tuple[int, int]


class Layout(NamedTuple):
    """Where everything stands, which does not depend on any number that is learned."""

    stars: Stars
    split: int  # how many groups have few rays; these come first
    counts: tuple[int, ...]  # the number of features of each degree
    degrees: Tensor  # [degree + 1, M], 1 where a feature is of a degree, else 0
    ones: bool  # whether S is 1 for all rays
    sums: Tensor  # [V, M], if S is 1: the sums of F over the rays of the vertices with many
    tiles: dict[Any, Any]  # those that are known, see :mod:`symgnn.nn._engine.star_tiles`

    def apart(self, by_ray: Tensor | None) -> bool:
        """Whether factors are what neighbours and vertices add, and the first feature is 1."""
        return self.ones and by_ray is None and bool(self.many)

    @property
    def few(self) -> list[Size]:
        """The groups of vertices with few rays."""
        return self.stars.sizes[: self.split]

    @property
    def many(self) -> list[Size]:
        """The other groups."""
        return self.stars.sizes[self.split :]

    @property
    def few_vertices(self) -> int:
        """The number of vertices of the first."""
        return sum(vertices for vertices, _ in self.few)

    @property
    def few_rows(self) -> int:
        """The number of rows of the first."""
        return sum(vertices * side for vertices, side in self.few)


class Geometry(NamedTuple):
    """What depends on the vectors of the rays alone, P rows with padding.

    Where rays have weights w, such as an envelope, g and h of a ray are to be multiplied by it. F
    times w, S times w^2 and K times both do the same, once for all layers and channels.
    """

    grams: Tensor  # K of the vertices with few rays, `[D D, degree + 1]` each, one after the other
    features: Tensor  # F of the other rays `[M, P]`, 0 for padding
    own: Tensor  # S, `[P, s]`, 0 for padding


class Added(NamedTuple):
    """What the factors g and h of a ray are the sum of, `[.., 2 c]`."""

    by_vertex: Tensor  # of each vertex, in the order of the stars, `[V, 2 c]`
    by_neighbour: Tensor  # of each node as a neighbour, `[N, 2 c]`
    by_ray: Tensor | None  # of each ray, `[R, 2 c]`

    def to(self, dtype: torch.dtype) -> Added:
        """The same in another type."""
        by_ray = None if self.by_ray is None else self.by_ray.to(dtype)
        return Added(self.by_vertex.to(dtype), self.by_neighbour.to(dtype), by_ray)


class Weights(NamedTuple):
    """The coefficients of the polynomials, `[.., c]`."""

    few: Tensor  # q in the basis of the matrices, `[degree + 1, c]`
    many: Tensor  # q in that of the features, then o, `[degree + 1 + s, c]`


def named(given: Sequence[Any]) -> tuple[Added, Geometry, Weights]:
    """The tensors of a call, given one after the other."""
    return Added(*given[:3]), Geometry(*given[3:6]), Weights(*given[6:8])


def derivatives_again(
    function: Callable[[Added, Geometry, Weights, Layout], Tensor],
    given: Sequence[Any],
    layout: Layout,
    grad: Tensor,
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The derivatives of plain operations, which can be differentiated again."""
    with torch.enable_grad():
        # as tensors of their own: factors of a later layer depend on the same geometry
        given = [None if each is None else each.view_as(each) for each in given]
        out = function(*named(given), layout)
    chosen = [each for each, want in zip(given, wanted, strict=False) if want]
    found = iter(torch.autograd.grad(out, chosen, grad, create_graph=True, allow_unused=True))
    return [next(found) if want else None for want in wanted[: len(given)]]


def plain_factors(added: Added, stars: Stars) -> Tensor:
    """The factors g and h of each row, `[P, 2 c]`."""
    rows = lift(added.by_neighbour, stars.neighbour).split(
        [vertices * side for vertices, side in stars.sizes]
    )
    at_vertex = added.by_vertex.split([vertices for vertices, _ in stars.sizes])
    pairs = zip(stars.sizes, rows, at_vertex, strict=True)
    found = torch.cat(
        [(r.unflatten(0, size) + v.unsqueeze(1)).flatten(0, 1) for size, r, v in pairs]
    )
    return found if added.by_ray is None else found + lift(added.by_ray, stars.ray)


def plain_sums(added: Added, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The sums over all pairs of rays of each vertex, `[V, c]`."""
    rows, parts = plain_factors(added, layout.stars), []
    of_few, of_many = rows.split([layout.few_rows, rows.shape[0] - layout.few_rows])
    p, c = weights.few.shape
    for both, gram in gram_groups(of_few, geometry.grams, p, layout.few):
        g, h = halves(both, c)
        turned = torch.bmm(gram.mT, h).unflatten(1, (g.shape[1], p))
        parts.append(((turned * g.unsqueeze(2)).sum(1) * weights.few).sum(1))
    if not layout.many:
        return torch.cat(parts)
    of_feature, own = repeated(weights.many[:p], layout.counts), weights.many[p:]
    for both, of_rays, of_self in moment_groups(of_many, geometry, layout.many):
        g, h = halves(torch.bmm(of_rays.mT, both), c)
        first, second = halves(both, c)
        alone = torch.bmm(of_self.mT, first * second)
        parts.append((g * h * of_feature).sum(1) + (alone * own).sum(1))
    return torch.cat(parts)


def plain_sums_to_rays(
    added: Added, geometry: Geometry, weights: Weights, layout: Layout
) -> Tensor:
    """As :func:`plain_sums`, but over the second rays alone, `[P, c]`."""
    rows, parts = plain_factors(added, layout.stars), []
    of_few, of_many = rows.split([layout.few_rows, rows.shape[0] - layout.few_rows])
    p, c = weights.few.shape
    for both, gram in gram_groups(of_few, geometry.grams, p, layout.few):
        g, h = halves(both, c)
        turned = torch.bmm(gram.mT, h).unflatten(1, (g.shape[1], p))
        parts.append((g * (turned * weights.few).sum(2)).flatten(0, 1))
    if not layout.many:
        return torch.cat(parts)
    of_feature, own = repeated(weights.many[:p], layout.counts), weights.many[p:]
    for both, of_rays, of_self in moment_groups(of_many, geometry, layout.many):
        g, h = halves(both, c)
        pairs = torch.bmm(of_rays, torch.bmm(of_rays.mT, h) * of_feature)
        parts.append((g * torch.addcmul(pairs, h, of_self @ own)).flatten(0, 1))
    return torch.cat(parts)


def halves(rows: Tensor, c: int) -> tuple[Tensor, Tensor]:
    """The factors g and h, `[.., 2 c] -> [.., c]` each; both the same of `[.., c]`."""
    if rows.shape[-1] == c:
        return rows, rows
    one, other = rows.unflatten(-1, (2, c)).unbind(-2)
    return one, other


def repeated(weight: Tensor, counts: tuple[int, ...]) -> Tensor:
    """The coefficient of each feature, `[degree + 1, c] -> [M, c]`."""
    pairs = zip(weight.unsqueeze(1).unbind(0), counts, strict=True)
    return torch.cat([each.expand(count, -1) for each, count in pairs])


def gram_groups(
    rows: Tensor, grams: Tensor, p: int, sizes: list[Size]
) -> list[tuple[Tensor, Tensor]]:
    """The rows `[V, D, w]` and the matrices `[V, D, D p]` of each group."""
    if not sizes:
        return []
    split = rows.split([vertices * side for vertices, side in sizes])  # by slices, all rows are
    squares = grams.split([vertices * side * side for vertices, side in sizes])  # filled again
    return [
        (both.unflatten(0, size), gram.view(size[0], size[1], size[1] * p))
        for size, both, gram in zip(sizes, split, squares, strict=True)
    ]


def moment_groups(
    rows: Tensor, geometry: Geometry, sizes: list[Size]
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The rows `[V, D, w]`, the features `[V, D, M]` and S `[V, D, s]` of each group."""
    if not sizes:
        return []
    places = [vertices * side for vertices, side in sizes]
    split = zip(
        sizes,
        rows.split(places),
        geometry.features.split(places, 1),
        geometry.own.split(places),
        strict=True,
    )
    return [
        (both.unflatten(0, size), of_vertices(of_rays, size), of_self.unflatten(0, size))
        for size, both, of_rays, of_self in split
    ]


def of_vertices(features: Tensor, size: Size) -> Tensor:
    """The features of some vertices, `[M, V D] -> [V, D, M]`, as a view."""
    return features.unflatten(1, size).permute(1, 2, 0)


def feature_sums(features: Tensor, sizes: list[Size]) -> Tensor:
    """The sums of the features over the rays of each vertex, `[M, P] -> [V, M]`."""
    split = features.split([vertices * side for vertices, side in sizes], 1)
    parts = [each.unflatten(1, size).sum(2) for size, each in zip(sizes, split, strict=True)]
    return (parts[0] if len(parts) == 1 else torch.cat(parts, 1)).T
