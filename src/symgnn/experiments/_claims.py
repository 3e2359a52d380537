"""Claims of the paper about two blocks on a dataset, goals, and whether they hold here.

A difference counts if it is larger than two standard errors. These include the initialisations
(the deviation of the paired differences over the root of their number; if the rows do not have the
same initialisations, the deviations of both) and the test set: each
test graph has a residual, how much it moves the score, and the deviation of the differences of the
residuals of both networks over the root of the number of graphs is what another test set would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from symgnn.report._record_lines import is_rising

Results = Mapping[str, Any]
#: True, False, "undecided" (within two standard errors), or None where a row is missing.
Holds = bool | Literal["undecided"] | None
ERRORS = 2


@dataclass(frozen=True)
class Claim:
    """`first` is above or below `second` in a test, or gets sooner to where that ends."""

    first: str
    how: Literal["above", "below", "sooner than"]
    second: str

    def check(self, rows: Sequence[Results], column: str, metric: str = "loss") -> dict[str, Any]:
        """`{"claim", "holds", "found"}`; `holds` is None where one of the rows is missing."""
        text = f"{self.first} is {self.how} {self.second}"
        by_block = {row["block"]: row for row in rows}
        if not {self.first, self.second} <= set(by_block):
            return {"claim": text, "holds": None, "found": "not all of its rows were run"}
        pair = by_block[self.first], by_block[self.second]
        holds: Holds
        if self.how == "sooner than":
            holds, found = _sooner(*pair, is_rising(metric))
        else:
            holds, found = _beyond(*pair, column, self.how)
        return {"claim": f"{text} in {column}", "holds": holds, "found": found}


@dataclass(frozen=True)
class Goal:
    """A bound that the mean test score of a block should reach."""

    block: str
    bound: float

    def check(
        self, rows: Sequence[Results], column: str, metric: str = "accuracy"
    ) -> dict[str, Any]:
        """As :meth:`Claim.check`."""
        rising = is_rising(metric)
        text = f"{self.block} is {'at least' if rising else 'at most'} {self.bound:g} in {column}"
        row = next((row for row in rows if row["block"] == self.block), None)
        if row is None:
            return {"claim": text, "holds": None, "found": "its row was not run"}
        mean = fmean(row["cells"][column]["values"])
        met = mean >= self.bound if rising else mean <= self.bound
        return {"claim": text, "holds": met, "found": f"{mean:.4f}"}


def difference_of(first: Results, second: Results, column: str) -> tuple[float, float]:
    """The mean difference of two rows in a column, and its standard error."""
    a, b = (row["cells"][column]["values"] for row in (first, second))
    squares = _initialisation_error(first, second, column) ** 2
    residuals = [row.get("residuals", {}).get(column) for row in (first, second)]
    if residuals[0] and residuals[1]:
        each = [x - y for x, y in zip(*residuals, strict=True)]
        squares += stdev(each) ** 2 / len(each) if len(each) > 1 else 0.0
    else:  # as if the test sets were not the same, which is more than it is
        errors = [row["cells"][column].get("test_error") or 0.0 for row in (first, second)]
        squares += sum(error**2 for error in errors)
    return fmean(a) - fmean(b), squares**0.5


def _initialisation_error(first: Results, second: Results, column: str) -> float:
    """The standard error of the mean difference of two rows, over initialisations.

    Rows with the same initialisations are compared in pairs. Otherwise, a row with a single one
    counts as if it varied as much as the other; 0 if both have one.
    """
    a, b = (row["cells"][column]["values"] for row in (first, second))
    if len(a) == len(b) and first.get("seeds") == second.get("seeds"):
        between = [x - y for x, y in zip(a, b, strict=True)]
        return float(stdev(between) / len(between) ** 0.5) if len(between) > 1 else 0.0
    known = [stdev(each) for each in (a, b) if len(each) > 1]
    if not known:
        return 0.0
    deviations = [stdev(each) if len(each) > 1 else known[0] for each in (a, b)]
    return float((deviations[0] ** 2 / len(a) + deviations[1] ** 2 / len(b)) ** 0.5)


def _beyond(first: Results, second: Results, column: str, how: str) -> tuple[Holds, str]:
    mean, error = difference_of(first, second, column)
    a, b = (fmean(row["cells"][column]["values"]) for row in (first, second))
    places = max(0, min(4, 3 - math.floor(math.log10(max(abs(a), abs(b), 1e-4)))))
    found = (
        f"{a:.{places}f} and {b:.{places}f}, a difference of {mean:+.{places}f}±{error:.{places}f} "
        f"({_name_of_error(first, second, column)})"
    )
    if abs(mean) <= ERRORS * error:
        return "undecided", found
    return (mean > 0 if how == "above" else mean < 0), found


def _name_of_error(first: Results, second: Results, column: str) -> str:
    """The name of a standard error; it says if initialisations are missing in it."""
    counts = [len(row["cells"][column]["values"]) for row in (first, second)]
    if max(counts) == 1:
        return "standard error over test graphs alone: one initialisation each"
    if min(counts) == 1:
        single = (first, second)[counts.index(1)]["block"]
        return f"standard error; {single} has one initialisation"
    return "standard error"


def _sooner(first: Results, second: Results, rising: bool) -> tuple[bool, str]:
    """Whether the first needs fewer epochs for the best test score that the second reaches."""
    curves = [row["curve"] for row in (first, second)]
    sign = -1 if rising else 1
    goal = min(sign * value for value in curves[1]["test_mean"])
    reached = [
        next(
            (e for e, v in zip(c["test_epoch"], c["test_mean"], strict=True) if sign * v <= goal),
            None,
        )
        for c in curves
    ]
    found = f"{second['block']} reaches {sign * goal:.4f} after epoch {reached[1]}, "
    found += f"{first['block']} "
    found += "not at all" if reached[0] is None else f"after epoch {reached[0]}"
    return reached[0] is not None and reached[0] < (reached[1] or 0), found
