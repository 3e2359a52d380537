"""Many graphs in a few flat arrays, made into `Data` when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, overload

import numpy as np
from torch_geometric.data import Data

from symgnn._argument_checks import check_count

#: Signature: row -> Data
Build: TypeAlias = Callable[[int], Data]


class PackedGraphs(Sequence[Data]):
    """The graphs that `build` makes of the given rows, one at a time.

    All edges of 55,000 superpixel graphs would take half a gigabyte as `edge_index`; what they are
    made of takes a tenth of that.
    """

    def __init__(self, build: Build, rows: np.ndarray) -> None:
        self.build = build
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Data: ...

    @overload
    def __getitem__(self, place: slice) -> PackedGraphs: ...

    def __getitem__(self, place: int | slice) -> Data | PackedGraphs:
        if isinstance(place, slice):
            return PackedGraphs(self.build, self.rows[place])
        return self.build(int(self.rows[place]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"


def limits(limit: int | Sequence[int] | None) -> tuple[int | None, int | None, int | None]:
    """How many graphs of each split: all, at most one number, or a number for each of the three."""
    if limit is None:
        return None, None, None
    listed = list(limit) if isinstance(limit, Sequence) and not isinstance(limit, str) else [limit]
    if len(listed) not in (1, 3):
        raise ValueError(
            f"limit: {limit!r} is not possible; pass a number, or one for each of train, "
            "validation and test"
        )
    first, second, third = (check_count("limit", each, 1) for each in (listed * 3)[:3])
    return first, second, third


def starts(counts: np.ndarray) -> np.ndarray:
    """Where each of parts of these sizes begins among all, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
