"""Trivial predictions, beside which a result is read: a network has to beat them.

They are made of the training labels alone: the mean or median of a target, the most frequent class,
nodes that stay where they are. They are measured as networks are, by :class:`Judge` and
:class:`Metrics`, and for each number the one counts that is best on the training graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from symgnn.data._task import Task
from symgnn.report._record_lines import is_rising
from symgnn.train._metrics import Judge, Metrics, is_present

#: So many rows are measured at once.
AT_ONCE = 2**18

#: Signature: (labels as a model gives them [rows, targets]) -> outputs [targets] by their name.
Trivial: TypeAlias = Callable[[Tensor], dict[str, Tensor]]


def _mean(labels: Tensor) -> Tensor:
    return labels.nanmean(0)


def _constants(labels: Tensor) -> dict[str, Tensor]:
    """The best constants for squared and absolute errors."""
    return {
        "median of the training targets": torch.from_numpy(np.nanmedian(labels.numpy(), axis=0)),
        "mean of the training targets": _mean(labels),
    }


def _displacements(labels: Tensor) -> dict[str, Tensor]:
    """Of coordinates, whose labels are displacements here."""
    return {
        "nodes stay where they are": torch.zeros_like(labels[0]),
        "mean displacement of the training nodes": _mean(labels),
    }


def _zero_vectors(labels: Tensor) -> dict[str, Tensor]:
    """Of vectors: any other constant would turn when a structure is turned."""
    return {"zero vectors": torch.zeros_like(labels[0])}


def _no_forces(labels: Tensor) -> dict[str, Tensor]:
    """Of potentials: the mean energy per atom, and no forces and no stress."""
    found = torch.zeros_like(labels[0])
    found[0] = labels[:, 0].nanmean()
    return {"mean energy per atom, no forces": found}


#: The trivial predictions of regression at a level that has its own; others have constants.
LEVELS: dict[str, Trivial] = {
    "coordinates": _displacements,
    "node-vectors": _zero_vectors,
    "graph-vectors": _zero_vectors,
    "potential": _no_forces,
}


@dataclass(frozen=True)
class Baseline:
    """B trivial predictions of a task.

    Args:
        outputs: what each gives, as a model gives it, `[B, outputs]`; of coordinates, what is added
            to them.
        names: what each is.
        chosen: of each number, the name of the one that is best on the training graphs.
        level: of the task.
    """

    outputs: Tensor
    names: tuple[str, ...]
    chosen: dict[str, str]
    level: str

    def __call__(self, rows: int, pos: Tensor | None = None) -> Tensor:
        """The outputs for so many rows `[B, rows, outputs]`; coordinates need `pos [rows, n]`."""
        if self.level == "coordinates":
            assert pos is not None
            return pos.double() + self.outputs.to(pos.device).unsqueeze(1)
        return self.outputs.unsqueeze(1).expand(-1, rows, -1)

    def pick(self, values: Mapping[str, Tensor]) -> dict[str, float]:
        """Of numbers `[B]`, those of the prediction that counts."""
        return {
            name: float(value[self.names.index(self.chosen[name])])
            for name, value in values.items()
            if name in self.chosen
        }

    def as_dict(self) -> dict[str, Any]:
        """In plain numbers."""
        plain = {"names": list(self.names), "chosen": self.chosen, "level": self.level}
        return {**plain, "outputs": self.outputs.tolist()}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Baseline:
        """The baseline of a dictionary of :meth:`as_dict`."""
        outputs = torch.tensor(plain["outputs"], dtype=torch.float64)
        return Baseline(outputs, tuple(plain["names"]), dict(plain["chosen"]), plain["level"])


def baseline(judge: Judge, y: Tensor, pos: Tensor | None = None) -> Baseline:
    """The trivial predictions from training labels.

    Args:
        judge: that of the training.
        y: the answers of all training graphs, one below the other, as the dataset has them.
        pos: the coordinates of their nodes `[N, n]`, for a task of coordinates.
    """
    task = judge.task
    if task.kind == "classification":
        found = _classes(y, task, judge.class_weights)
    else:
        labels = judge.scaler(y).double()
        if task.level == "coordinates":
            assert pos is not None
            labels = labels - pos.double()
        found = LEVELS.get(task.level, _constants)(labels)
    made = Baseline(torch.stack(list(found.values())), tuple(found), {}, task.level)
    metrics = Metrics(task, len(found))
    for start in range(0, len(y), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        rows = y[part]
        metrics.add(*judge(made(len(rows), None if pos is None else pos[part]), rows))
    chosen = {name: made.names[_best(name, v)] for name, v in metrics.values().items()}
    return Baseline(made.outputs, made.names, chosen, made.level)


def _best(name: str, values: Tensor) -> int:
    """The first of the best, to rounding."""
    value = (-values if is_rising(name) else values).nan_to_num(torch.inf)
    bound = value.min() + 1e-9 * value.min().abs()
    return int((value <= bound).double().argmax())


def _classes(y: Tensor, task: Task, weights: Tensor | None) -> dict[str, Tensor]:
    """The frequencies of the classes as logits, whose largest is the most frequent class."""
    count = torch.bincount(y[is_present(y)], minlength=task.outputs).double()
    found = {"most frequent training class": count.clamp(min=0.5).log()}
    if weights is not None:
        weighted = count.clamp(min=0.5) * weights.double()
        found["weighted frequencies of training classes"] = weighted.log()
    if task.outputs == 2:  # F1 is that of the second class
        found[f"always {task.classes[1]}"] = torch.tensor([0.0, 1.0], dtype=torch.float64)
    return found


# ---------------------------------------------------------------- a network beside its baseline


def headlines(task: Task, loss: str, monitor: str, class_weights: str) -> list[str]:
    """The numbers by which a network has to beat the baseline, one for each target.

    Of regression the error that the loss measures; of classes the accuracy, or F1 where that is
    monitored or classes are weighted, as accuracy is then not what is trained for.
    """
    if task.kind == "classification":
        return ["f1" if monitor == "f1" or class_weights == "balanced" else "accuracy"]
    kind = "rmse" if loss == "mse" else "mae"
    named = monitor.partition(" ")[0]
    if named in ("mae", "rmse", "mse"):
        kind = "mae" if named == "mae" else "rmse"
    names = Metrics(task, 1).values()
    return [name for name in names if name.partition(" ")[0] == kind]
