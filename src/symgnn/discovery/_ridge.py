"""Kernel ridge regression with closed-form leave-one-out errors to choose its settings by."""

from __future__ import annotations

import torch
from torch import Tensor

#: Widths of the Gaussian kernel, times the mean distance; None for the linear kernel.
WIDTHS: tuple[float | None, ...] = (None, 0.7, 2.0)
PENALTIES = tuple(10.0**k for k in range(-7, 3))


def standardised(values: Tensor) -> Tensor:
    """Columns of mean 0 and deviation 1, without those that do not vary, in float64."""
    values = values.double()
    centred = values - values.mean(0)
    spread = centred.square().mean(0).sqrt()
    varies = spread > 1e-6 * values.abs().amax(0).clamp(min=1e-12)
    return centred[:, varies] / spread[varies]


def kernels(values: Tensor) -> list[Tensor]:
    """The kernels of standardised rows, `[G, k] -> [G, G]` each."""
    if values.shape[1] == 0:
        return [torch.zeros(len(values), len(values), dtype=torch.float64)]
    linear = values @ values.T / values.shape[1]
    square = linear.diagonal()
    distance = (square.unsqueeze(1) + square - 2 * linear).clamp(min=0)
    typical = distance.mean().clamp(min=1e-12)
    return [
        linear if width is None else torch.exp(-distance / (2 * width**2 * typical))
        for width in WIDTHS
    ]


def predictions(grams: list[Tensor], y: Tensor, folds: Tensor, centred: bool = True) -> Tensor:
    """Predictions for every row by a fit to the other folds, `[G, t]`.

    All fits come from one factorisation of each kernel: with `H = (K + p)^-1`, the rows B of a
    fold are off by `H_BB^-1 (H y)_B` when they are left out. The kernel and the penalty p of a fold
    are those with the smallest error on the other folds.

    Args:
        grams: Kernels `[G, G]`.
        y: Targets `[G, t]`.
        folds: The fold of each row `[G]`.
        centred: Whether a constant may be added to the predictions.
    """
    numbers = folds.unique().tolist()
    errors, residuals = [[_of_folds(y, folds, numbers)], [y]]
    for gram in grams:
        if centred:
            gram = gram + gram.diagonal().mean()
        values, vectors = torch.linalg.eigh(gram)
        values, turned = values.clamp(min=0), vectors.T @ y
        typical = values.mean().clamp(min=1e-12)
        for penalty in PENALTIES:
            inverse = 1 / (values + penalty * typical)
            off = torch.empty_like(y)
            for fold in numbers:
                rows = vectors[folds == fold]
                weights = rows @ (inverse.unsqueeze(1) * turned)
                off[folds == fold] = torch.linalg.solve((rows * inverse) @ rows.T, weights)
            errors.append(_of_folds(off, folds, numbers))
            residuals.append(off)
    table = torch.stack(errors)  # [settings, folds], sums of squares
    out = torch.empty_like(y)
    for place, fold in enumerate(numbers):
        chosen = int((table.sum(1) - table[:, place]).argmin())
        rows = folds == fold
        out[rows] = (y - residuals[chosen])[rows]
    return out


def _of_folds(off: Tensor, folds: Tensor, numbers: list[int]) -> Tensor:
    return torch.stack([off[folds == fold].square().sum() for fold in numbers])
