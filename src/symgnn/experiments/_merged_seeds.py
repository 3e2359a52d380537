"""Two rows of one network with different initialisations, as one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Cell = Mapping[str, Any]
Row = Mapping[str, Any]
#: Fields that add up; records of earlier versions have no processor time.
SECONDS = ("training_seconds", "seconds", "processor_seconds")


def merged(
    first: Row, second: Row, cell: Callable[[str, str, list[float]], Cell]
) -> dict[str, Any]:
    """The row of all initialisations of two rows of results.json.

    Scores are put together seed by seed. Curves, of which a row has the mean and the deviation over
    its seeds (fields "x_mean" and "x_std", or "mean" and "std"), get those over all seeds. The
    standard error over the test graphs is the mean of both, which is what it would be if all
    initialisations erred on the same graphs, and else more than it would be.

    Args:
        first: A row, with "seeds".
        second: A row of the same network, with other seeds.
        cell: Makes a cell of a block, a column and one value for each seed.
    """
    for field in ("parameters", "symmetry"):
        if first[field] != second[field]:
            raise ValueError(
                f"--join: {first['block']} has {field} {first[field]!r} in one file and "
                f"{second[field]!r} in another; run it again with all initialisations"
            )
    seeds = sorted([*first["seeds"], *second["seeds"]])
    counts = len(first["seeds"]), len(second["seeds"])

    def in_order(one: list[Any], other: list[Any]) -> list[Any]:
        by_seed = dict(zip((*first["seeds"], *second["seeds"]), (*one, *other), strict=True))
        return [by_seed[seed] for seed in seeds]

    cells = {}
    for column in first["cells"]:
        if column not in second["cells"]:  # a second test set that was not at hand
            continue
        both = first["cells"][column], second["cells"][column]
        errors = [each.get("test_error") for each in both]
        cells[column] = {
            **cell(first["block"], column, in_order(*(each["values"] for each in both))),
            "test_error": None if None in errors else _mean(errors[0], errors[1], counts),
        }
    commits = dict.fromkeys(c for row in (first, second) for c in row["commit"].split(", "))
    best = {}
    if "best_epochs" in first and "best_epochs" in second:
        best = {"best_epochs": in_order(first["best_epochs"], second["best_epochs"])}
    return {
        **{name: value for name, value in first.items() if name != "residuals"},
        "commit": ", ".join(commits),
        "seeds": seeds,
        **{
            name: first[name] + second[name]
            for name in SECONDS
            if {name} <= first.keys() & second.keys()
        },
        "cells": cells,
        "curve": _merged_curves(first["curve"], second["curve"], counts),
        **best,
    }


def _merged_curves(first: Any, second: Any, counts: tuple[int, int]) -> dict[str, Any]:
    """Curves with means and deviations over all seeds; see :func:`merged`."""
    found: dict[str, Any] = {}
    for name, value in first.items():
        if isinstance(value, dict):
            found[name] = _merged_curves(value, second[name], counts)
        elif name == "mean" or name.endswith("_mean"):
            spread = name.removesuffix("mean") + "std"
            points = zip(value, first[spread], second[name], second[spread], strict=True)
            each = [_together(point, counts) for point in points]
            found[name], found[spread] = [m for m, _ in each], [s for _, s in each]
        elif name not in found:
            if value != second[name]:
                raise ValueError(
                    f"--join: two rows of one network differ in {name} of their curves"
                )
            found[name] = value
    return found


def _together(
    point: tuple[float, float, float, float], counts: tuple[int, int]
) -> tuple[float, float]:
    """Mean and deviation of two samples together, of the mean and the deviation of each."""
    (m, n), (a, s, b, t) = counts, point
    mean = (m * a + n * b) / (m + n)
    squares = (m - 1) * s**2 + (n - 1) * t**2 + m * (a - mean) ** 2 + n * (b - mean) ** 2
    return mean, float((squares / (m + n - 1)) ** 0.5)


def _mean(first: float, second: float, counts: tuple[int, int]) -> float:
    return (counts[0] * first + counts[1] * second) / sum(counts)
