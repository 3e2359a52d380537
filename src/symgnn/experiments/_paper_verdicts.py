"""Whether a cell is what theory fixes, or near what the paper reports."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from statistics import fmean, stdev
from typing import Any

from symgnn.report import ERRORS, NEAR

#: The initialisations on the paper's side.
PAPER_SEEDS = 10
#: The graphs of a class in the paper's test sets, of which it names no number: cells of a row that
#: deviate by 0.01 over initialisations scatter by 0.1 from set to set, as those of 15 would.
PAPER_COPIES = 15


def verdict(
    values: list[float],
    *,
    fixed: list[float] | Fraction | None,
    paper_mean: float | None,
    error: float = 0.0,
    near: float = NEAR,
) -> str:
    """One of exact, violated, within, differs, new.

    `fixed` is what theory says: one number for all seeds, or one for each. Where there is none, the
    mean must be within max(`near`, 3 `error`) of the paper's, `error` being the standard error of
    the difference.
    """
    if fixed is not None:
        expected = [float(fixed)] * len(values) if isinstance(fixed, Fraction) else fixed
        met = all(abs(a - b) < 1e-6 for a, b in zip(values, expected, strict=True))
        return "exact" if met else "violated"
    if paper_mean is None:
        return "new"
    return "within" if abs(fmean(values) - paper_mean) <= max(near, ERRORS * error) else "differs"


def difference_error(
    values: list[float], paper_std: float | None, sampling: float = 0.0, ours: int = 0
) -> float:
    """The standard error of the difference between our mean and the paper's.

    Args:
        values: Ours, one for each initialisation.
        paper_std: The deviation over initialisations that the paper reports.
        sampling: The deviation of an accuracy if its test set had one graph a class.
        ours: The graphs of a class in our test set; 0 without a test set that is drawn.

    Returns:
        The root of the sum of squares: both sides over initialisations, and over test sets.
    """
    squares = spread(values) ** 2 / len(values) + (paper_std or 0.0) ** 2 / PAPER_SEEDS
    if ours:
        squares += sampling**2 * (1 / ours + 1 / PAPER_COPIES)
    return float(squares**0.5)


def kind_of(fixed: bool, paper_mean: float | None, paper_std: float | None, classes: int) -> str:
    """How much a cell of the paper says: fixed, trivial, open; "new" where the paper has none.

    "trivial": the paper has exactly 1, or exactly chance (to its two digits), without a deviation.
    """
    if paper_mean is None:
        return "new"
    if fixed:
        return "fixed"
    plain = not paper_std and paper_mean in (1.0, round(1 / classes, 2))
    return "trivial" if plain else "open"


def measured(
    values: list[float],
    paper: Mapping[str, Any],
    fixed: list[float] | Fraction | None = None,
    near: float = NEAR,
    error: float | None = None,
) -> dict[str, Any]:
    """A cell of results.json, of one value for each seed and what the paper reports."""
    theirs = {"paper_mean": paper["mean"], "paper_std": paper["std"]}
    if error is None:
        error = difference_error(values, paper["std"])
    return {
        "mean": fmean(values),
        "std": spread(values),
        **theirs,
        "verdict": verdict(values, fixed=fixed, paper_mean=paper["mean"], error=error, near=near),
        "values": values,
        "error": error if paper["mean"] is not None else None,
    }


def spread(values: list[float]) -> float:
    """Their deviation; that of one is 0."""
    return stdev(values) if len(values) > 1 else 0.0
