"""Is the pose a shortcut? How much of the target can be told from place, direction and size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symgnn.discovery._packing import Pack
from symgnn.discovery._ridge import kernels, predictions, standardised
from symgnn.discovery._target_rows import TargetRows

PARTS = ("place", "direction", "size")


@dataclass(frozen=True)
class PoseFinding:
    """The share of the variance of the targets that a part of the pose explains."""

    explained: float  # held-out R^2
    interval: tuple[float, float]  # 90 %


def pose(pack: Pack) -> dict[str, Tensor]:
    """The centroid, projectors onto principal axes and the logarithm of the radius, `[G, k]`."""
    x, n = pack.centred / pack.radius[pack.batch].unsqueeze(1), pack.dimension
    outer = pack.mean((x.unsqueeze(2) * x.unsqueeze(1)).flatten(1)).view(pack.size, n, n)
    _, axes = torch.linalg.eigh(outer)
    upper = torch.triu_indices(n, n)
    projectors = [
        (axes[:, :, k].unsqueeze(2) * axes[:, :, k].unsqueeze(1))[:, upper[0], upper[1]]
        for k in range(n - 1, 0, -1)
    ]
    return {
        "place": pack.mean(pack.pos),
        "direction": torch.cat([torch.zeros(pack.size, 0).double(), *projectors], 1),
        "size": pack.radius.log().unsqueeze(1),
    }


def pose_shortcut(pack: Pack, rows: TargetRows, seed: int) -> dict[str, PoseFinding]:
    """What each part of the pose explains, and all of them."""
    parts = pose(pack)
    parts["all"] = torch.cat(list(parts.values()), 1)
    baseline = rows.per_graph((rows.y - rows.y.mean(0)).square().mean(1))
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(pack.size, (1_000, pack.size), generator=generator)
    found = {}
    for name, values in parts.items():
        grams = kernels(standardised(values)[rows.graph])
        guess = predictions(grams, rows.y, rows.folds(5, seed))
        loss = rows.per_graph((guess - rows.y).square().mean(1))
        ratios = 1 - loss[drawn].mean(1) / baseline[drawn].mean(1)
        low, high = torch.quantile(ratios, torch.tensor([0.05, 0.95]).double()).tolist()
        found[name] = PoseFinding(float(1 - loss.mean() / baseline.mean()), (low, high))
    return found
