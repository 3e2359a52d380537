"""Losses, and what is measured of predictions: sums over rows, which add up over devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.data.task import Task

LOSSES: dict[str, Callable[..., Tensor]] = {
    "mse": F.mse_loss,
    "mae": F.l1_loss,
    "huber": F.huber_loss,
}
#: Numbers of which more is better.
RISING = ("accuracy", "f1")


@dataclass(frozen=True)
class Scaler:
    """Between targets in their units and what a model gives: `(y - mean) / deviation`."""

    mean: Tensor  # [targets], float64
    deviation: Tensor  # [targets], float64
    done: bool = False  # whether the answers of the dataset are standardised already

    def __call__(self, y: Tensor) -> Tensor:
        """Answers of the dataset as a model has to give them."""
        return y if self.done else ((y - self.mean.to(y.device)) / self.deviation.to(y)).to(y.dtype)

    def back(self, outputs: Tensor) -> Tensor:
        """Outputs in units of the targets, in float64, as energies can be large."""
        device = outputs.device
        return outputs.double() * self.deviation.to(device) + self.mean.to(device)


class Sums(NamedTuple):
    """Of the losses of S models: their weighted sums `[S]`, and the sum of the weights."""

    losses: Tensor
    weight: Tensor


def loss_sums(
    outputs: Tensor, y: Tensor, task: Task, loss: str = "mse", class_weights: Tensor | None = None
) -> Sums:
    """The losses of outputs `[S, rows, outputs]` for answers as the task has them."""
    if task.kind == "classification":
        models, rows, classes = outputs.shape
        if class_weights is not None:
            class_weights = class_weights.to(outputs)
        each = F.cross_entropy(
            outputs.reshape(-1, classes), y.repeat(models), class_weights, reduction="none"
        )
        weight = y.new_tensor(rows, dtype=outputs.dtype)
        if class_weights is not None:
            weight = class_weights[y].sum()
        return Sums(each.view(models, rows).sum(1), weight)
    each = LOSSES[loss](outputs, y.expand_as(outputs), reduction="none")
    return Sums(each.flatten(1).sum(1), outputs.new_tensor(y.numel()))


def balanced(counts: Tensor) -> Tensor:
    """Class weights that give every class the same say, with mean 1 over the rows."""
    return counts.sum() / (len(counts) * counts.clamp(min=1))


def columns_of(task: Task) -> list[str]:
    """What is added to mae or mse for each target, or each vector: nothing where there is one."""
    names = task.vectors or task.targets
    if task.level == "coordinates" or len(names) == 1:
        return [""]
    return [f" {name}" for name in names]


class Metrics:
    """Numbers of S models, summed up batch by batch, in the units of the targets."""

    def __init__(self, task: Task, models: int, device: torch.device | str = "cpu") -> None:
        self.task = task
        shapes: dict[str, tuple[int, ...]] = {"loss": (models,), "weight": (1,)}
        if task.kind == "classification":
            shapes["confusion"] = (models, task.outputs, task.outputs)
        else:
            shapes |= dict.fromkeys(("absolute", "squared"), (models, len(columns_of(task))))
            shapes["rows"] = (1,)
            if task.vectors:
                shapes["lengths"] = (models, len(task.vectors))
        self.sums = {
            name: torch.zeros(shape, dtype=torch.float64, device=device)
            for name, shape in shapes.items()
        }

    def add(self, sums: Sums, found: Tensor) -> None:
        """Count a batch: its losses, and errors in units `[S, rows, targets]`.

        Of a classification, a number for each true and predicted class `[S, rows]`.
        """
        total = self.sums
        total["loss"] += sums.losses
        total["weight"] += sums.weight
        if self.task.kind == "classification":
            for model, places in enumerate(found):
                counts = torch.bincount(places, minlength=self.task.outputs**2)
                total["confusion"][model] += counts.view_as(total["confusion"][model])
            return
        # [S, rows, columns, numbers in a column]: of vectors and coordinates, their components
        found = found.unflatten(-1, (len(columns_of(self.task)), -1))
        total["absolute"] += found.abs().mean(-1).sum(1)
        total["squared"] += found.square().mean(-1).sum(1)
        if self.task.vectors:
            total["lengths"] += found.norm(dim=-1).sum(1)
        total["rows"] += found.shape[1]

    def reduce(self, over_devices: Callable[[Tensor], Tensor]) -> None:
        """Add up over devices."""
        self.sums = {name: over_devices(value) for name, value in self.sums.items()}

    def values(self) -> dict[str, Tensor]:
        """Every number, `[S]`, by its name."""
        sums = {name: value.cpu() for name, value in self.sums.items()}
        found = {"loss": sums["loss"] / sums["weight"]}
        if self.task.kind == "classification":
            found["accuracy"] = _accuracy(sums["confusion"])
            found["f1"] = _f1(sums["confusion"])
            return found
        for k, column in enumerate(columns_of(self.task)):
            found[f"mae{column}"] = sums["absolute"][:, k] / sums["rows"]
            found[f"mse{column}"] = sums["squared"][:, k] / sums["rows"]
            if self.task.vectors:
                found[f"vector_error{column}"] = sums["lengths"][:, k] / sums["rows"]
        return found


def as_rows(outputs: Tensor) -> Tensor:
    """Outputs of models as numbers: several vectors `[S, rows, k, n]` as `[S, rows, k * n]`."""
    return outputs.flatten(2)


class Judge:
    """The losses of outputs and what :meth:`Metrics.add` counts, for a task and its units."""

    def __init__(
        self,
        task: Task,
        scaler: Scaler,
        scale: float = 1.0,
        loss: str = "mse",
        class_weights: Tensor | None = None,
    ) -> None:
        self.task, self.scaler, self.scale = task, scaler, scale
        self.loss, self.class_weights = loss, class_weights

    def __call__(self, outputs: Tensor, y: Tensor) -> tuple[Sums, Tensor]:
        """For outputs `[S, rows, outputs]` of models, and answers of the dataset."""
        outputs = as_rows(outputs)
        if self.task.kind == "classification":
            sums = loss_sums(outputs, y, self.task, self.loss, self.class_weights)
            return sums, y * self.task.outputs + outputs.argmax(-1)
        y = self.scaler(y)
        if outputs.dtype != torch.float64:
            y = y.float()
        sums = loss_sums(outputs, y, self.task, self.loss)
        # the difference before its unit: energies can be large beside their spread
        error = (outputs - y).double()
        error = error * self.scaler.deviation.to(error.device)
        return sums, error / self.scale if self.task.lengths else error


def names_of(task: Task) -> list[str]:
    """The names of the numbers, in order."""
    return list(Metrics(task, 1).values())


def _accuracy(confusion: Tensor) -> Tensor:
    return confusion.diagonal(dim1=1, dim2=2).sum(1) / confusion.sum((1, 2))


def _f1(confusion: Tensor) -> Tensor:
    """Of the second class where there are two, else the mean over the classes."""
    hits = confusion.diagonal(dim1=1, dim2=2)
    both = confusion.sum(1) + confusion.sum(2)
    each = torch.where(both > 0, 2 * hits / both.clamp(min=1), 0.0)
    return each[:, 1] if confusion.shape[1] == 2 else each.mean(1)
