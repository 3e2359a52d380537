"""From paired errors to verdicts: intervals, p-values, and the lattice that they agree on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

#: A loss of at most 5 % of the root mean square error, and of a fifth of what coordinates add, is
#: none; more of either matters.
MARGIN, SHARE = 0.05, 0.2
LEVEL = 0.05
#: The level, after Holm's correction, at which residuals that depend on a kind take back "kept".
RESIDUAL_LEVEL = 0.01
#: Squared errors below this share of the variance of the targets are none: 1 % of their deviation.
#: Without noise all errors are that small, and their ratios are those of penalties and rounding.
NEGLIGIBLE = 1e-4
RESAMPLES = 1_000
#: Whoever keeps the first kind keeps the others, which products of its elements are. If both sides
#: of a bridge are turned, so is the whole graph; two bridges in different lines also move it.
IMPLIES: dict[str, tuple[str, ...]] = {
    "reflection": ("rotation",),
    "inversion": ("translation", "rotation", "reflection", "dilation", "special-conformal"),
    "affine": ("translation", "rotation", "reflection", "dilation"),
    "torsion": ("translation", "rotation"),
    "flex": ("torsion",),
}


@dataclass(frozen=True)
class Comparison:
    """How much worse one predictor is than another, on the same graphs."""

    worse: str  # the predictor that is not allowed to see, by its name
    best: str  # the one that it is compared with
    ratio: float  # of root mean square errors
    interval: tuple[float, float]  # 90 %: each end is a one-sided bound of 95 %
    share: float  # of what coordinates add, that is lost
    share_interval: tuple[float, float]
    p_value: float  # that it is not worse, one-sided


def compare(
    losses: Mapping[str, Tensor],
    allowed: Sequence[str],
    baseline: str,
    seed: int = 0,
    among: Tensor | None = None,
) -> Comparison:
    """Compare the best of some predictors with the best of all, on graphs that did not choose them.

    Both are chosen on one half of the graphs and compared on the other, and the other way round.

    Args:
        losses: Of each predictor, one for each graph `[G]`.
        allowed: The names of those that may be right.
        baseline: The name of the predictor that sees no coordinates.
        seed: Of the halves and of the bootstrap.
        among: Which graphs are compared `[G]`; all if not given.
    """
    if among is not None:
        losses = {name: each[among] for name, each in losses.items()}
    names = list(losses)
    table = torch.stack([losses[name] for name in names])  # [predictors, G]
    graphs = table.shape[1]
    generator = torch.Generator().manual_seed(seed)
    half = torch.randperm(graphs, generator=generator) % 2 == 0
    mine = torch.tensor([name in allowed for name in names])
    worse, best = torch.zeros(graphs).double(), torch.zeros(graphs).double()
    for here in (half, ~half):
        mean = table[:, ~here].mean(1)
        first = int(torch.where(mine, mean, math.inf).argmin())
        second = int(mean.argmin())
        worse[here], best[here] = table[first, here], table[second, here]
    mean = table.mean(1)
    chosen = names[int(torch.where(mine, mean, math.inf).argmin())], names[int(mean.argmin())]
    blind = losses[baseline]
    drawn = torch.randint(graphs, (RESAMPLES, graphs), generator=generator)
    ratios = _ratio(worse[drawn].mean(1), best[drawn].mean(1))
    shares = _share(worse[drawn].mean(1), best[drawn].mean(1), blind[drawn].mean(1))
    return Comparison(
        *chosen,
        float(_ratio(worse.mean(), best.mean())),
        _ends(ratios),
        float(_share(worse.mean(), best.mean(), blind.mean())),
        _ends(shares),
        1.0 if float(worse.mean()) <= NEGLIGIBLE else p_of_difference(worse - best),
    )


def error_ratio(worse: Tensor, best: Tensor) -> float:
    """The ratio of root mean square errors of two predictors, from their losses `[G]`."""
    return float(_ratio(worse.mean(), best.mean()))


def p_of_difference(difference: Tensor) -> float:
    """The one-sided p-value of Student's test that the mean is not above 0."""
    from scipy.stats import t

    spread = float(difference.std())
    if spread == 0:
        return 1.0 if float(difference.mean()) <= 0 else 0.0
    score = float(difference.mean()) / spread * math.sqrt(len(difference))
    return float(t.sf(score, len(difference) - 1))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values: all below a level are right at once with that level."""
    found, largest = {}, 0.0
    order = sorted(p_values, key=lambda kind: p_values[kind])
    for place, kind in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p_values[kind]))
        found[kind] = largest
    return found


def verdict_of(comparison: Comparison, adjusted: float) -> str:
    """ "kept", "broken" or "undecided"."""
    least, most = comparison.interval
    if most <= 1 + MARGIN and comparison.share_interval[1] <= SHARE:
        return "kept"
    return "broken" if adjusted < LEVEL and least > 1 else "undecided"


def closed(verdicts: Mapping[str, str]) -> dict[str, str]:
    """Verdicts that follow from others: reflections are kept only if rotations are."""
    found = dict(verdicts)
    for kind, implied in IMPLIES.items():
        if kind in found and any(found.get(each) == "broken" for each in implied):
            found[kind] = "broken"
        elif found.get(kind) == "kept" and any(found.get(e) == "undecided" for e in implied):
            found[kind] = "undecided"
    return found


def _ratio(worse: Tensor, best: Tensor) -> Tensor:
    return (worse.clamp(min=NEGLIGIBLE) / best.clamp(min=NEGLIGIBLE)).sqrt()


def _share(worse: Tensor, best: Tensor, blind: Tensor) -> Tensor:
    """Of what coordinates add to a prediction, the part that is lost; 0 where they add nothing."""
    worse, best = worse.clamp(min=NEGLIGIBLE), best.clamp(min=NEGLIGIBLE)
    added = (blind - best).clamp(min=1e-12)
    return torch.where(worse > best, (worse - best) / added.maximum(worse - best), 0.0)


def _ends(values: Tensor) -> tuple[float, float]:
    low, high = torch.quantile(values, torch.tensor([0.05, 0.95], dtype=values.dtype)).tolist()
    return low, high


def best_of(losses: Mapping[str, Tensor], names: Iterable[str]) -> str:
    """The predictor with the least mean loss."""
    return min(names, key=lambda name: float(losses[name].mean()))
