"""How graphs are divided: at random, by a column, in whole groups or by scaffold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch_geometric.data import Data

from symgnn._argument_checks import check_count, unknown_name
from symgnn.data._task import Task
from symgnn.data.files._graph_list import Graphs
from symgnn.data.files._metadata import called, column_of
from symgnn.data.files._partition import (
    divide,
    divide_folds,
    divide_groups,
    divide_groups_folds,
)
from symgnn.data.files._scaffolds import scaffolds_of

#: How graphs can be divided.
WAYS = ("random", "column", "group", "scaffold")
FRACTIONS = (0.8, 0.1, 0.1)
#: The names of the parts in a column.
PARTS = {"train": 0, "training": 0, "validation": 1, "valid": 1, "val": 1, "dev": 1, "test": 2}


@dataclass(frozen=True)
class Division:
    """How graphs are divided: `by` is one of :data:`WAYS`, `column` says by which column."""

    by: str
    column: str | None = None

    @staticmethod
    def of(by: str | None, column: str | None) -> Division:
        """Checked; a column alone names the parts."""
        by = by or ("random" if column is None else "column")
        if by not in WAYS:
            raise ValueError(unknown_name("by", by, WAYS, "a way to divide graphs"))
        if column is not None and not isinstance(column, str):
            raise ValueError(f"column: is {column!r}; give the name of one column")
        if by in ("column", "group") and not column:
            raise ValueError(f"column: is missing; by: {by} needs the name of a column")
        if by in ("random", "scaffold") and column:
            raise ValueError(f"column: is {column!r}, which by: {by} does not use; remove it")
        return Division(by, column)

    def keys(self, graphs: Graphs) -> list[str]:
        """Of each graph its group, scaffold, part or fold."""
        if self.by == "scaffold":
            return scaffolds_of(graphs, graphs.metadata)
        assert self.column is not None
        return column_of(graphs, graphs.metadata, self.column)

    def parts(
        self, graphs: Graphs, task: Task, fractions: Sequence[float] | None, seed: int
    ) -> list[list[int]]:
        """The indices of the graphs to train on, to choose by and to measure on."""
        if self.by == "column":
            if fractions is not None:
                raise ValueError("fractions: the column defines the parts; remove fractions")
            return _named_parts(graphs, self.keys(graphs), str(self.column))
        shares = check_fractions(FRACTIONS if fractions is None else fractions)
        if self.by == "random":
            return divide(labels_of(graphs, task), shares, seed)
        if self.by == "scaffold":
            return divide_groups(self.keys(graphs), shares, None, "scaffold")
        return divide_groups(self.keys(graphs), shares, seed)

    def folds(self, graphs: Graphs, task: Task, k: int | None, seed: int) -> list[list[int]]:
        """The indices of each fold."""
        if k is not None:
            check_count("k", k, 2)
        if self.by == "column":
            keys = self.keys(graphs)
            names = sorted(set(keys), key=_in_order)
            if len(names) < 2 or (k is not None and k != len(names)):
                raise ValueError(
                    f"k: is {k}, but column {self.column!r} names {len(names)} folds "
                    f"({', '.join(names[:6])}); give their number, or remove k"
                )
            return [[i for i, key in enumerate(keys) if key == name] for name in names]
        k = 5 if k is None else k
        if self.by == "random":
            return divide_folds(labels_of(graphs, task), k, seed)
        return divide_groups_folds(self.keys(graphs), k, seed, self.by)


def _named_parts(graphs: Graphs, keys: Sequence[str], column: str) -> list[list[int]]:
    """The graphs that a column calls train, validation and test."""
    parts: list[list[int]] = [[], [], []]
    for index, key in enumerate(keys):
        if key.lower() not in PARTS:
            raise ValueError(
                f"column: {called(graphs[index], index)} has {key!r} in {column!r}; give train, "
                "validation or test"
            )
        parts[PARTS[key.lower()]].append(index)
    for name, part in zip(("train", "validation", "test"), parts, strict=True):
        if not part:
            raise ValueError(
                f"column: {column!r} names no graph {name!r}; give each part at least one graph"
            )
    return parts


def _in_order(name: str) -> tuple[float, str]:
    """Numbers by their value, text by the alphabet."""
    try:
        return float(name), name
    except ValueError:
        return math.inf, name


def check_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    """Three parts of a whole."""
    try:
        values = tuple(float(fraction) for fraction in fractions)
    except (TypeError, ValueError):
        raise ValueError(
            f"fractions: are {fractions!r}; give three, such as 0.8, 0.1, 0.1"
        ) from None
    if len(values) != 3 or min(values) < 0 or abs(sum(values) - 1) > 1e-6 or not values[0]:
        raise ValueError(
            f"fractions: are {list(fractions)}; give three that add up to 1, such as 0.8, 0.1, 0.1"
        )
    return values


def labels_of(graphs: Sequence[Data], task: Task) -> list[int]:
    """The class of each graph, 0 for all if graphs have none."""
    if task.level != "graph" or task.kind != "classification":
        return [0] * len(graphs)
    return [int(graph.y) for graph in graphs]
