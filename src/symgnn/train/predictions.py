"""Predictions as a CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from symgnn.data.rescaling import at_scale
from symgnn.store import write_whole
from symgnn.train.outcomes import KEYS, row_keys
from symgnn.train.trained_run import Prediction, Run


def write_predictions(trained: Run, out: Path, graphs: Sequence[Data]) -> int:
    """Predict for graphs; give how many rows were written.

    A row is a graph, node or edge, named as its file names it, with its SMILES where it has one.
    Numbers are in the units of the head; with several seeds each has a deviation beside it, and
    where graphs have answers, the measured value.
    """
    smiles = any(isinstance(graphs[k].get("smiles"), str) for k in range(len(graphs)))
    measured = all(isinstance(graphs[k].get("y"), Tensor) for k in range(len(graphs)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    first = ["name", *(["smiles"] if smiles else []), *KEYS[trained.task.place]]
    writer.writerow([*first, *heads(trained, measured)])
    count = 0
    for number, (graph, found) in enumerate(_each(trained, graphs)):
        names = [getattr(graph, "name", None) or str(number)]
        names += [graph.get("smiles") or ""] if smiles else []
        answers = answers_of(trained, graph) if measured else None
        cells = cells_of(trained, found, answers)
        for keys, row in zip(row_keys(graph, trained.task), cells, strict=True):
            writer.writerow([*names, *keys, *row])
            count += 1
    write_whole(out, text.getvalue().encode("utf-8"))
    return count


def heads(trained: Run, measured: bool = False) -> list[str]:
    """The names of the columns, with units."""
    task, several = trained.task, len(trained.models) > 1
    if task.kind == "classification":
        target = task.targets[0]
        found = [target, "probability", *(["probability deviation"] if several else [])]
        return [*found, *([f"{target} measured"] if measured else [])]
    found = []
    for target, unit in zip(task.targets, task.units, strict=True):
        after = f" [{unit}]" if unit else ""
        found += [f"{target}{after}", *([f"{target} deviation{after}"] if several else [])]
        found += [f"{target} measured{after}"] if measured else []
    return found


def cells_of(
    trained: Run, found: Prediction, answers: list[list[Any]] | None = None
) -> Iterator[list[Any]]:
    """The cells of each row; `answers` are the measured values, a list for each row."""
    several = found.deviation is not None
    spread = found.value if found.deviation is None else found.deviation
    for number, (value, deviation) in enumerate(zip(found.value, spread, strict=True)):
        known = None if answers is None else answers[number]
        if trained.task.kind == "classification":
            best = int(value.argmax())
            row = [trained.task.classes[best], float(value[best])]
            row += [float(deviation[best])] if several else []
            yield row + (known or [])
            continue
        row = []
        for column, (one, apart) in enumerate(zip(value.tolist(), deviation.tolist(), strict=True)):
            row += [one, *([apart] if several else []), *([known[column]] if known else [])]
        yield row


def answers_of(trained: Run, graph: Data) -> list[list[Any]]:
    """The measured values of a graph, a list for each row, in units; "" where one is missing."""
    task, y = trained.task, graph.y
    if task.kind == "classification":
        return [[task.classes[label] if label >= 0 else ""] for label in y.tolist()]
    if task.lengths:
        y = at_scale(graph, 1.0, answers=True).y
    elif trained.scaler.done:
        y = trained.scaler.back(y)
    return [[one if math.isfinite(one) else "" for one in row] for row in y.tolist()]


def _each(trained: Run, graphs: Sequence[Data]) -> Iterator[tuple[Data, Prediction]]:
    """Each graph with its prediction, made in batches."""
    size = trained.config.train.batch_size
    for start in range(0, len(graphs), size):
        part = [graphs[k] for k in range(start, min(start + size, len(graphs)))]
        found = trained.predict(part)
        rows = [len(row_keys(graph, trained.task)) for graph in part]
        values = found.value.split(rows)
        spreads = [None] * len(part) if found.deviation is None else found.deviation.split(rows)
        for graph, value, deviation in zip(part, values, spreads, strict=True):
            yield graph, Prediction(value, deviation)
