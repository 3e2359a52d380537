"""The paper's figure on data efficiency: how many samples GN needs to do what symmetry gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from symgnn.data import Polytopes
from symgnn.data._polytope_sets import AFFINE_SETS
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._polytope_accuracy import accuracy_on
from symgnn.experiments._polytope_tables import COPIES, Row
from symgnn.experiments._polytope_training import train_network
from symgnn.experiments._resume import run_parts, write_results

NAME = "data-efficiency"
TITLE = "Accuracy against the number of samples per polytope, three dimensions"
DIMENSION = 3
#: One sample is the polytope itself; of more, each is transformed as in the test set.
SAMPLES = (1, 2, 5, 10, 20, 50, 100)
CURVE = Row("GN", "sum")
LINES = (Row("AGN", "sum"), Row("SDGN", "sum"), Row("DGN", "sum"))


def run_efficiency(
    directory: Path,
    *,
    seeds: int = 10,
    epochs: int = 1000,
    samples: Sequence[int] = SAMPLES,
    copies: int = COPIES,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train GN on growing sets and the others on one sample; give, and write, results.json."""
    settings = {"seeds": seeds, "epochs": epochs, "copies": copies}
    parts = {
        f"{row.block} {column} {count}": partial(
            run_point, row, column, count, seeds, epochs, copies
        )
        for column in AFFINE_SETS
        for row, counts in ((CURVE, samples), *((line, (1,)) for line in LINES))
        for count in counts
    }
    points = run_parts(parts, directory / "points", settings, epochs, console, engine)
    return write_results(
        directory,
        points,
        name=NAME,
        title=TITLE,
        seeds=seeds,
        epochs=epochs,
        dimension=DIMENSION,
        columns=list(AFFINE_SETS),
        samples=list(samples),
        curves=[_curve(column, points) for column in AFFINE_SETS],
        lines=[point for point in points if point["block"] != CURVE.block],
    )


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
    train = Polytopes(DIMENSION, None if samples == 1 else column, samples, seed=1)
    test = Polytopes(DIMENSION, column, copies, seed=1000, dtype=torch.float64)
    trained = train_network(row, train, DIMENSION, seeds, epochs, on_epoch=on_epoch)
    values = accuracy_on(trained.ensemble, test).accuracy
    return {
        "block": row.block,
        "aggregation": row.aggregation,
        "column": column,
        "samples": samples,
        "mean": float(values.mean()),
        "std": float(values.std()) if seeds > 1 else 0.0,
        "seconds": time.perf_counter() - began,
    }


def _curve(column: str, points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    mine = [p for p in points if (p["block"], p["column"]) == (CURVE.block, column)]
    return {
        "block": CURVE.block,
        "aggregation": CURVE.aggregation,
        "column": column,
        "mean": [p["mean"] for p in mine],
        "std": [p["std"] for p in mine],
    }
