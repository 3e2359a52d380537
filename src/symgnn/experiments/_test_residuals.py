"""How much each test graph moves a score: what a score owes to the test set that was drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from symgnn.train._ensemble import Ensemble
from symgnn.train._metrics import Errors, Judge


@torch.no_grad()
def graph_residuals(
    ensemble: Ensemble, batches: Iterable[Batch], judge: Judge, metric: str
) -> Tensor:
    """The residual of each graph, the mean over the members, `[G]`.

    Every score is a ratio of sums over graphs, R = sum a_g / sum b_g: of accuracy, b counts the
    answers and a the right ones; of F1, a is twice the hits and b the hits and misses of both
    kinds; of an error, a is the sum of squares. The residual of a graph is (a_g - R b_g) / mean(b);
    their deviation over the root of their number is the standard error of R, to first order.

    Args:
        ensemble: The trained members.
        batches: Test graphs.
        judge: As in training.
        metric: "accuracy", "f1" or "loss".
    """
    ensemble.eval()
    tops: list[Tensor] = []
    bottoms: list[Tensor] = []
    for batch in batches:
        if batch.spare:
            continue
        tops_of_rows, bottoms_of_rows = _parts(ensemble(batch), batch, judge, metric)
        graph = _graph_of_rows(batch, judge)
        for parts, rows in ((tops, tops_of_rows), (bottoms, bottoms_of_rows)):
            zeros = rows.new_zeros(len(rows), len(batch.ptr) - 1)
            parts.append(zeros.index_add(1, graph, rows))
    top, bottom = torch.cat(tops, 1), torch.cat(bottoms, 1)  # [S, G]
    total = bottom.sum(1, keepdim=True)
    ratio = top.sum(1, keepdim=True) / total
    return ((top - ratio * bottom) * bottom.shape[1] / total).mean(0)


def standard_error(residuals: Tensor) -> float | None:
    """The standard error of a score over the graphs it was measured on; None for one graph."""
    return float(residuals.std() / len(residuals) ** 0.5) if len(residuals) > 1 else None


def with_test_error(row: dict[str, Any], column: str, metric: str, graphs: int) -> dict[str, Any]:
    """A recorded row whose test score has a standard error over the test graphs.

    Rows that were recorded without one get that of a proportion, if the score is an accuracy.

    Args:
        row: A row of results.json.
        column: The column of the test score.
        metric: "accuracy", "f1" or "loss".
        graphs: How many test graphs there are.
    """
    cell = row["cells"][column]
    if cell.get("test_error") is not None or graphs < 2:
        return row
    if metric != "accuracy":
        raise ValueError(
            f"--join: {row['block']} has no test_error of {column}; run it again, --rows "
            f'"{row["block"].lower()}"'
        )
    error = (cell["mean"] * (1 - cell["mean"]) / graphs) ** 0.5
    return {**row, "cells": {**row["cells"], column: {**cell, "test_error": error}}}


@torch.no_grad()
def absolute_errors(ensemble: Ensemble, batches: Iterable[Batch], judge: Judge) -> Tensor:
    """The absolute error of each graph and target in its unit, the mean over the members, `[G, T]`.

    Args:
        ensemble: The trained members of a regression on graphs.
        batches: Test graphs.
        judge: As in training.
    """
    found = []
    for batch in batches:
        if not batch.spare:
            _, errors = judge(ensemble.eval()(batch), batch.y)
            assert isinstance(errors, Errors)
            found.append(errors.error.abs().mean(0))
    return torch.cat(found)


def _parts(outputs: Tensor, batch: Batch, judge: Judge, metric: str) -> tuple[Tensor, Tensor]:
    """Of each row of outputs `[S, rows]`: its part of the numerator and of the denominator."""
    _, found = judge(outputs, batch.y)
    if isinstance(found, Errors):
        squares = (found.error / judge.unit()).square().mean(-1)
        return squares, torch.ones_like(squares)
    classes = judge.task.outputs
    true, predicted = found // classes, found % classes
    if metric == "accuracy":
        right = (true == predicted).double()
        return right, torch.ones_like(right)
    return 2.0 * (true * predicted), (true + predicted).double()


def _graph_of_rows(batch: Batch, judge: Judge) -> Tensor:
    """The graph of each row of outputs."""
    level = judge.task.level
    if level.startswith("graph"):
        return torch.arange(len(batch.ptr) - 1)
    return batch.batch[batch.edge_index[1]] if level == "edge" else batch.batch
