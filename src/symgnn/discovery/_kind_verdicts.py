"""From paired errors to the verdict of each kind of transformation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from symgnn.discovery._deciding import (
    LEVEL,
    RESIDUAL_LEVEL,
    SHARE,
    Comparison,
    best_of,
    closed,
    compare,
    error_ratio,
    holm,
    verdict_of,
)
from symgnn.discovery._moving import ERASING
from symgnn.discovery._residual_test import ResidualFinding
from symgnn.discovery._spread import SpreadFinding
from symgnn.geometry import Symmetry

#: A held-out R^2 below this is too little signal to say anything.
LEAST_SIGNAL = 0.02
#: The level at which there is a signal at all.
SIGNAL_LEVEL = 0.01
#: Where coordinates add nothing that can be seen, more than this share of the targets has to be
#: explained without them: what is left could be noise, or what no rung can read.
EXPLAINED_BY_GRAPHS = 0.9
KNOCK_OUT = "knock-out"
RESIDUALS = "residuals depend on it"
UNSEEN = "an effect that matters would not have been seen"
TIME_OVER = "the time was over"
NOTHING_ADDED = "coordinates add nothing that the rungs can see"


@dataclass(frozen=True)
class KindVerdict:
    """What is known of one kind of transformation."""

    kind: str
    verdict: str  # "kept", "broken" or "undecided"
    effect: float  # error of the best predictor that cannot see it, over that of the best
    interval: tuple[float, float]  # 90 %: each end is a one-sided bound of 95 %
    p_value: float  # that nothing is lost, adjusted for the number of kinds
    share: float  # of what coordinates add to a prediction, that is lost
    decided_by: str  # "ladder", "knock-out", "both", a kind that implies it, or why nothing did
    how: str  # which predictors were compared
    knock_out: float | None = None  # error on transformed graphs, over that on the graphs
    p_unadjusted: float = 1.0  # the same, before Holm's correction
    residual: float | None = None  # p-value that what is unexplained does not depend on it
    visible: float | None = None  # share of the variance that an effect needs to be found so
    variation: float | None = None  # p-value of Christie and Aston's test, which trains nothing
    spread: SpreadFinding | None = None  # of the inputs

    def __str__(self) -> str:
        low, high = self.interval
        seen = ""
        if self.visible is not None and self.verdict == "kept":
            share = f"{100 * self.visible:.2g} %"
            seen = f"; an effect of {share} of the variance would probably have been seen"
        return (
            f"{self.kind}: {self.verdict} (error x {self.effect:.2f}, {low:.2f} to {high:.2f}, "
            f"p = {self.p_value:.2g}; {self.how}{seen})"
        )


def compared(
    kinds: Sequence[str],
    losses: Mapping[str, Tensor],
    symmetries: Mapping[str, Symmetry],
    knocked: Mapping[str, Mapping[str, Tensor]],
    blind: str,
    seed: int,
    among: Mapping[str, Tensor] | None = None,
) -> dict[str, Comparison]:
    """Of each kind, the best predictor that keeps it beside the best of all; see :func:`judge`."""
    found: dict[str, Comparison] = {}
    for kind in kinds:
        allowed = [name for name in losses if kind in symmetries[name]]
        every = dict(losses)
        if kind in knocked and kind in ERASING:
            every |= {_knock_out_of(name): loss for name, loss in knocked[kind].items()}
        allowed += [name for name in every if name not in losses]
        found[kind] = compare(every, allowed, blind, seed, (among or {}).get(kind))
    return found


def kept_by_errors(found: Mapping[str, Comparison]) -> list[str]:
    """The kinds that are kept as far as errors tell."""
    # what is kept does not depend on p-values
    return [kind for kind, comparison in found.items() if verdict_of(comparison, 1.0) == "kept"]


def enough(signal: tuple[float, float]) -> bool:
    """Whether the targets can be predicted at all."""
    return signal[0] >= LEAST_SIGNAL and signal[1] <= SIGNAL_LEVEL


def judge(
    *,
    kinds: Sequence[str],
    losses: Mapping[str, Tensor],
    variation: Mapping[str, float | None],
    symmetries: Mapping[str, Symmetry],
    knocked: Mapping[str, Mapping[str, Tensor]],
    blind: str,
    spread: Mapping[str, SpreadFinding],
    signal: tuple[float, float],
    seed: int,
    whole: bool,
    residuals: Mapping[str, ResidualFinding] | None = None,
    joined: bool = True,
    late: Collection[str] = (),
    vectors: bool = False,
    among: Mapping[str, Tensor] | None = None,
) -> dict[str, KindVerdict]:
    """The verdict of each kind, from paired errors.

    Args:
        kinds: Those that the data admit.
        losses: Of each rung, one for each graph.
        variation: P-values of the test without training.
        symmetries: What each rung keeps.
        knocked: Errors on transformed graphs, of the best rungs that see a kind.
        blind: The rung that reads no coordinates.
        spread: Of the inputs.
        signal: The held-out R^2 of the best rung, and the p-value that there is none.
        seed: Of halves and bootstraps.
        whole: Whether every rung was tried.
        residuals: Whether residuals depend on a kind.
        joined: Whether every rung was tried together with the best one; if not, nothing is kept.
        late: Kinds for whose knock-out there was no time; if the ladder alone says so, they are
            not broken.
        vectors: Whether targets are vectors, which no graph alone can tell.
        among: Of a kind that not all graphs have, those that have it `[G]`.
    """
    if not whole or not enough(signal):
        why = TIME_OVER if not whole else "too little signal in the targets"
        return {
            kind: KindVerdict(
                kind, "undecided", 1.0, (0.0, float("inf")), 1.0, 0.0, why, why,
                spread=spread.get(kind),
            )
            for kind in kinds
        }  # fmt: skip
    found = compared(kinds, losses, symmetries, knocked, blind, seed, among)
    adjusted = holm({kind: comparison.p_value for kind, comparison in found.items()})
    own = {kind: verdict_of(comparison, adjusted[kind]) for kind, comparison in found.items()}
    added = compare(losses, [blind], blind, seed)
    nothing_added = added.p_value >= LEVEL and not vectors
    unseen = nothing_added and signal[0] < EXPLAINED_BY_GRAPHS
    residuals = residuals or {}
    doubted = holm({k: each.p_value for k, each in residuals.items() if own.get(k) == "kept"})
    displaced = _displaced(residuals, doubted)
    out_of_time, dependent, unclear = set(), set(), set()
    unexplained = min(float(loss.mean()) for loss in losses.values())
    most_hidden = SHARE * (float(losses[blind].mean()) - unexplained)
    for kind, known in own.items():
        if unseen and kind != "permutation" and known == "kept":
            own[kind] = "undecided"
        visible = residuals[kind].visible if kind in residuals else None
        hidden = 0.0 if visible is None or nothing_added else min(visible, unexplained)
        if known == "kept" and hidden > most_hidden:
            own[kind] = "undecided"
            unclear.add(kind)
        if doubted.get(kind, 1.0) <= RESIDUAL_LEVEL or (known == "kept" and kind in displaced):
            own[kind] = "undecided"
            dependent.add(kind)
        if (known == "kept" and not joined) or (known == "broken" and kind in late):
            own[kind] = "undecided"
            out_of_time.add(kind)
    final = closed(own)
    verdicts = {}
    for kind, comparison in found.items():
        by = "ladder" if comparison.worse in losses else KNOCK_OUT
        ratio = None
        if knocked.get(kind):
            name = best_of(losses, knocked[kind])
            ratio = error_ratio(knocked[kind][name], losses[name])
            by = "both" if own[kind] == "broken" and kind in ERASING else by
        if final[kind] != own[kind]:
            by = "a kind that it implies"
        elif kind in out_of_time:
            by = TIME_OVER
        elif kind in dependent:
            by = RESIDUALS
        elif kind in unclear:
            by = UNSEEN
        elif unseen and final[kind] == "undecided":
            by = NOTHING_ADDED
        tested = residuals.get(kind)
        verdicts[kind] = KindVerdict(
            kind=kind,
            verdict=final[kind],
            effect=comparison.ratio,
            interval=comparison.interval,
            p_value=adjusted[kind],
            share=comparison.share,
            decided_by=by,
            how=_compared(comparison),
            knock_out=ratio,
            p_unadjusted=comparison.p_value,
            residual=None if tested is None else tested.p_value,
            visible=None if tested is None else tested.visible,
            variation=variation.get(kind),
            spread=spread.get(kind),
        )
    return verdicts


def _displaced(residuals: Mapping[str, ResidualFinding], doubted: Mapping[str, float]) -> set[str]:
    """Kinds that move places too, which matter perhaps, but whose own test leaves them alone."""
    if doubted.get("translation", 1.0) > RESIDUAL_LEVEL:
        return set()
    moved = {kind for kind, found in residuals.items() if found.about_origin}
    return {"rotation", "reflection", "dilation"} - moved


def _knock_out_of(rung: str) -> str:
    return f"{KNOCK_OUT} of {rung}"


def _compared(comparison: Comparison) -> str:
    """Which predictors were compared, in words."""
    if comparison.worse == comparison.best:
        return f"{comparison.best}, the best of all, does not see it"
    return f"{comparison.worse} against {comparison.best}"
