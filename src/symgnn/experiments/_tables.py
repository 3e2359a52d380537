"""Runs a table of the paper, row by row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from symgnn.data import Polytopes
from symgnn.experiments import _paper as paper
from symgnn.experiments import _polytope_tables as polytope_tables
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._paper_verdicts import measured
from symgnn.experiments._polytope_tables import COLUMNS, TABLES, PolytopeTable, Row
from symgnn.experiments._resume import run_parts, write_results


def choose_rows(name: str, rows: Sequence[Row], chosen: Sequence[str] | None) -> list[Row]:
    """The rows that have all words of one of the chosen, such as "agn sum"."""
    if not chosen:
        return list(rows)
    found: list[Row] = []
    for words in chosen:
        wanted = set(words.lower().split())
        these = [row for row in rows if wanted <= set(str(row).lower().split())]
        if not these:
            known = "; ".join(str(row) for row in rows)
            raise ValueError(f"--rows: no row of {name} is {words!r}; it has: {known}")
        found += these
    return [row for row in rows if row in found]


def run_table(
    table: PolytopeTable,
    directory: Path,
    *,
    seeds: int = 10,
    epochs: int = 1000,
    rows: Sequence[Row] | None = None,
    node_features: bool = False,
    copies: int = polytope_tables.COPIES,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train and test the rows of a table; give, and write, its results.json.

    Rows that an earlier run with the same settings completed are taken from it.
    """
    rows = list(table.rows if rows is None else rows)
    settings = {
        "table": table.name,
        "seeds": seeds,
        "epochs": epochs,
        "node_features": node_features,
        "copies": copies,
    }
    parts = {
        str(row): partial(run_row, table.name, row, seeds, epochs, node_features, copies)
        for row in rows
    }
    done = run_parts(parts, directory / "rows", settings, epochs, console, engine)
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
    )


@cache
def _tests(dimension: int, copies: int, node_features: bool) -> dict[str, Polytopes]:
    """The training set and the test sets, in float64."""
    return {
        column: Polytopes(
            dimension,
            None if column == "train" else column,
            copies,
            seed=1000 + number,
            node_features=node_features,
            dtype=torch.float64,
        )
        for number, column in enumerate(COLUMNS)
    }


def run_row(
    name: str,
    row: Row,
    seeds: int,
    epochs: int,
    node_features: bool,
    copies: int,
    on_epoch: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """Train one network of a table in all initialisations together, and test it."""
    began = time.perf_counter()
    table, tests = TABLES[name], _tests(TABLES[name].dimension, copies, node_features)
    train = Polytopes(table.dimension, node_features=node_features)
    classes = len(train.names)
    features = 2 if node_features else 0
    trained = polytope_tables.train_network(
        row, train, table.dimension, seeds, epochs, features, on_epoch
    )
    models, losses = trained.ensemble, trained.losses
    network = models.model
    assert isinstance(network, polytope_tables.Model)
    matrices = {
        column: polytope_tables.confusion(
            models,
            tests[column],
            column == "train" or polytope_tables.keeps(network.symmetry, column),
        )
        for column in COLUMNS
    }
    accuracy = {c: m.diagonal(dim1=1, dim2=2).mean(1).tolist() for c, m in matrices.items()}
    return {
        **row.key,
        "parameters": sum(p.numel() for p in network.parameters()),
        "symmetry": str(network.symmetry),
        "seconds": time.perf_counter() - began,
        "cells": _cells(table, row, network, accuracy, classes, node_features),
        "confusion": {column: matrix.mean(0).tolist() for column, matrix in matrices.items()},
        "curve": loss_curve(losses),
    }


def _cells(
    table: PolytopeTable,
    row: Row,
    network: polytope_tables.Model,
    accuracy: dict[str, list[float]],
    classes: int,
    node_features: bool,
) -> dict[str, Any]:
    cells = {}
    for column, values in accuracy.items():
        # the paper's numbers are for graphs without node features
        theirs = {"mean": None, "std": None}
        if not node_features:
            theirs = paper.cell(table.paper, row.block, row.aggregation, row.coordinate_map, column)
        fixed: Any = None
        if column == "train":
            fixed = (
                None
                if node_features
                else polytope_tables.known_train(row, table.dimension, classes)
            )
        elif polytope_tables.keeps(network.symmetry, column):
            fixed = accuracy["train"]
        cells[column] = measured(values, theirs, fixed)
    return cells


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
