"""The paper's figure on data efficiency: how many samples GN needs to do what symmetry gives."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from symgnn.data import Polytopes
from symgnn.data._polytope_sets import AFFINE_SETS, READ
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._joined_rows import read_rows
from symgnn.experiments._polytope_accuracy import accuracy_on
from symgnn.experiments._polytope_tables import COPIES, Row
from symgnn.experiments._polytope_training import train_network
from symgnn.experiments._resume import run_parts, write_results

NAME = "data-efficiency"
TITLE = "Accuracy against the number of samples per polytope, three dimensions"
DIMENSION = 3
#: The polytope itself is the first sample; the others are transformed as in the test set.
SAMPLES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
#: "20 samples per polytope may be sufficient": judged by this accuracy, fixed before the run.
ENOUGH, ABOUT = 0.9, 20
CURVE = Row("GN", "sum")
#: Fields of a point in results.json that other runs read.
POINT = ("block", "column", "samples", "mean", "std", "seconds")
LINES = (Row("AGN", "sum"), Row("SDGN", "sum"), Row("DGN", "sum"))


def run_efficiency(
    directory: Path,
    *,
    seeds: int = 10,
    epochs: int = 1000,
    samples: Sequence[int] = SAMPLES,
    copies: int = COPIES,
    join: Sequence[Path] | None = None,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train GN on growing sets and the others on one sample; write and return results.json.

    Args:
        directory: For results.json, and the points as they complete.
        seeds: The number of initialisations.
        epochs: The length of each training.
        samples: The numbers of samples per polytope.
        copies: Test graphs per polytope.
        join: results.json files with the same settings: their points are not run again, and their
            numbers of samples are shown as well.
        engine: Where points are run.
        console: Where progress is shown.
    """
    settings = {"seeds": seeds, "epochs": epochs, "copies": copies, "law": asdict(READ)}
    same = {"name": NAME, "settings": settings}
    points = {
        _name(point): point
        for file in join or ()
        for point in read_rows(file, same, key="points", fields=POINT)
    }
    shown = sorted({*samples, *(p["samples"] for p in points.values() if _is_of_curve(p))})
    wanted = {
        _name({**row.key, "column": column, "samples": count}): partial(
            run_point, row, column, count, seeds, epochs, copies
        )
        for column in AFFINE_SETS
        for row, counts in ((CURVE, shown), *((line, (1,)) for line in LINES))
        for count in counts
    }
    missing = {name: part for name, part in wanted.items() if name not in points}
    done = run_parts(missing, directory / "points", settings, epochs, console, engine)
    points |= {_name(point): point for point in done}
    found = [points[name] for name in wanted]
    curves = [_curve(column, found) for column in AFFINE_SETS]
    return write_results(
        directory,
        found,
        name=NAME,
        title=TITLE,
        seeds=seeds,
        epochs=epochs,
        settings=settings,
        dimension=DIMENSION,
        columns=list(AFFINE_SETS),
        samples=shown,
        points=found,
        curves=curves,
        judged=judged(curves, shown),
        lines=[point for point in found if not _is_of_curve(point)],
    )


def _name(point: Mapping[str, Any]) -> str:
    return f"{point['block']} {point['column']} {point['samples']}"


def _is_of_curve(point: Mapping[str, Any]) -> bool:
    return bool(point["block"] == CURVE.block)


class Samples(Polytopes):
    """Each polytope as it is, and `samples - 1` transformed copies of it."""

    def __init__(self, dimension: int, column: str, samples: int) -> None:
        super().__init__(dimension)
        graphs = [self[k] for k in range(len(self))]
        if samples > 1:
            moved = Polytopes(dimension, column, samples - 1, seed=1)
            graphs += [moved[k] for k in range(len(moved))]
        self.data, self.slices = self.collate(graphs)
        self._data_list = None


def judged(curves: Sequence[dict[str, Any]], samples: Sequence[int]) -> list[dict[str, Any]]:
    """Claims of the paper on the curves, and whether they hold: `{"claim", "holds", "found"}`.

    A set is learnt from the first number of samples on from which the mean accuracy stays at least
    0.9. "20 samples per polytope may be sufficient when only orthogonal transformations are
    considered" holds if that number is at most 20 for them; "dilations and non-orthogonal
    transformations further increase the number" holds for a set whose number is larger than theirs,
    and is not decided (None) if neither is reached.
    """
    need = {curve["column"]: _needed(curve["mean"], samples) for curve in curves}
    words = {name: f"{n} samples" if n else f"more than {max(samples)}" for name, n in need.items()}
    first = need["orthogonal"]
    found = [
        {
            "claim": f"{ABOUT} samples are enough for orthogonal maps",
            "holds": first is not None and first <= ABOUT,
            "found": words["orthogonal"],
        }
    ]
    for name, number in need.items():
        if name != "orthogonal":
            one, other = (math.inf if n is None else n for n in (number, first))
            more = None if math.isinf(min(one, other)) else one > other
            text = f"{words[name]}, {words['orthogonal']} for orthogonal maps"
            claim = f"{name} needs more samples than orthogonal maps"
            found.append({"claim": claim, "holds": more, "found": text})
    return found


def _needed(means: Sequence[float], samples: Sequence[int]) -> int | None:
    """The first number of samples from which on the accuracy stays enough; None for none."""
    below = [count for count, mean in zip(samples, means, strict=True) if mean < ENOUGH]
    if not below:
        return samples[0]
    after = [count for count in samples if count > below[-1]]
    return after[0] if after else None


def run_point(
    row: Row,
    column: str,
    samples: int,
    seeds: int,
    epochs: int,
    copies: int,
    on_epoch: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """Train one network on `samples` of each polytope and test it on transformed ones."""
    began = time.perf_counter()
    train = Samples(DIMENSION, column, samples)
    test = Polytopes(DIMENSION, column, copies, seed=1000, dtype=torch.float64)
    trained = train_network(row, train, DIMENSION, seeds, epochs, on_epoch=on_epoch)
    values = accuracy_on(trained.ensemble, test).accuracy
    return {
        "block": row.block,
        "aggregation": row.aggregation,
        "column": column,
        "samples": samples,
        "seeds": list(range(seeds)),
        "mean": float(values.mean()),
        "std": float(values.std()) if seeds > 1 else 0.0,
        "seconds": time.perf_counter() - began,
    }


def _curve(column: str, points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    mine = [p for p in points if _is_of_curve(p) and p["column"] == column]
    return {
        "block": CURVE.block,
        "aggregation": CURVE.aggregation,
        "column": column,
        "mean": [p["mean"] for p in mine],
        "std": [p["std"] for p in mine],
    }
