"""Predictions as a CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from symgnn.store import write_whole
from symgnn.train.outcomes import KEYS, row_keys
from symgnn.train.trained import Prediction, Trained


def write_predictions(
    trained: Trained,
    out: Path,
    files: Sequence[Path] = (),
    split: str | None = None,
    data: Path | None = None,
) -> int:
    """Predict for files, or for a split of the run's dataset (`data` says where its files are now);
    give how many rows were written.

    A row is a graph, node or edge. Numbers are in the units of the head; with several seeds each
    has a deviation beside it.
    """
    if split is None:
        graphs: Sequence[Data] = trained.read(files)
    else:
        graphs = getattr(trained.splits(data), split)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", *KEYS[trained.task.level], *heads(trained)])
    count = 0
    for number, (graph, found) in enumerate(_each(trained, graphs)):
        name = getattr(graph, "name", None) or str(number)
        for keys, cells in zip(
            row_keys(graph, trained.task), cells_of(trained, found), strict=True
        ):
            writer.writerow([name, *keys, *cells])
            count += 1
    write_whole(out, text.getvalue().encode("utf-8"))
    return count


def heads(trained: Trained) -> list[str]:
    """The names of the columns, with units."""
    task, several = trained.task, len(trained.models) > 1
    if task.kind == "classification":
        return [task.targets[0], "probability", *(["probability deviation"] if several else [])]
    found = []
    for target, unit in zip(task.targets, task.units, strict=True):
        after = f" [{unit}]" if unit else ""
        found += [f"{target}{after}", *([f"{target} deviation{after}"] if several else [])]
    return found


def cells_of(trained: Trained, found: Prediction) -> Iterator[list[Any]]:
    """The cells of each row."""
    several = len(trained.models) > 1
    for value, deviation in zip(found.value, found.deviation, strict=True):
        if trained.task.kind == "classification":
            best = int(value.argmax())
            chosen = [(float(value[best]), float(deviation[best]))]
            first: list[Any] = [trained.task.classes[best]]
        else:
            chosen, first = list(zip(value.tolist(), deviation.tolist(), strict=True)), []
        yield first + [n for pair in chosen for n in (pair if several else pair[:1])]


def _each(trained: Trained, graphs: Sequence[Data]) -> Iterator[tuple[Data, Prediction]]:
    """Each graph with its prediction, made in batches."""
    size = trained.config.train.batch_size
    for start in range(0, len(graphs), size):
        part = [graphs[k] for k in range(start, min(start + size, len(graphs)))]
        found = trained.predict(part, scaled=True)
        rows = [len(row_keys(graph, trained.task)) for graph in part]
        pairs = zip(found.value.split(rows), found.deviation.split(rows), strict=True)
        for graph, pair in zip(part, pairs, strict=True):
            yield graph, Prediction(*pair)
