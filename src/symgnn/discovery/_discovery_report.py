"""What a search found: verdicts, advice, a network and a page."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from symgnn.data import Task
from symgnn.discovery._advice import advice
from symgnn.discovery._deciding import (
    LEVEL,
    RESIDUAL_LEVEL,
    Comparison,
    closed,
    compare,
    error_ratio,
    holm,
    verdict_of,
)
from symgnn.discovery._discovery_page import page
from symgnn.discovery._moving import ERASING
from symgnn.discovery._pose import PoseFinding
from symgnn.discovery._spread import SpreadFinding
from symgnn.geometry import Symmetry
from symgnn.geometry.symmetry import plural
from symgnn.nn import Model, averages, build
from symgnn.store import finite, write_whole
from symgnn.train._prepare import sizes_of

#: A held-out R^2 below this is too little signal to say anything.
LEAST_SIGNAL = 0.02
#: The level at which there is a signal at all.
SIGNAL_LEVEL = 0.01
#: Where coordinates add nothing that can be seen, more than this share of the targets has to be
#: explained without them: what is left could be noise, or what no rung can read.
EXPLAINED_BY_GRAPHS = 0.9
KNOCK_OUT = "knock-out"
RESIDUALS = "residuals depend on it"
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
    residual: float | None = (
        None  # p-value that residuals of rungs that keep it do not depend on it
    )
    variation: float | None = None  # p-value of Christie and Aston's test, which trains nothing
    spread: SpreadFinding | None = None  # of the inputs

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.kind}: {self.verdict} (error x {self.effect:.2f}, {low:.2f} to {high:.2f}, "
            f"p = {self.p_value:.2g}; {self.how})"
        )


def judge(
    *,
    kinds: Sequence[str],
    losses: Mapping[str, Tensor],
    variation: Mapping[str, float | None],
    symmetries: Mapping[str, Symmetry],
    knocked: Mapping[str, Tensor],
    blind: str,
    spread: Mapping[str, SpreadFinding],
    signal: tuple[float, float],
    seed: int,
    whole: bool,
    residuals: Mapping[str, float] | None = None,
    joined: bool = True,
    late: Collection[str] = (),
    vectors: bool = False,
) -> dict[str, KindVerdict]:
    """The verdict of each kind, from paired errors.

    Args:
        kinds: Those that the data admit.
        losses: Of each rung, one for each graph.
        variation: P-values of the test without training.
        symmetries: What each rung keeps.
        knocked: Errors of the best rung on transformed graphs.
        blind: The rung that reads no coordinates.
        spread: Of the inputs.
        signal: The held-out R^2 of the best rung, and the p-value that there is none.
        seed: Of halves and bootstraps.
        whole: Whether every rung was tried.
        residuals: P-values that residuals do not depend on a kind.
        joined: Whether every rung was tried together with the best one; if not, nothing is kept.
        late: Kinds for whose knock-out there was no time; if the ladder alone says so, they are
            not broken.
        vectors: Whether targets are vectors, which no graph alone can tell.
    """
    if not whole or signal[0] < LEAST_SIGNAL or signal[1] > SIGNAL_LEVEL:
        why = TIME_OVER if not whole else "too little signal in the targets"
        return {
            kind: KindVerdict(
                kind, "undecided", 1.0, (0.0, float("inf")), 1.0, 0.0, why, why,
                spread=spread.get(kind),
            )
            for kind in kinds
        }  # fmt: skip
    found: dict[str, Comparison] = {}
    for kind in kinds:
        allowed = [name for name in losses if kind in symmetries[name]]
        every = dict(losses)
        if kind in knocked and kind in ERASING:
            every[KNOCK_OUT] = knocked[kind]
        found[kind] = compare(every, [*allowed, KNOCK_OUT], blind, seed)
    adjusted = holm({kind: comparison.p_value for kind, comparison in found.items()})
    own = {kind: verdict_of(comparison, adjusted[kind]) for kind, comparison in found.items()}
    added = compare(losses, [blind], blind, seed)
    unseen = added.p_value >= LEVEL and signal[0] < EXPLAINED_BY_GRAPHS and not vectors
    residuals = residuals or {}
    doubted = holm({kind: p for kind, p in residuals.items() if own.get(kind) == "kept"})
    out_of_time, dependent = set(), set()
    for kind, known in own.items():
        if unseen and kind != "permutation" and known == "kept":
            own[kind] = "undecided"
        if doubted.get(kind, 1.0) <= RESIDUAL_LEVEL:
            own[kind] = "undecided"
            dependent.add(kind)
        if (known == "kept" and not joined) or (known == "broken" and kind in late):
            own[kind] = "undecided"
            out_of_time.add(kind)
    final = closed(own)
    verdicts = {}
    for kind, comparison in found.items():
        by = KNOCK_OUT if comparison.worse == KNOCK_OUT else "ladder"
        ratio = None
        if kind in knocked:
            best = losses[comparison.best] if comparison.best in losses else losses[blind]
            ratio = error_ratio(knocked[kind], best)
            by = "both" if own[kind] == "broken" and kind in ERASING else by
        if final[kind] != own[kind]:
            by = "a kind that it implies"
        elif kind in out_of_time:
            by = TIME_OVER
        elif kind in dependent:
            by = RESIDUALS
        elif unseen and final[kind] == "undecided":
            by = NOTHING_ADDED
        verdicts[kind] = KindVerdict(
            kind=kind,
            verdict=final[kind],
            effect=comparison.ratio,
            interval=comparison.interval,
            p_value=adjusted[kind],
            share=comparison.share,
            decided_by=by,
            how=f"{comparison.worse} against {comparison.best}",
            knock_out=ratio,
            p_unadjusted=comparison.p_value,
            residual=residuals.get(kind),
            variation=variation.get(kind),
            spread=spread.get(kind),
        )
    return verdicts


class ExpectedError(NamedTuple):
    """What the rungs with the symmetry of the advised network reach on held-out graphs."""

    share: float  # root mean square error over the deviation of the targets
    value: float | None  # in the units of the target, where there is one


@dataclass
class DiscoveryReport:
    """What :func:`symgnn.discover` found.

    Example:
        >>> import symgnn
        >>> solids = symgnn.data.load("polytopes-3d", copies=4)
        >>> report = symgnn.discover(solids, minutes=1, progress=False)
        >>> report.build().symmetry == report.network
        True
    """

    graphs: int
    dimension: int
    task: Task
    verdicts: dict[str, KindVerdict]
    absent: dict[str, float]  # kinds that too few graphs admit, with the share that does
    ladder: dict[str, float]  # root mean square error of each rung over that of the mean
    symmetries: dict[str, str]  # of the rungs
    best: str  # the rung with the smallest error
    signal: tuple[float, float]  # held-out R^2 of it, and the p-value that there is no signal
    pose: dict[str, PoseFinding]
    model: dict[str, Any]  # the section `model` of the advised network
    network: Symmetry | None  # its symmetry
    expected: ExpectedError | None  # of it, from as many graphs
    warnings: list[str]
    missed: list[str]  # steps for which there was no time
    seed: int
    example: Data = field(repr=False)
    config: dict[str, Any] = field(default_factory=dict)  # for `symgnn train`
    seconds: float = 0.0

    @property
    def kept(self) -> list[str]:
        """The kinds that the targets keep."""
        return self._with("kept")

    @property
    def broken(self) -> list[str]:
        """The kinds that matter."""
        return self._with("broken")

    @property
    def undecided(self) -> list[str]:
        """The kinds that the data do not decide."""
        return self._with("undecided")

    def _with(self, verdict: str) -> list[str]:
        return [kind for kind, found in self.verdicts.items() if found.verdict == verdict]

    @property
    def advice(self) -> str:
        """What a scientist would say, in one paragraph."""
        return advice(self)

    def build(self, graphs: Sequence[Data] | None = None, **options: Any) -> Model:
        """The advised network.

        Args:
            graphs: Training graphs, whose averages the network is standardised by; none if not
                given.
            options: Of :func:`symgnn.nn.build`, such as `hidden`, over those of `model`.

        Returns:
            A network with random weights.
        """
        if not self.model:
            raise ValueError("build: no network for this task is blind to nothing that matters")
        sizes = sizes_of(self.example)
        if "z" in self.example and not sizes.get("node_features"):
            sizes["node_types"] = int(max(118, int(self.example.z.max()))) + 1
        known: dict[str, Any] = {**sizes, "task": self.task.level, "outputs": self.task.outputs}
        known.update({key: value for key, value in self.model.items() if key != "block"})
        known.update(options)
        model = build(self.model["block"], **known)
        if graphs is None:
            return model
        return build(self.model["block"], averages=averages(graphs, model.network), **known)

    def to_dict(self) -> dict[str, Any]:
        """Everything in numbers, ready for JSON."""
        return finite(
            {
                "graphs": self.graphs,
                "dimension": self.dimension,
                "task": asdict(self.task),
                "verdicts": {kind: asdict(found) for kind, found in self.verdicts.items()},
                "absent": self.absent,
                "ladder": self.ladder,
                "symmetries": self.symmetries,
                "best": self.best,
                "signal": {"explained": self.signal[0], "p_value": self.signal[1]},
                "pose": {name: asdict(found) for name, found in self.pose.items()},
                "advice": self.advice,
                "config": self.config,
                "network": None if self.network is None else str(self.network),
                "expected": None if self.expected is None else self.expected._asdict(),
                "warnings": self.warnings,
                "missed": self.missed,
                "seed": self.seed,
            }
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page (`.html`) or everything in numbers (`.json`); give the path."""
        path = Path(path)
        if path.suffix == ".json":
            text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        elif path.suffix in (".html", ".htm"):
            text = page(self)
        else:
            raise ValueError(f"path: {path.name} is neither .html nor .json; choose one of them")
        return write_whole(path, text.encode("utf-8"))

    def __str__(self) -> str:
        dimensions = "dimension" if self.dimension == 1 else "dimensions"
        lines = [
            f"{self.graphs} graphs in {self.dimension} {dimensions}, {self.task.level} "
            f"{self.task.kind} of {', '.join(self.task.targets)}",
            "",
            f"{'transformations':24}{'targets':11}{'error':>8}  {'90 % interval':16}{'p':>8}   "
            "inputs told from transformed ones",
        ]
        for kind, found in self.verdicts.items():
            low, high = found.interval
            inputs = ""
            if found.spread is not None:
                inputs = f"{100 * found.spread.accuracy:.0f} %"
                if found.spread.p_value is not None:
                    inputs += f", p = {found.spread.p_value:.3g}"
            lines.append(
                f"{plural(kind):24}{found.verdict:11}{f'x {found.effect:.2f}':>8}  "
                f"{f'{low:.2f} to {high:.2f}':16}{found.p_value:8.2g}   {inputs}"
            )
        if self.absent:
            names = ", ".join(plural(kind) for kind in self.absent)
            lines.append(f"{'not in these graphs:':24}{names}")
        return "\n".join([*lines, "", self.advice, *(f"Note: {w}" for w in self.warnings)])
