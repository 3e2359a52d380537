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

from symgnn.data._rescaling import at_scale
from symgnn.data._task import Task
from symgnn.store import write_whole
from symgnn.train._outcomes import KEYS, row_keys
from symgnn.train._trained_run import Prediction, Run


def write_predictions(trained: Run, out: Path, graphs: Sequence[Data]) -> int:
    """Predict for graphs; give how many rows were written.

    A row is a graph, node or edge, named as its file names it, with its SMILES where it has one.
    Numbers are in the units of the head; with several seeds each has a deviation beside it, and
    where graphs have answers, as those of a split do, the measured value.
    """
    rows, task = [], shown(trained)
    for number, (graph, found) in enumerate(_each(trained, graphs)):
        name, smiles = getattr(graph, "name", None) or str(number), graph.get("smiles")
        answers = answers_of(trained, graph)
        keys = row_keys(graph, task)
        for k, cells in enumerate(zip(found.value, _spread(found), strict=True)):
            rows.append((name, smiles, keys[k], cells, None if answers is None else answers[k]))
    with_smiles = any(isinstance(row[1], str) for row in rows)
    measured = any(row[-1] is not None for row in rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    first = ["name", *(["smiles"] if with_smiles else []), *KEYS[task.place]]
    writer.writerow([*first, *heads(trained, measured)])
    for name, smiles, keys_of_row, (value, deviation), answer in rows:
        names = [name, *([smiles or ""] if with_smiles else []), *keys_of_row]
        known = (answer or [""] * len(task.targets)) if measured else None
        writer.writerow([*names, *cells_of(task, value, deviation, known)])
    write_whole(out, text.getvalue().encode("utf-8"))
    return len(rows)


def shown(trained: Run) -> Task:
    """The task whose rows are written: of a potential, the energies of graphs."""
    if trained.task.level == "potential":
        return Task("graph", "regression", ("energy",), ("eV",))
    return trained.task


def heads(trained: Run, measured: bool = False) -> list[str]:
    """The names of the columns, with units."""
    task, several = shown(trained), len(trained.models) > 1
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
    task: Task, value: Tensor, deviation: Tensor | None, known: list[Any] | None
) -> list[Any]:
    """The cells of a row with outputs `[outputs]`; `known` are its measured values."""
    several = deviation is not None
    spread = value if deviation is None else deviation
    if task.kind == "classification":
        best = int(value.argmax())
        row = [task.classes[best], float(value[best])]
        return [*row, *([float(spread[best])] if several else []), *(known or [])]
    row = []
    for column, (one, apart) in enumerate(zip(value.tolist(), spread.tolist(), strict=True)):
        row += [one, *([apart] if several else []), *([] if known is None else [known[column]])]
    return row


def answers_of(trained: Run, graph: Data) -> list[list[Any]] | None:
    """The measured values of a graph, a list for each row, in units; "" where one is missing.

    None if the graph has none.
    """
    task, y = trained.task, graph.get("y")
    if not isinstance(y, Tensor):
        return None
    if task.kind == "classification":
        return [[task.classes[label] if label >= 0 else ""] for label in y.tolist()]
    if task.level == "potential":
        y = y[:1, :1] * len(y)
    elif task.lengths:
        y = at_scale(graph, 1.0, answers=True).y
    elif trained.scaler.done:
        y = trained.scaler.back(y)
    return [[one if math.isfinite(one) else "" for one in row] for row in y.tolist()]


def _spread(found: Prediction) -> Sequence[Tensor | None]:
    """The deviation of each row."""
    return [None] * len(found.value) if found.deviation is None else list(found.deviation)


def _each(trained: Run, graphs: Sequence[Data]) -> Iterator[tuple[Data, Prediction]]:
    """Each graph with its prediction, made in batches."""
    size = trained.config.train.batch_size
    for start in range(0, len(graphs), size):
        part = [graphs[k] for k in range(start, min(start + size, len(graphs)))]
        found = trained.predict(part)
        rows = [len(row_keys(graph, shown(trained))) for graph in part]
        values = found.value.split(rows)
        spreads = [None] * len(part) if found.deviation is None else found.deviation.split(rows)
        for graph, value, deviation in zip(part, values, spreads, strict=True):
            yield graph, Prediction(value, deviation)
