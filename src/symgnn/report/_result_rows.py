"""Results as rows of cells, and the words and numbers they are shown with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Results = Mapping[str, Any]
Row = Mapping[str, Any]
Cell = Mapping[str, Any]

_SHORT = {
    "orthogonal": "orth.",
    "orthogonal+dilation": "+dil.",
    "special-conformal": "conf.",
}
_LONG = {
    "train": "training graphs",
    "orthogonal": "rotated and reflected",
    "orthogonal+dilation": "rotated, reflected and dilated",
    "special-conformal": "special conformal",
}
_MU = re.compile(r"non-orthogonal mu=(.+)")


def is_efficiency(results: Results) -> bool:
    """Whether the results are accuracies against the number of samples."""
    return "rows" not in results


def rows_of(results: Results) -> list[Row]:
    """The rows, those of a block together.

    Of the data-efficiency experiment there is one per block, aggregation and number of samples.
    """
    if not is_efficiency(results):
        blocks = list(dict.fromkeys(row["block"] for row in results["rows"]))
        return sorted(results["rows"], key=lambda row: blocks.index(row["block"]))
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}

    def put(entry: Mapping[str, Any], samples: int, mean: float, std: float | None) -> None:
        key = (entry["block"], entry["aggregation"], samples)
        row = rows.setdefault(
            key, {"block": key[0], "aggregation": key[1], "samples": samples, "cells": {}}
        )
        row["cells"][entry["column"]] = {"mean": mean, "std": std, "verdict": "new"}

    for line in results["lines"]:
        put(line, 1, line["mean"], line.get("std"))
    for curve in results["curves"]:
        for samples, mean, std in zip(results["samples"], curve["mean"], curve["std"], strict=True):
            put(curve, samples, mean, std)
    return list(rows.values())


def cells_of(results: Results) -> Iterator[tuple[Row, str, Cell]]:
    """Every cell there is, with its row and column."""
    for row in rows_of(results):
        for column in results["columns"]:
            cell = row["cells"].get(column)
            if cell is not None:
                yield row, column, cell


def setting(row: Row) -> str:
    """The description of a row without its block: `mean, identity`, or `sum, 5 samples`."""
    words = [row.get("aggregation"), row.get("coordinate_map")]
    if "samples" in row:
        words.append("1 sample" if row["samples"] == 1 else f"{row['samples']} samples")
    return ", ".join(word for word in words if word)


def label(row: Row) -> str:
    """The row's name: `AGN, mean, identity`."""
    return ", ".join(word for word in (row["block"], setting(row)) if word)


def short_head(column: str) -> str:
    """A column's name in a few characters."""
    mu = _MU.fullmatch(column)
    return f"μ={_trim(mu[1])}" if mu else _SHORT.get(column, column)


def long_head(column: str) -> str:
    """A column's name in words."""
    mu = _MU.fullmatch(column)
    return f"non-orthogonal, μ = {_trim(mu[1])}" if mu else _LONG.get(column, column)


def number(mean: float | None, std: float | None = None) -> str:
    """`0.96±0.04`; a deviation that is zero or not given is left out, no number is a dash."""
    if mean is None:
        return "–"
    deviation = "" if std is None else f"{std:.2f}"
    return f"{mean:.2f}" if deviation in ("", "0.00") else f"{mean:.2f}±{deviation}"


def ours(cell: Cell | None) -> str:
    """The measured number of a cell."""
    return "–" if cell is None else number(cell["mean"], cell.get("std"))


def papers(cell: Cell | None) -> str | None:
    """The paper's number of a cell, if it has one."""
    if cell is None or cell.get("paper_mean") is None:
        return None
    return number(cell["paper_mean"], cell.get("paper_std"))


def _trim(value: str) -> str:
    return value[:-2] if value.endswith(".0") else value
