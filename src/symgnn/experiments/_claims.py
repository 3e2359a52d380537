"""Claims of the paper about two blocks on a dataset, and whether they hold here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """`first` is above or below `second` in a test, or gets sooner to where that ends."""

    first: str
    how: Literal["above", "below", "sooner than"]
    second: str

    def check(self, rows: Sequence[Results], column: str) -> dict[str, Any]:
        """`{"claim", "holds", "found"}`; `holds` is None where one of the rows is missing."""
        text = f"{self.first} is {self.how} {self.second}"
        by_block = {row["block"]: row for row in rows}
        if not {self.first, self.second} <= set(by_block):
            return {"claim": text, "holds": None, "found": "not all of its rows were run"}
        pair = by_block[self.first], by_block[self.second]
        check = _sooner if self.how == "sooner than" else _beyond
        holds, found = check(*pair, column, self.how)
        return {"claim": f"{text} in {column}", "holds": holds, "found": found}


def _beyond(first: Results, second: Results, column: str, how: str) -> tuple[bool, str]:
    """By the means over the initialisations; the deviation says how far to trust it."""
    a, b = (row["cells"][column]["values"] for row in (first, second))
    between = [x - y for x, y in zip(a, b, strict=True)]
    mean = fmean(between)
    found = f"{fmean(a):.4f} and {fmean(b):.4f}, a difference of {mean:+.4f}"
    if len(between) > 1:
        error = stdev(between) / len(between) ** 0.5
        found += f"±{error:.4f} (standard error over {len(between)} initialisations)"
    return (mean > 0 if how == "above" else mean < 0), found


def _sooner(first: Results, second: Results, column: str, how: str) -> tuple[bool, str]:
    """Whether the first needs fewer epochs for the lowest test error that the second reaches."""
    curves = [row["curve"] for row in (first, second)]
    goal = min(curves[1]["test_mean"])
    reached = [
        next((e for e, v in zip(c["test_epoch"], c["test_mean"], strict=True) if v <= goal), None)
        for c in curves
    ]
    found = f"{second['block']} reaches {goal:.4f} after epoch {reached[1]}, {first['block']} "
    found += "not at all" if reached[0] is None else f"after epoch {reached[0]}"
    return reached[0] is not None and reached[0] < (reached[1] or 0), found
