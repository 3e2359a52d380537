"""Whether a cell is what theory fixes, or near what the paper reports."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from statistics import fmean, stdev
from typing import Any


def verdict(
    values: list[float],
    *,
    fixed: list[float] | Fraction | None,
    paper_mean: float | None,
    paper_std: float | None,
    near: float = 0.15,
) -> str:
    """One of exact, violated, within, differs, new.

    `fixed` is what theory says: one number for all seeds, or one for each. Where there is none,
    the mean must be within max(`near`, 3 deviations) of the paper's.
    """
    if fixed is not None:
        expected = [float(fixed)] * len(values) if isinstance(fixed, Fraction) else fixed
        met = all(abs(a - b) < 1e-6 for a, b in zip(values, expected, strict=True))
        return "exact" if met else "violated"
    if paper_mean is None:
        return "new"
    mean = sum(values) / len(values)
    return "within" if abs(mean - paper_mean) <= max(near, 3 * (paper_std or 0)) else "differs"


def measured(
    values: list[float],
    paper: Mapping[str, Any],
    fixed: list[float] | Fraction | None = None,
    near: float = 0.15,
) -> dict[str, Any]:
    """A cell of results.json, of one value for each seed and what the paper reports."""
    theirs = {"paper_mean": paper["mean"], "paper_std": paper["std"]}
    return {
        "mean": fmean(values),
        "std": spread(values),
        **theirs,
        "verdict": verdict(values, fixed=fixed, near=near, **theirs),
        "values": values,
    }


def spread(values: list[float]) -> float:
    """Their deviation; that of one is 0."""
    return stdev(values) if len(values) > 1 else 0.0
