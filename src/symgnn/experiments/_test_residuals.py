"""How much each test graph moves a score: what a score owes to the test set that was drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch

from symgnn.train._ensemble import Ensemble
from symgnn.train._metrics import Errors, Judge, Metrics, Sums


class JudgedBatch(NamedTuple):
    """What a judge found in the outputs of S networks for a batch of graphs."""

    sums: Sums
    found: Tensor | Errors  # as :meth:`symgnn.train._metrics.Metrics.add` counts it
    graph: Tensor  # [rows], the graph of each row of outputs
    graphs: int


@torch.no_grad()
def judged(ensemble: Ensemble, batches: Iterable[Batch], judge: Judge) -> list[JudgedBatch]:
    """Every batch through the networks once, for all that is asked of the outputs.

    Args:
        ensemble: The trained members.
        batches: Graphs with labels.
        judge: As in training.
    """
    ensemble.eval()
    device, found = next(ensemble.parameters()).device, []
    for batch in batches:
        if not batch.spare:
            outputs = ensemble(batch.to(device))
            batch = batch.cpu()
            sums_and_errors = judge(outputs.cpu(), batch.y)
            graphs = len(batch.ptr) - 1
            found.append(JudgedBatch(*sums_and_errors, _graph_of_rows(batch, judge), graphs))
    return found


def scores(batches: Sequence[JudgedBatch], judge: Judge) -> dict[str, Tensor]:
    """Every metric, by name, `[S]`."""
    metrics = Metrics(judge.task, len(batches[0].sums.losses))
    for batch in batches:
        metrics.add(batch.sums, batch.found)
    return metrics.values()


def graph_residuals(batches: Sequence[JudgedBatch], judge: Judge, metric: str) -> Tensor:
    """The residual of each graph, the mean over the members, `[G]`.

    Every score is a ratio of sums over graphs, R = sum a_g / sum b_g: of accuracy, b counts the
    answers and a the right ones; of F1, a is twice the hits and b the hits and misses of both
    kinds; of an error, a is the sum of squares. The residual of a graph is (a_g - R b_g) / mean(b);
    their deviation over the root of their number is the standard error of R, to first order.

    Args:
        batches: Test graphs.
        judge: As in training.
        metric: "accuracy", "f1" or "loss".
    """
    tops: list[Tensor] = []
    bottoms: list[Tensor] = []
    for batch in batches:
        for parts, rows in zip((tops, bottoms), _parts(batch.found, judge, metric), strict=True):
            zeros = rows.new_zeros(len(rows), batch.graphs)
            parts.append(zeros.index_add(1, batch.graph, rows))
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


def absolute_errors(batches: Sequence[JudgedBatch]) -> Tensor:
    """The absolute error of each graph and target in its unit, the mean over the members, `[G, T]`.

    Args:
        batches: Test graphs of a regression on graphs.
    """
    found = [batch.found for batch in batches]
    return torch.cat([each.error.abs().mean(0) for each in found if isinstance(each, Errors)])


def _parts(found: Tensor | Errors, judge: Judge, metric: str) -> tuple[Tensor, Tensor]:
    """Of each row of outputs `[S, rows]`: its part of the numerator and of the denominator."""
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
