"""Products of residuals and functions of graphs, of which the sums are judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Products(NamedTuple):
    """Numbers `[M, a]` and `[M, b]`: the sums over M of their products are judged."""

    one: Tensor  # residuals
    other: Tensor  # functions
    group: Tensor  # [b]: functions with the same number are judged together
    row: Tensor | None = None  # [M], the row of the targets; None where no effect is to be told
    weight: Tensor | None = None  # [M], of the functions in the mean over the row


#: Of the data (False) or of a new copy (True).
Draw = Callable[[bool], list[Products]]


def one_group(columns: int) -> Tensor:
    """The group of functions that are judged together, `[columns]`."""
    return torch.zeros(columns, dtype=torch.long)


def with_one(features: Tensor) -> Tensor:
    """A column of ones before features, `[M, F] -> [M, 1 + F]`."""
    return torch.cat([torch.ones(len(features), 1, dtype=torch.float64), features], 1)
