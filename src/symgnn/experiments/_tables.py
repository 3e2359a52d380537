"""Runs a table of the paper, row by row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.console import Console
from torch import Tensor

from symgnn.data import Polytopes
from symgnn.data._polytope_sets import Law
from symgnn.experiments import _paper as paper
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._joined_rows import is_joined, read_rows, with_joined
from symgnn.experiments._paper_verdicts import difference_error, kind_of, measured
from symgnn.experiments._polytope_accuracy import SetAccuracy, accuracy_on, keeps, known_train
from symgnn.experiments._polytope_tables import (
    COLUMNS,
    COPIES,
    READING,
    TABLES,
    PaperReading,
    PolytopeTable,
    Row,
)
from symgnn.experiments._polytope_training import Model, train_network
from symgnn.experiments._resume import run_parts, write_results

R = TypeVar("R", bound=Row)


def choose_rows(name: str, rows: Sequence[R], chosen: Sequence[str] | None) -> list[R]:
    """The rows that have all words of one of the chosen, such as "agn sum".

    Rows by another reading, such as "agn torch", are chosen only if it is named.
    """
    if not chosen:
        return list(rows)
    found: list[R] = []
    for words in chosen:
        wanted = set(words.lower().split())
        these = [row for row in rows if wanted <= set(str(row).lower().split())]
        if not these:
            known = "; ".join(str(row) for row in rows)
            raise ValueError(f"--rows: no row of {name} is {words!r}; it has: {known}")
        found += [row for row in these if not getattr(row, "reading", "")] or these
    return [row for row in rows if row in found]


def run_table(
    table: PolytopeTable,
    directory: Path,
    *,
    seeds: int = 10,
    epochs: int = 1000,
    rows: Sequence[Row] | None = None,
    node_features: bool | str = False,
    copies: int = COPIES,
    reading: PaperReading = READING,
    trained: Path | None = None,
    join: Sequence[Path] | None = None,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train and test the rows of a table; write and return its results.json.

    Rows that an earlier run with the same settings completed are reused, and so are trained
    networks in the folder `trained`, where new ones are saved. Rows of the results.json files in
    `join`, possibly of other versions, are shown with them; without `rows`, only the rows that
    these files lack are run.
    """
    settings = {
        "table": table.name,
        "seeds": seeds,
        "epochs": epochs,
        "node_features": node_features,
        "copies": copies,
        "reading": reading.key,
    }
    same = {
        "name": table.name,
        "seeds": list(range(seeds)),
        "epochs": epochs,
        "node_features": node_features,
        "copies": copies,
        "reading": reading.key,
    }
    joined = [row for file in join or () for row in read_rows(file, same)]
    if rows is None:
        rows = [row for row in table.rows if not is_joined(row.key, joined)]
    given = (seeds, epochs, node_features, copies, reading, trained)
    parts = {str(row): partial(run_row, table.name, row, *given) for row in rows}
    done = run_parts(parts, directory / "rows", settings, epochs, console, engine)
    done = with_joined(done, joined, [row.key for row in table.rows])
    return write_results(
        directory,
        done,
        name=table.name,
        title=table.title,
        seeds=seeds,
        epochs=epochs,
        dimension=table.dimension,
        classes=Polytopes(table.dimension).names,
        columns=list(COLUMNS),
        rows=done,
        node_features=node_features,
        copies=copies,
        reading=reading.key,
    )


@cache
def drawn_set(
    dimension: int, column: str, copies: int, features: bool | str, law: Law
) -> Polytopes:
    """A test set, in float64; of the column "train" the training set."""
    return Polytopes(
        dimension,
        None if column == "train" else column,
        copies,
        seed=1000 + COLUMNS.index(column),
        node_features=features,
        dtype=torch.float64,
        law=law,
    )


def features_of(row: Row, node_features: bool | str, reading: PaperReading) -> bool | str:
    """The node features that a row is given."""
    if node_features or row.block != "GN":
        return node_features
    return "constant" if reading.constant else False


def kept_file(
    trained: Path | None, row: Row, dimension: int, features: bool | str, scaling: float | None
) -> Path | None:
    """Where the trained network of a row is kept."""
    if trained is None:
        return None
    name = "-".join(str(row).split())
    name += f"-{features}".replace(" ", "-") if features else ""
    name += f"-{scaling:g}" if scaling is not None else ""
    return trained / f"{dimension}d" / f"{name}.ckpt"


def run_row(
    name: str,
    row: Row,
    seeds: int,
    epochs: int,
    node_features: bool | str,
    copies: int,
    reading: PaperReading = READING,
    trained: Path | None = None,
    on_epoch: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """Train one network of a table in all initialisations together, and test it."""
    began = time.perf_counter()
    table = TABLES[name]
    n, features = table.dimension, features_of(row, node_features, reading)
    train = Polytopes(n, node_features=features)
    classes = len(train.names)
    scaling = reading.scaling if row.block == "SDGN" else None
    kept = kept_file(trained, row, n, features, scaling)
    found = train_network(row, train, n, seeds, epochs, on_epoch, scaling=scaling, kept=kept)
    network = found.ensemble.model
    assert isinstance(network, Model)
    results = {
        column: accuracy_on(
            found.ensemble,
            drawn_set(n, column, copies, features, reading.law),
            column == "train" or keeps(network.symmetry, column),
        )
        for column in COLUMNS
    }
    return {
        **row.key,
        "parameters": sum(p.numel() for p in network.parameters()),
        "symmetry": str(network.symmetry),
        "seconds": time.perf_counter() - began,
        "cells": _cells(table, row, network, results, classes, node_features, copies),
        "confusion": {column: each.confusion.mean(0).tolist() for column, each in results.items()},
        "curve": loss_curve(found.losses),
    }


def _cells(
    table: PolytopeTable,
    row: Row,
    network: Model,
    results: dict[str, SetAccuracy],
    classes: int,
    node_features: bool | str,
    copies: int,
) -> dict[str, Any]:
    cells = {}
    in_train = results["train"].accuracy.tolist()
    for column, each in results.items():
        theirs: dict[str, Any] = {"mean": None, "std": None}
        # the paper's numbers are for graphs without node features
        if not node_features and table.paper:
            theirs = paper.cell(table.paper, row.block, row.aggregation, row.coordinate_map, column)
        fixed: Any = None
        if column == "train":
            fixed = None if node_features else known_train(row, table.dimension, classes)
        # marks that are drawn anew for every copy are no transformation of those in training
        elif keeps(network.symmetry, column) and node_features != "half marked":
            fixed = in_train
        cells[column] = compared(each, theirs, fixed, classes, 0 if column == "train" else copies)
    return cells


def compared(
    each: SetAccuracy, theirs: dict[str, Any], fixed: Any, classes: int, copies: int
) -> dict[str, Any]:
    """A cell of results.json, with its verdict and how much it says."""
    values = each.accuracy.tolist()
    error = difference_error(values, theirs["std"], each.sampling, copies)
    return {
        **measured(values, theirs, fixed, error=error),
        "sampling": each.sampling,
        "kind": kind_of(fixed is not None, theirs["mean"], theirs["std"], classes),
    }


def loss_curve(losses: Tensor, points: int = 200) -> dict[str, list[float]]:
    """The losses at some epochs: mean and deviation over the seeds."""
    if not len(losses):
        return {"epoch": [], "loss_mean": [], "loss_std": []}
    at = torch.linspace(0, len(losses) - 1, min(points, len(losses))).round().long()
    spread = losses.std(1) if losses.shape[1] > 1 else torch.zeros(len(losses))
    return {
        "epoch": at.tolist(),
        "loss_mean": losses.mean(1)[at].tolist(),
        "loss_std": spread[at].tolist(),
    }
