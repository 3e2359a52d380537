"""Sums over angles as products of matrices, one for each vertex."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from symgnn.graphs import Grid

#: How many numbers of a value are worked on at a time: 1 MiB in single precision.
AT_ONCE = 2**18


def weigh(
    grid: Grid, weights: Tensor, values: Tensor, expand: Callable[[Tensor], Tensor]
) -> Tensor:
    """`sum_kb weights_jkb expand(values)_kbc`, `[A, b], [R, w] -> [R, c]`, with no value lifted to
    the angles: a product of matrices for each vertex. `expand` gives `[rows, b, c]` of `[rows, w]`,
    some vertices at a time, so that they stay in the processor's cache.
    """
    b, w = weights.shape[1], values.shape[1]
    sizes = [
        (min(some, vertices - start), degree)
        for vertices, degree in grid.sizes
        for some in [max(AT_ONCE // (degree * b * w), 1)]
        for start in range(0, vertices, some)
    ]
    if not sizes:
        return expand(values).sum(1)
    places, cells = [n * d for n, d in sizes], [n * d * d for n, d in sizes]
    table = weights.new_zeros(sum(cells), b).index_copy(0, grid.angle, weights)
    rows = values.new_zeros(sum(places), w).index_copy(0, grid.ray, values)
    parts = []
    for (n, d), one, other in zip(sizes, table.split(cells), rows.split(places), strict=True):
        wide = expand(other)
        wide = wide.reshape(n, d * b, wide.shape[-1])
        parts.append(torch.bmm(one.view(n, d, d * b), wide).flatten(0, 1))
    return torch.cat(parts).index_select(0, grid.ray)
