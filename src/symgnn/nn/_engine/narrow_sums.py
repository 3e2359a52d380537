"""Sums over all pairs of rays of each vertex, for node values with few columns.

With g_j = W v_j + a and h_k = W' v_k + a', where a and a' belong to the vertex,

    sum_jk K_jk g_jc h_kc = W_c Y W'_c + a'_c (W_c . y) + a_c (W'_c . y) + a_c a'_c y_0,

where Y = sum_jk K_jk v_j v_k, y and y_0 are the blocks of the same sum over the vectors (v_j, 1).
So the sums over rays are computed before any weight is applied, on the few columns of a node value
instead of on all channels; there is one such sum for each polynomial of the angle. In a first
layer, whose node values are the input features, this costs little. If all nodes are alike, as
without features, all rays have the same factors, and the sums are `g_c h_c sum_jk K_jk`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.geometry.measures import at_least_float32
from symgnn.graphs.stars import stars_of
from symgnn.nn._engine.first_half import Given, beneath
from symgnn.nn._engine.moment_sums import (
    Geometry,
    Layout,
    Weights,
    feature_sums,
    gram_groups,
    halves,
    moment_groups,
)
from symgnn.nn._engine.ray_factors import factor_width, map_at, neighbours_read, vertex_table
from symgnn.nn._engine.values import lift

#: The sums are worth it if there are at most so many times as many products of the numbers of a
#: node, of two different ones twice, as there are channels.
WORTH = 4


class Narrow(NamedTuple):
    """The factors g and h of rays whose nodes have few numbers."""

    values: Tensor  # of each node as a neighbour, `[N, w]`
    first: Tensor  # W, `[c, w]`
    second: Tensor  # W', `[c, w]`
    at_vertex: Tensor  # a and a' of each vertex, in the order of its star, `[V, 2 c]`; `[V, c]` if
    # g and h are the same


def narrow_factors(given: Given) -> Narrow | None:
    """The factors of an update of product form; None where nodes have too many numbers, or where
    rays have some of their own.
    """
    read, c = neighbours_read(given), factor_width(given)
    width = sum(value.shape[1] for _, value in read)
    if given.ray or not read or width * (width + 1) > WORTH * c:
        return None
    kind = at_least_float32(given.bias).dtype
    with torch.autocast(given.bias.device.type, enabled=False):  # as other sums of product form
        at_vertex = vertex_table(given, stars_of(given.topology).vertex, kind)
        values = torch.cat([value.to(kind) for _, value in read], 1)
        first, second = (
            torch.cat([map_at(places[half], value, given, kind) for places, value in read], 1)
            for half in (0, -1)
        )
    return Narrow(values, first, second, at_vertex)


def equal_factors(given: Given) -> Tensor | None:
    """The factors g and h that all rays have `[2 c]`, or `[c]` if they are the same; None where
    nodes may differ, or where rays or graphs have numbers of their own.
    """
    alike = all(value.stride(0) == 0 for value in given.node)  # one row, seen by all nodes
    if given.ray or given.graph or not given.node or not alike:
        return None
    with torch.autocast(given.bias.device.type, enabled=False):
        found = at_least_float32(given.bias)
        for term, value in zip(given.plan.node, given.node, strict=True):
            rows = beneath(term, given.maps).to(found.dtype) @ value[0].to(found.dtype)
            found = found + rows.unflatten(0, (2, -1)).sum(0)
    return found


def equal_sums(both: Tensor, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The sums over all pairs of rays of each vertex, where all rays have the factors `both`."""
    parts, (p, c) = [], weights.few.shape
    if layout.few:
        grams = geometry.grams.split([vertices * side**2 for vertices, side in layout.few])
        pairs = zip(grams, layout.few, strict=True)
        parts.append(torch.cat([k.view(size[0], -1, p).sum(1) for k, size in pairs]) @ weights.few)
    if layout.many:
        known = layout.ones and not geometry.features.requires_grad
        moments = layout.sums if known else feature_sums(geometry.features, layout.many)
        equals = feature_sums(geometry.own.T, layout.many)
        squares = moments.square() @ layout.degrees.T
        parts.append(torch.cat([squares, equals], 1) @ weights.many)
    g, h = halves(both, c)
    return (parts[0] if len(parts) == 1 else torch.cat(parts)) * (g * h)


def equal_ray_sums(both: Tensor, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The sums over the second rays of each ray, where all rays have the factors `both`, `[R, c]`:
    the polynomials are summed over pairs before any weight acts.
    """
    parts, (p, c) = [], weights.few.shape
    if layout.few:
        grams = geometry.grams.split([vertices * side**2 for vertices, side in layout.few])
        pairs = zip(grams, layout.few, strict=True)
        of_pairs = [k.view(*size, size[1], p).sum(2).flatten(0, 1) for k, size in pairs]
        parts.append(torch.cat(of_pairs) @ weights.few)
    if layout.many:
        sums = feature_sums(geometry.features, layout.many).T.split([v for v, _ in layout.many], 1)
        of_rays = geometry.features.split([v * side for v, side in layout.many], 1)
        groups = zip(of_rays, sums, layout.many, strict=True)
        products = [(f.unflatten(1, size) * s.unsqueeze(2)).flatten(1) for f, s, size in groups]
        squares = layout.degrees @ torch.cat(products, 1)
        parts.append(torch.cat([squares.T, geometry.own], 1) @ weights.many)
    g, h = halves(both, c)
    return lift(torch.cat(parts), layout.stars.place) * (g * h)


def narrow_sums(given: Narrow, geometry: Geometry, weights: Weights, layout: Layout) -> Tensor:
    """The sums over all pairs of rays of each vertex, `[V, c]`."""
    stars = layout.stars
    rows = lift(F.pad(given.values, (0, 1), value=1.0), stars.neighbour)
    of_few, of_many = rows.split([layout.few_rows, rows.shape[0] - layout.few_rows])
    few, p = layout.few_vertices, weights.few.shape[0]
    a, parts = given.at_vertex, []
    if layout.few:
        grams = gram_groups(of_few, geometry.grams, p, layout.few)
        found = torch.cat(
            [torch.bmm(v.mT, torch.bmm(k.mT, v).view(*v.shape[:2], -1)) for v, k in grams]
        )
        parts.append(_weighed(found, a[:few], weights.few, given))
    if layout.many:
        groups = moment_groups(of_many, geometry, layout.many)
        found = torch.cat([_products(*each, layout.counts) for each in groups])
        parts.append(_weighed(found, a[few:], weights.many, given))
    return torch.cat(parts)


def _products(values: Tensor, features: Tensor, own: Tensor, counts: tuple[int, ...]) -> Tensor:
    """The products of the moments of each degree, then the pairs of equals, `[V, w, t w]`."""
    moments = torch.bmm(features.mT, values).split(counts, 1)
    equals = (values * own[..., s : s + 1] for s in range(own.shape[-1]))
    return torch.cat(
        [torch.bmm(each.mT, each) for each in moments]
        + [torch.bmm(values.mT, each) for each in equals],
        -1,
    )


def _weighed(products: Tensor, a: Tensor, coefficients: Tensor, given: Narrow) -> Tensor:
    """The sums from Y, y and y_0, `[V, w + 1, t (w + 1)], [V, 2 c], [t, c] -> [V, c]`."""
    first, second = (F.pad(each.T, (0, 0, 0, 1)) for each in (given.first, given.second))
    of_both = coefficients.unsqueeze(1) * second  # [t, w + 1, c]
    all = (first.unsqueeze(1).unsqueeze(1) * of_both).flatten(0, 2)
    last = torch.zeros_like(first)
    last[-1] = 1.0
    of_first, alone = (coefficients.unsqueeze(1) * each for each in (first, last))
    linear = torch.cat([of_both, of_first, alone], -1).flatten(0, 1)
    c = coefficients.shape[1]
    of_one = (products[:, -1] @ linear).split(c, 1)
    one, other = halves(a, c)
    found = torch.addmm(one * of_one[0], products.flatten(1), all)
    return found + other * torch.addcmul(of_one[1], one, of_one[2])
