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


def predictions(
    grams: list[Tensor],
    y: Tensor,
    folds: Tensor,
    centred: bool = True,
    fitted: Tensor | None = None,
) -> Tensor:
    """Predictions for every row by a fit to the other folds, `[G, t]`.

    All fits come from one factorisation of each kernel: with `H = (K + p)^-1`, the rows B of a
    fold are off by `H_BB^-1 (H y)_B` when they are left out. The kernel and the penalty p of a fold
    are those with the smallest error on the other folds.

    Args:
        grams: Kernels `[G, G]`.
        y: Targets `[G, t]`.
        folds: The fold of each row `[G]`.
        centred: Whether a constant may be added to the predictions.
        fitted: Which rows are fitted `[G]`, all if not given; the others are predicted too, by the
            fit to the fitted rows of the other folds.
    """
    if fitted is not None and not bool(fitted.all()):
        return _for_all(grams, y, folds, centred, fitted)
    return _for_fitted(grams, y, folds, centred)[0]


def _for_all(
    grams: list[Tensor], y: Tensor, folds: Tensor, centred: bool, fitted: Tensor
) -> Tensor:
    inner = [gram[fitted][:, fitted] for gram in grams]
    guess, chosen = _for_fitted(inner, y[fitted], folds[fitted], centred)
    out = torch.zeros_like(y)
    out[fitted] = guess
    for fold, setting in chosen.items():
        if setting is None:
            continue
        gram, penalty = grams[setting[0]], setting[1]
        constant = float(inner[setting[0]].diagonal().mean()) if centred else 0.0
        train, asked = fitted & (folds != fold), ~fitted & (folds == fold)
        square = gram[train][:, train] + constant
        square.diagonal().add_(penalty)
        weights = torch.linalg.solve(square, y[train])
        out[asked] = (gram[asked][:, train] + constant) @ weights
    return out


#: Of each fold: the number of the kernel and the penalty; None where nothing is predicted.
_Settings = dict[int, tuple[int, float] | None]


def _for_fitted(
    grams: list[Tensor], y: Tensor, folds: Tensor, centred: bool
) -> tuple[Tensor, _Settings]:
    numbers = folds.unique().tolist()
    settings: list[tuple[int, float] | None] = [None]
    errors, residuals = [[_of_folds(y, folds, numbers)], [y]]
    for number, gram in enumerate(grams):
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
            settings.append((number, float(penalty * typical)))
    table = torch.stack(errors)  # [settings, folds], sums of squares
    out, used = torch.empty_like(y), {}
    for place, fold in enumerate(numbers):
        chosen = int((table.sum(1) - table[:, place]).argmin())
        rows = folds == fold
        out[rows] = (y - residuals[chosen])[rows]
        used[fold] = settings[chosen]
    return out, used


def _of_folds(off: Tensor, folds: Tensor, numbers: list[int]) -> Tensor:
    return torch.stack([off[folds == fold].square().sum() for fold in numbers])
