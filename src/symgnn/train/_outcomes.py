"""Predictions and measured values, row by row, for a CSV and for reports."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.data._task import Task
from symgnn.store import write_whole
from symgnn.train._metrics import Judge, as_rows

#: The columns that name a row, beside the graph.
KEYS = {"graph": [], "node": ["node"], "edge": ["source", "target"]}
#: So many points of a parity plot, and so many of the worst cases, go into a report.
POINTS, WORST = 2000, 10


def row_keys(graph: Data, task: Task) -> list[list[Any]]:
    """The name of each row; nodes have the names of their file."""
    names: Sequence[Any] = getattr(graph, "node_id", None) or range(graph.num_nodes)
    if task.place == "graph":
        return [[]]
    if task.place == "edge":
        return [[names[j], names[i]] for j, i in graph.edge_index.T.tolist()]
    return [[name] for name in names]


def _row_count(graph: Data, task: Task) -> int:
    return int({"graph": 1, "edge": graph.num_edges}.get(task.place, graph.num_nodes))


class Outcomes:
    """The predictions for some graphs, the mean over the seeds, beside their labels.

    Numbers are in units of the targets. Rows are graphs, nodes or edges, in the order of `graphs`;
    a missing label is NaN, or the class -1.
    """

    def __init__(self, task: Task, graphs: Sequence[Data], fold: int | None = None) -> None:
        self.task = task
        self.several = False
        self._single = False  # whether labels are in single precision, as they were read
        self._sources: list[tuple[int | None, Sequence[Data]]] = [(fold, graphs)]
        self._parts: dict[str, list[Tensor]] = {}

    def add(self, outputs: Tensor, batch: Batch, judge: Judge) -> None:
        """Note the outputs `[S, rows, outputs]` of models for the next graphs."""
        self.several = len(outputs) > 1
        if self.task.kind == "classification":
            each = outputs.softmax(-1).double()
            best = each.mean(0).argmax(-1, keepdim=True)
            found = {"predicted": best, "measured": batch.y.unsqueeze(-1)}
            each = each.gather(-1, best.expand(len(each), -1, -1))
            found["probability"] = each.mean(0)
        else:
            each = judge.in_units(as_rows(outputs))
            found = {"predicted": each.mean(0), "measured": judge.labels(batch.y)}
            self._single = batch.y.dtype == torch.float32
            if self.task.level == "coordinates":
                found["origin"] = judge.in_units(batch.pos)
        found["deviation"] = each.std(0) if self.several else torch.zeros_like(each[0])
        for name, value in found.items():
            self._parts.setdefault(name, []).append(value.cpu())

    def array(self, name: str) -> np.ndarray:
        """`[rows, targets]` of predicted, measured, deviation, probability or origin."""
        return torch.cat(self._parts[name]).numpy()

    @staticmethod
    def joined(parts: Sequence[Outcomes]) -> Outcomes:
        """Those of several folds as one."""
        whole = Outcomes(parts[0].task, [])
        whole._sources = [source for part in parts for source in part._sources]
        for part in parts:
            whole.several |= part.several
            whole._single = part._single
            for name, values in part._parts.items():
                whole._parts.setdefault(name, []).extend(values)
        return whole

    # ---- names of rows

    @cached_property
    def _graphs(self) -> list[tuple[int | None, Sequence[Data], int]]:
        """Of each graph its fold, and where it is."""
        return [(fold, g, index) for fold, g in self._sources for index in range(len(g))]

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where the rows of each graph begin."""
        counts = [_row_count(graphs[index], self.task) for _, graphs, index in self._graphs]
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

    def _named(self, number: int) -> tuple[int | None, str, list[list[Any]]]:
        """The fold and name of a graph, and the keys of its rows."""
        fold, graphs, index = self._graphs[number]
        graph = graphs[index]
        return fold, str(getattr(graph, "name", None) or index), row_keys(graph, self.task)

    def _row(self, k: int) -> dict[str, Any]:
        """The name of a row."""
        number = int(np.searchsorted(self._starts, k, side="right")) - 1
        fold, name, keys = self._named(number)
        mine = map(str, keys[k - int(self._starts[number])])
        named = dict(zip(KEYS[self.task.place], mine, strict=True))
        return {"name": name, **({} if fold is None else {"fold": fold}), **named}

    # ---- a CSV

    def heads(self) -> list[str]:
        """The names of the columns, with units."""
        task = self.task
        folds = ["fold"] if any(fold is not None for fold, _ in self._sources) else []
        found = ["name", *folds, *KEYS[task.place]]
        if task.kind == "classification":
            spread = ["probability deviation"] if self.several else []
            return [*found, task.targets[0], "probability", *spread, f"{task.targets[0]} measured"]
        for target, unit in zip(task.targets, task.units, strict=True):
            after = f" [{unit}]" if unit else ""
            spread = [f"{target} deviation{after}"] if self.several else []
            found += [f"{target}{after}", *spread, f"{target} measured{after}"]
        return found

    def lines(self) -> Iterator[list[Any]]:
        """The cells of each row; a missing label is an empty cell."""
        predicted, measured = self.array("predicted"), self.array("measured")
        deviation, classes = self.array("deviation"), self.task.classes
        probability = self.array("probability") if classes else deviation
        rows = (
            (fold, name, keys)
            for number in range(len(self._graphs))
            for fold, name, each in [self._named(number)]
            for keys in each
        )
        for k, (fold, name, keys) in enumerate(rows):
            cells = [name, *([] if fold is None else [fold]), *keys]
            if self.task.kind == "classification":
                cells += [classes[predicted[k, 0]], float(probability[k, 0])]
                cells += [float(deviation[k, 0])] if self.several else []
                cells.append(classes[measured[k, 0]] if measured[k, 0] >= 0 else "")
            else:
                for value, spread, label in zip(
                    predicted[k], deviation[k], measured[k], strict=True
                ):
                    cells += [float(value), *([float(spread)] if self.several else [])]
                    cells.append("" if np.isnan(label) else self._written(label))
            yield cells

    def _written(self, label: float) -> float:
        """A label with the digits that it was given with: 354.8, not 354.79998779296875."""
        return float(str(np.float32(label))) if self._single else float(label)

    def write(self, path: Path) -> Path:
        """Write the CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.heads())
        writer.writerows(self.lines())
        return write_whole(path, text.getvalue().encode("utf-8"))

    # ---- a report

    def summary(self) -> dict[str, Any]:
        """The numbers of a report: of regression `targets`, each with its errors,
        some points and the worst cases; of classes the `confusion` and the `scores` of each class.
        """
        if self.task.kind == "classification":
            return self._classes()
        predicted, measured = self.array("predicted"), self.array("measured")
        if self.task.level == "coordinates":  # displacements: what the network has to find
            predicted, measured = (v - self.array("origin") for v in (predicted, measured))
        targets = [
            {"name": target, "unit": unit, **self._target(predicted[:, t], measured[:, t])}
            for t, (target, unit) in enumerate(zip(self.task.targets, self.task.units, strict=True))
        ]
        return {"kind": "regression", "level": self.task.level, "targets": targets}

    def _target(self, predicted: np.ndarray, measured: np.ndarray) -> dict[str, Any]:
        there = np.flatnonzero(~np.isnan(measured))
        error = (predicted - measured)[there]
        bad = there[np.argsort(-np.abs(error), kind="stable")[:WORST]]
        shown = there
        if len(there) > POINTS:
            chosen = np.random.default_rng(0).choice(len(there), POINTS, replace=False)
            shown = np.union1d(there[chosen], bad)
        spread = float(np.var(measured[there])) if len(there) else 0.0
        squared = float(np.mean(error**2)) if len(there) else None
        return {
            "count": len(there),
            "mae": float(np.abs(error).mean()) if len(there) else None,
            "rmse": None if squared is None else squared**0.5,
            "r2": 1 - squared / spread if squared is not None and spread > 0 else None,
            "points": [[float(measured[k]), float(predicted[k])] for k in shown],
            "worst": [
                {**self._row(k), "measured": float(measured[k]), "predicted": float(predicted[k])}
                for k in bad
            ],
        }

    def _classes(self) -> dict[str, Any]:
        predicted, measured = self.array("predicted")[:, 0], self.array("measured")[:, 0]
        probability = self.array("probability")[:, 0]
        classes = list(self.task.classes)
        there = measured >= 0
        confusion = np.zeros((len(classes), len(classes)), dtype=int)
        np.add.at(confusion, (measured[there], predicted[there]), 1)
        wrong = np.flatnonzero(there & (predicted != measured))
        bad = wrong[np.argsort(-probability[wrong], kind="stable")[:WORST]]
        return {
            "kind": "classification",
            "level": self.task.level,
            "classes": classes,
            "count": int(there.sum()),
            "confusion": confusion.tolist(),
            "scores": class_scores(confusion, classes),
            "worst": [
                {
                    **self._row(k),
                    "measured": classes[measured[k]],
                    "predicted": classes[predicted[k]],
                    "probability": float(probability[k]),
                }
                for k in bad
            ],
        }


def class_scores(confusion: np.ndarray, classes: Sequence[str]) -> list[dict[str, Any]]:
    """Precision, recall, F1 and support of each class; None where a number is not defined.

    Args:
        confusion: counts `[classes, classes]`; row: the true class, column: the predicted one.
        classes: their names.
    """
    found = []
    for c, name in enumerate(classes):
        hits, support, named = confusion[c, c], confusion[c].sum(), confusion[:, c].sum()
        found.append(
            {
                "class": name,
                "precision": float(hits / named) if named else None,
                "recall": float(hits / support) if support else None,
                "f1": float(2 * hits / (support + named)) if support + named else None,
                "support": int(support),
            }
        )
    return found
