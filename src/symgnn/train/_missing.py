"""Missing labels: whether they are allowed, and how many are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from symgnn.data._task import Splits, Task
from symgnn.train._metrics import is_present


def may_miss(about: Mapping[str, Any]) -> bool:
    """Whether labels may be missing, in data that `about` tells of (`data.missing: mask`)."""
    return about.get("missing") == "mask"


class Tally:
    """Counts the labels of each split, by target."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.present: dict[str, Tensor] = {}
        self.rows: dict[str, int] = {}
        self.empty: dict[str, int] = {}

    def add(self, split: str, y: Tensor) -> None:
        """Count a graph, with y as the task has it."""
        there = is_present(y).reshape(len(y), -1).sum(0)
        self.present[split] = self.present.get(split, torch.zeros_like(there)) + there
        self.rows[split] = self.rows.get(split, 0) + len(y)
        self.empty[split] = self.empty.get(split, 0) + (not bool(there.any()))

    def checked(self) -> dict[str, Any]:
        """Of each split, the labels of each target, all rows, and the graphs without a label.

        A target that has no label to train on is an error, and so is a split without any.
        """
        for split, there in self.present.items():
            for target, count in zip(self.task.targets, there.tolist(), strict=True):
                if split == "train" and not count:
                    energies = self.task.level == "potential"
                    where = "train.targets" if energies else "data.columns"
                    raise ValueError(
                        f"data: no training graph has a label of {target!r}; add labels, remove "
                        f"it from {where}, or divide the graphs by another data.seed"
                    )
            if not there.any():
                raise ValueError(
                    f"data: no {split} graph has a label; divide the graphs by another data.seed, "
                    "or leave graphs without labels out"
                )
        return {
            split: {
                "labels": dict(zip(self.task.targets, there.tolist(), strict=True)),
                "rows": self.rows[split],
                "graphs_without_label": self.empty[split],
            }
            for split, there in self.present.items()
        }


def check_monitor(splits: Splits, labels: Mapping[str, Any] | None, monitor: str) -> None:
    """The number that chooses the best weights can be measured on the validation graphs."""
    kind, _, target = monitor.partition(" ")
    if labels and target and not labels["validation"]["labels"].get(target, 1):
        raise ValueError(
            f"train.monitor: is {monitor!r}, but no validation graph has a label of {target!r}; "
            "monitor another number, or divide the graphs by another data.seed"
        )
    if kind == "r2" and not splits.task.vectors:
        column = splits.task.targets.index(target) if target else 0
        graphs = splits.validation
        y = torch.cat([graphs[k].y[:, column] for k in range(len(graphs))])
        if len(y[is_present(y)].unique()) < 2:
            raise ValueError(
                f"train.monitor: is {monitor!r}, which is not defined where all validation labels "
                "are equal; monitor rmse or mae"
            )
