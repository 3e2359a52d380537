"""Losses and metrics, computed from sums over rows, which add up over devices.

A label may be missing: it is NaN, or the class -1. It has no part in any loss, weight or metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.data._task import Task
from symgnn.data.files._potential_targets import COLUMNS

#: Errors of energies, forces and stress are in thousandths of their unit: meV/atom, meV/A.
MILLI = 1000.0
LOSSES: dict[str, Callable[..., Tensor]] = {
    "mse": F.mse_loss,
    "mae": F.l1_loss,
    "huber": F.huber_loss,
}


def is_present(y: Tensor) -> Tensor:
    """Which labels are not missing, of the shape of y."""
    return ~y.isnan() if y.is_floating_point() else y >= 0


@dataclass(frozen=True)
class Scaler:
    """Converts between targets in their units and model outputs, `(y - mean) / deviation`."""

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


class Errors(NamedTuple):
    """Errors of regression in units of the targets; NaN for a missing label."""

    error: Tensor  # [S, rows, targets]
    centred: Tensor  # labels minus a number near their mean, [rows, targets]


def loss_sums(
    outputs: Tensor,
    y: Tensor,
    task: Task,
    loss: str = "mse",
    class_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
) -> Sums:
    """The losses of outputs `[S, rows, outputs]` for answers as the task has them."""
    present = is_present(y)
    if task.kind == "classification":
        models, rows, classes = outputs.shape
        if class_weights is not None:
            class_weights = class_weights.to(outputs)
        each = F.cross_entropy(
            outputs.reshape(-1, classes),
            y.repeat(models),
            class_weights,
            ignore_index=-1,
            reduction="none",
        )
        weight = present.sum().to(each.dtype)
        if class_weights is not None:
            weight = class_weights[y[present]].sum()
        return Sums(each.view(models, rows).sum(1), weight)
    known = torch.where(present, y, 0.0).expand_as(outputs)
    # what has no label may be no number, as the stress of atoms without a cell; nor has it slopes
    outputs = torch.where(present, outputs, 0.0)
    dtype = torch.promote_types(outputs.dtype, known.dtype)  # older versions of torch want one type
    each = LOSSES[loss](outputs.to(dtype), known.to(dtype), reduction="none")
    each = torch.where(present, each, 0.0)
    if target_weights is not None:
        weights = target_weights.to(each)
        return Sums((each * weights).flatten(1).sum(1), (present * weights).sum())
    return Sums(each.flatten(1).sum(1), present.sum().to(each.dtype))


def balanced(counts: Tensor) -> Tensor:
    """Class weights that give every class the same say, with mean 1 over the rows."""
    return counts.sum() / (len(counts) * counts.clamp(min=1))


def parts_of(task: Task) -> list[tuple[str, slice]]:
    """The columns of `y` that are measured together, with the suffix of their metrics."""
    if task.level == "potential":
        found, start = [], 0
        for name, (columns, _) in COLUMNS.items():
            if columns[0] in task.targets:
                found.append((f" {name}", slice(start, start + len(columns))))
                start += len(columns)
        return found
    names = columns_of(task)
    width = len(task.targets) // len(names)
    return [(name, slice(k * width, (k + 1) * width)) for k, name in enumerate(names)]


def columns_of(task: Task) -> list[str]:
    """The suffixes of metrics, one per target or vector; empty where there is only one."""
    names = task.vectors or task.targets
    if task.level == "coordinates" or len(names) == 1:
        return [""]
    return [f" {name}" for name in names]


def has_r2(task: Task) -> bool:
    """Whether R2 says something: not of coordinates, which vary more than they are displaced."""
    return task.kind == "regression" and task.level != "coordinates"


class Metrics:
    """Numbers of S models, summed up batch by batch, in the units of the targets."""

    def __init__(self, task: Task, models: int, device: torch.device | str = "cpu") -> None:
        self.task = task
        width = len(task.targets)
        shapes: dict[str, tuple[int, ...]] = {"loss": (models,), "weight": (1,)}
        if task.kind == "classification":
            shapes["confusion"] = (models, task.outputs, task.outputs)
        else:
            shapes |= dict.fromkeys(("absolute", "squared"), (models, width))
            shapes |= dict.fromkeys(("rows", "centred", "centred_squared"), (width,))
            if task.vectors:
                shapes["lengths"] = (models, len(task.vectors))
                shapes["whole"] = (len(task.vectors),)
        self.sums = {
            name: torch.zeros(shape, dtype=torch.float64, device=device)
            for name, shape in shapes.items()
        }

    def add(self, sums: Sums, found: Tensor | Errors) -> None:
        """Count a batch: its losses, and its errors.

        Of a classification, a number for each true and predicted class `[S, rows]`, negative where
        the true one is missing.
        """
        total = self.sums
        total["loss"] += sums.losses
        total["weight"] += sums.weight
        if not isinstance(found, Errors):
            for model, places in enumerate(found):
                counts = torch.bincount(places[places >= 0], minlength=self.task.outputs**2)
                total["confusion"][model] += counts.view_as(total["confusion"][model])
            return
        present = is_present(found.centred)
        error = torch.where(present, found.error, 0.0)
        centred = torch.where(present, found.centred, 0.0)
        total["absolute"] += error.abs().sum(1)
        total["squared"] += error.square().sum(1)
        total["rows"] += present.sum(0)
        total["centred"] += centred.sum(0)
        total["centred_squared"] += centred.square().sum(0)
        if self.task.vectors:
            # a vector of which a component is missing has no length
            whole = present.unflatten(-1, (len(self.task.vectors), -1)).all(-1)
            lengths = error.unflatten(-1, (len(self.task.vectors), -1)).norm(dim=-1)
            total["lengths"] += torch.where(whole, lengths, 0.0).sum(1)
            total["whole"] += whole.sum(0)

    def reduce(self, over_devices: Callable[[Tensor], Tensor]) -> None:
        """Add up over devices."""
        self.sums = {name: over_devices(value) for name, value in self.sums.items()}

    def values(self) -> dict[str, Tensor]:
        """All metrics `[S]` by name; NaN without labels."""
        sums = {name: value.cpu() for name, value in self.sums.items()}
        found = {"loss": sums["loss"] / sums["weight"]}
        if self.task.kind == "classification":
            found["accuracy"] = _accuracy(sums["confusion"])
            found["f1"] = _f1(sums["confusion"])
            return found
        rows = sums["rows"]
        spread = sums["centred_squared"] - sums["centred"].square() / rows.clamp(min=1)
        for k, (column, part) in enumerate(parts_of(self.task)):
            count, squared = rows[part].sum(), sums["squared"][:, part].sum(1)
            found[f"mae{column}"] = sums["absolute"][:, part].sum(1) / count
            found[f"mse{column}"] = squared / count
            found[f"rmse{column}"] = (squared / count).sqrt()
            if self.task.vectors:
                found[f"vector_error{column}"] = sums["lengths"][:, k] / sums["whole"][k]
            if has_r2(self.task):
                about = float(sums["centred_squared"][part].sum())
                found[f"r2{column}"] = _r2(squared, float(spread[part].sum()), about)
        return found


def as_rows(outputs: Tensor) -> Tensor:
    """Outputs of models as numbers: several vectors `[S, rows, k, n]` as `[S, rows, k * n]`."""
    return outputs.flatten(2)


class Judge:
    """The losses of outputs and what :meth:`Metrics.add` counts, for a task and its units.

    Args:
        task: what is asked of each graph.
        scaler: between labels in their units and what a model gives.
        scale: of the coordinates, which predicted coordinates are divided by.
        loss: of regression, a name of :data:`LOSSES`.
        class_weights: `[classes]`, of the cross-entropy.
        center: the mean of the training labels as a model gives them, `[targets]`. R2 is computed
            from sums of differences from it, which keep their digits beside large labels.
        target_weights: `[targets]`, of the labels of each column; all count alike without.
    """

    def __init__(
        self,
        task: Task,
        scaler: Scaler,
        scale: float = 1.0,
        loss: str = "mse",
        class_weights: Tensor | None = None,
        center: Tensor | None = None,
        target_weights: Tensor | None = None,
    ) -> None:
        self.task, self.scaler, self.scale = task, scaler, scale
        self.target_weights = target_weights
        self.loss, self.class_weights = loss, class_weights
        self.center = torch.zeros(len(task.targets)).double() if center is None else center

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The summed losses `[S]` of outputs `[S, rows, outputs]`, for answers of the dataset."""
        outputs = as_rows(outputs)
        if self.task.kind == "regression":
            y = self.scaler(y)
            y = y if outputs.dtype == torch.float64 else y.float()
        given = (self.class_weights, self.target_weights)
        return loss_sums(outputs, y, self.task, self.loss, *given).losses

    def weight(self, y: Tensor) -> Tensor:
        """The divisor of the loss: the number of labels, or the sum of their weights."""
        present = is_present(y)
        if self.class_weights is not None:
            return self.class_weights.to(y.device)[y[present]].sum()
        if self.target_weights is not None:
            return (present * self.target_weights.to(y.device)).sum()
        return present.sum()

    def __call__(self, outputs: Tensor, y: Tensor) -> tuple[Sums, Tensor | Errors]:
        """For outputs `[S, rows, outputs]` of models, and answers of the dataset."""
        outputs = as_rows(outputs)
        if self.task.kind == "classification":
            sums = loss_sums(outputs, y, self.task, self.loss, self.class_weights)
            return sums, y * self.task.outputs + outputs.argmax(-1)
        y = exact = self.scaler(y)
        if outputs.dtype != torch.float64:
            y = y.float()
        sums = loss_sums(outputs, y, self.task, self.loss, None, self.target_weights)
        unit = self.unit(y.device)
        # the difference before its unit: energies can be large beside their spread
        error = (outputs - y).double() * unit
        return sums, Errors(error, (exact.double() - self.center.to(y.device)) * unit)

    def unit(self, device: torch.device | str = "cpu") -> Tensor:
        """The size of one unit of the output in units of each target, `[targets]`."""
        unit = self.scaler.deviation.to(device)
        if self.task.level == "potential":
            return unit * MILLI
        return unit / self.scale if self.task.lengths else unit

    def in_units(self, outputs: Tensor) -> Tensor:
        """Outputs of a regression `[..., rows, targets]` in units of the targets."""
        found = self.scaler.back(outputs)
        return found / self.scale if self.task.lengths else found

    def labels(self, y: Tensor) -> Tensor:
        """Answers of the dataset `[rows, targets]` in units of the targets."""
        found = self.scaler.back(y) if self.scaler.done else y.double()
        return found / self.scale if self.task.lengths else found


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


def _r2(squared: Tensor, spread: float, centred: float) -> Tensor:
    """1 - squared error / spread of the labels; NaN where the labels do not differ."""
    if spread <= 1e-12 * centred:  # nothing but rounding
        return torch.full_like(squared, torch.nan)
    return 1 - squared / spread
