"""What an update may be other than an MLP over its sources, and what is done to its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from symgnn.nn.parameters import reset_all
from symgnn.topology import Grid

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


class Form(nn.Module):
    """A phi of your own: made as `form(widths, out, hidden)`, it gets the value of each source.

    It has two halves, so that what belongs to a node is computed once per node and not once per
    edge or angle. :meth:`home` gets each value where it lives and may replace it, or leave it out
    with None; what it gives is lifted to the domain of the update, where :meth:`here` makes the
    result of it. `out` is the width of the result.
    """

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__()
        self.out = out

    def home(self, *values: Tensor) -> Sequence[Tensor | None]:
        """The values where they live, `[rows of their domain, w]` each."""
        return values

    def here(self, *values: Tensor) -> Tensor:
        """The result `[rows of the update, out]`, of the values that :meth:`home` gave."""
        raise TypeError(f"{type(self).__name__} has to say what it makes of its values")

    def total(self, grid: Grid, *values: Tensor) -> Tensor | None:
        """The sum of :meth:`here` over the second rays of each first one, `[R, out]`, if there is
        a faster way to it, for updates of angles. Values of rays are not lifted.
        """
        return None

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset_all(self)


@dataclass(frozen=True)
class After:
    """What is done to the result of an update, in this order."""

    activation: bool = False  # the swish once more
    gate: bool = False  # times the sigmoid of a linear map of itself
    residual: bool = False  # plus the old value

    def make(self, out: int) -> nn.Linear | None:
        """The map of the gate."""
        return nn.Linear(out, 1) if self.gate else None

    def activated(self, rows: Tensor) -> Tensor:
        """Before the gate `[rows, out]`."""
        return nn.functional.silu(rows) if self.activation else rows

    def gated(self, rows: Tensor, gate: nn.Module | None, old: Tensor | None) -> Tensor:
        """The result `[rows, out]`."""
        if gate is not None:
            rows = rows * torch.sigmoid(gate(rows))
        return rows if old is None else rows + old
