"""The steps of a search: the ladder, knock-outs, inputs, pose, checks, the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data import Task
from symgnn.discovery._choosing_networks import advised, candidates
from symgnn.discovery._deciding import MARGIN, NEGLIGIBLE, best_of, compare
from symgnn.discovery._discovery_report import DiscoveryReport, ExpectedError
from symgnn.discovery._even_draws import Bridges
from symgnn.discovery._input_warnings import input_warnings, large_graphs, limits
from symgnn.discovery._kind_verdicts import compared, enough, judge, kept_by_errors
from symgnn.discovery._ladder import AGAIN, AND, FOLDS, ORDER, RUNGS, Rung, rung_residuals
from symgnn.discovery._moving import ADMITTED, ERASING, NULL_SPACES, admitted, is_large, moved
from symgnn.discovery._packing import Pack, pack
from symgnn.discovery._pose import PoseFinding, pose_shortcut
from symgnn.discovery._residual_steps import ResidualSteps
from symgnn.discovery._residual_test import (
    TESTED,
    ResidualFinding,
)
from symgnn.discovery._spread import COMPACT, SpreadFinding, randomisation_test, spread_of
from symgnn.discovery._stage_store import StageStore
from symgnn.discovery._target_rows import TargetRows, target_rows
from symgnn.discovery._variation_test import ISOMETRIES, variation_test
from symgnn.discovery._vector_rungs import VECTOR_RUNGS, turned, vector_residuals
from symgnn.geometry import PERMUTATIONS, Symmetry

#: What may be asked beside the targets.
QUESTIONS = ("inputs", "pose", "checks")


class Search:
    """The steps of a search, in order."""

    def __init__(
        self,
        graphs: list[Data],
        task: Task,
        seed: int,
        store: StageStore,
        questions: Sequence[str] = QUESTIONS,
    ) -> None:
        self.questions = questions
        self.graphs, self.task, self.seed, self.store = graphs, task, seed, store
        generator = torch.Generator().manual_seed(seed)
        self.pack: Pack = pack(graphs, generator)
        self.rows: TargetRows = target_rows(graphs, task, self.pack, generator)
        self.shares = admitted(graphs, self.rows.vectors, seed)
        self.kinds = [kind for kind, share in self.shares.items() if share >= ADMITTED]
        #: How many graphs have too many nodes for flexes and redrawings.
        self.large = 0 if self.rows.vectors else sum(map(is_large, graphs))
        self.untried = [kind for kind in NULL_SPACES if self.large and kind not in self.kinds]
        self.symmetries: dict[str, Symmetry] = (
            dict(VECTOR_RUNGS)
            if self.rows.vectors
            else {name: rung.symmetry for name, rung in RUNGS.items()}
        )
        self.rungs = dict(RUNGS)
        self.blind = next(iter(self.symmetries))
        self.losses: dict[str, Tensor] = {}
        self.cache: dict[str, Tensor] = {}
        self.tested = [kind for kind in TESTED if kind in self.kinds]
        compact = [kind for kind in self.tested if kind in COMPACT]
        steps = 2 * len(self.symmetries) + (0 if self.rows.vectors else 1)
        steps += len(self.tested) + len(compact)
        store.total = steps + 2 * len(self.kinds) + 1 + len(ISOMETRIES)

    def report(self) -> DiscoveryReport:
        """Run all steps and put the report together."""
        done = [self._rung(name) for name in list(self.symmetries)]
        whole = all(done)
        joined = whole and self._joined()
        if joined and not self.rows.vectors:
            joined = self._ordered()
        best = best_of(self.losses, self.losses) if self.losses else ""
        baseline = self.rows.per_graph(self._around_mean().square().mean(1))
        signal = (0.0, 1.0)
        if whole:
            # of the rung that other graphs chose: the best of many always looks good
            found = compare({**self.losses, "mean": baseline}, ["mean"], self.blind, self.seed)
            signal = 1 - 1 / found.ratio**2, found.p_value
        knocked: dict[str, dict[str, Tensor]] = {}
        variation: dict[str, float | None] = {}
        seen = [kind for kind in self.kinds if whole and kind not in self.symmetries[best]]
        rivals = self._rivals(best) if whole else []
        self._knock_out([kind for kind in seen if kind in ERASING], rivals, knocked)
        residuals: dict[str, dict[str, Any] | None] = {}
        if whole and enough(signal):
            errors = self.kinds, self.losses, self.symmetries, knocked, self.blind, self.seed
            kept = kept_by_errors(compared(*errors, self._having()))
            residuals = ResidualSteps(self).findings(kept)
        joined = joined and None not in residuals.values()
        findings: dict[str, SpreadFinding | None] = {}
        if "inputs" in self.questions:
            findings = {kind: self._spread(kind) for kind in self.kinds}
        pose = self.store.run("pose", self._pose) if "pose" in self.questions else None
        if "checks" in self.questions:
            self._knock_out([kind for kind in seen if kind not in ERASING], [best], knocked)
            variation = {kind: self._variation(kind) for kind in self.kinds if kind in ISOMETRIES}
        verdicts = judge(
            kinds=self.kinds,
            losses=self.losses,
            variation=variation,
            symmetries=self.symmetries,
            knocked=knocked,
            blind=self.blind,
            spread={kind: found for kind, found in findings.items() if found is not None},
            signal=signal,
            seed=self.seed,
            whole=whole,
            joined=joined,
            residuals={k: ResidualFinding(**found) for k, found in residuals.items() if found},
            late=[kind for kind in seen if kind in ERASING and kind not in knocked],
            vectors=self.rows.vectors,
            among=self._having(),
        )
        kept = [kind for kind, found in verdicts.items() if found.verdict == "kept"]
        network = advised(candidates(self.task, self.pack.dimension), kept, self.kinds, self.losses)
        expected = None if network is None else self._expected(network.symmetry, baseline)
        return DiscoveryReport(
            graphs=len(self.graphs),
            dimension=self.pack.dimension,
            task=self.task,
            verdicts=verdicts,
            absent={
                kind: share
                for kind, share in self.shares.items()
                if kind not in (*self.kinds, *self.untried)
            },
            untried=list(self.untried),
            ladder={
                name: (float(loss.mean()) / float(baseline.mean())) ** 0.5
                for name, loss in self.losses.items()
            },
            symmetries={name: str(self.symmetries[name]) for name in self.losses},
            best=best,
            signal=signal,
            pose={} if pose is None else {k: _pose_of(v) for k, v in pose.items()},
            model={} if network is None else network.model,
            network=None if network is None else network.symmetry,
            expected=expected,
            warnings=input_warnings(self.graphs) + self._limits(),
            missed=list(self.store.missed),
            seed=self.seed,
            example=self.graphs[0],
        )

    def _expected(self, network: Symmetry, baseline: Tensor) -> ExpectedError | None:
        """The error of the best rung that keeps all that a network keeps."""
        kept = [kind for kind in self.kinds if kind in network]
        alike = [n for n in self.losses if all(kind in self.symmetries[n] for kind in kept)]
        if not alike:
            return None
        share = (float(self.losses[best_of(self.losses, alike)].mean() / baseline.mean())) ** 0.5
        deviation = self.rows.deviation
        return ExpectedError(share, None if deviation is None else share * deviation)

    def _having(self) -> dict[str, Tensor]:
        """Which graphs have a transformation of a kind that not all have."""
        return {"torsion": Bridges(self.pack).graphs} if "torsion" in self.kinds else {}

    def _limits(self) -> list[str]:
        blind = self.losses.get(self.blind)
        alone = blind is not None and not self.rows.vectors and float(blind.mean()) < NEGLIGIBLE
        unmoved = [kind for kind in NULL_SPACES if self.large and kind in self.kinds]
        found = limits(alone, self.pack.sampled, self.store.missed, self.untried)
        return found + large_graphs(unmoved, self.large, len(self.graphs))

    def _around_mean(self) -> Tensor:
        return self.rows.y if self.rows.vectors else self.rows.y - self.rows.y.mean(0)

    def _rung(self, name: str) -> bool:
        found = self.store.run(
            f"rung: {name}", partial(self._fitted, name, self.pack, self.rows, self.cache)
        )
        return self._keep(name, found)

    def _keep(self, name: str, found: list[float] | None) -> bool:
        if found is None:
            return False
        self.losses[name] = torch.tensor(found, dtype=torch.float64)
        return True

    def _fitted(
        self, name: str, packed: Pack, rows: TargetRows, cache: dict[str, Tensor]
    ) -> list[float]:
        """The mean squared error of each graph, over the variance of the targets."""
        found = self.residuals_of(name, packed, rows, cache)
        return rows.per_graph(found.square().mean(1)).tolist()

    def residuals_of(
        self,
        name: str,
        packed: Pack,
        rows: TargetRows,
        cache: dict[str, Tensor],
        fitted: Tensor | None = None,
    ) -> Tensor:
        if rows.vectors:
            names, lengths = name.split(AND), self.task.lengths
            return vector_residuals(names, packed, rows, self.seed, lengths, FOLDS, fitted)
        return rung_residuals(self.rungs[name], packed, rows, self.seed, cache, fitted)

    def _joined(self) -> bool:
        """The best rung together with those that see more, and the best of those that see less.

        Targets may have a part that needs little (lengths) and one that needs more (a little
        height). A rung that reads coordinates alone learns the first part worse than one of
        lengths, and would hide that there is a second one. Two rungs have twice the random
        functions of one; so that this is not taken for something that was seen, the best rung
        is also joined with itself, with other random weights.
        """
        best = best_of(self.losses, self.losses)
        seen = self.symmetries[best]
        more = [name for name in self.symmetries if self.symmetries[name] & seen != seen]
        less = [n for n in self.symmetries if n not in (*more, best, self.blind)]
        others = [*more, best_of(self.losses, less)] if less else more
        self.store.total += len(others) + 1 - len(self.symmetries)
        done = []
        for other in [best, *others]:
            name = best + AND + (other + AGAIN if other == best else other)
            if not self.rows.vectors:
                added = RUNGS[other].channels
                if other == best:
                    added = tuple(channel + AGAIN for channel in added)
                channels = dict.fromkeys((*RUNGS[best].channels, *added))
                self.rungs[name] = Rung(name, tuple(channels))
            self.symmetries[name] = seen & self.symmetries[other]
            done.append(self._rung(name))
        return all(done)

    def _ordered(self) -> bool:
        """The best rung with the order of the nodes."""
        best = best_of(self.losses, self.losses)
        name = best + ORDER
        self.rungs[name] = Rung(name, (*self.rungs[best].channels, "order"))
        self.symmetries[name] = self.symmetries[best] - PERMUTATIONS
        return self._rung(name)

    def _knock_out(
        self, kinds: Sequence[str], names: Sequence[str], knocked: dict[str, dict[str, Tensor]]
    ) -> None:
        for kind in kinds:
            found = self.store.run(f"knock-out: {kind}", partial(self._knocked, kind, names))
            if found is not None:
                knocked[kind] = {
                    name: torch.tensor(each, dtype=torch.float64) for name, each in found.items()
                }

    def _rivals(self, best: str) -> list[str]:
        """The rungs that are as good as the best: each of them might have been it by chance."""
        most = (1 + MARGIN) ** 2 * float(self.losses[best].mean().clamp(min=NEGLIGIBLE))
        return [name for name, loss in self.losses.items() if float(loss.mean()) <= most]

    def _knocked(self, kind: str, names: Sequence[str]) -> dict[str, list[float]]:
        """Errors of rungs that see a kind, on graphs that are transformed at random."""
        number = 10_000 + 100 * self.seed + self.kinds.index(kind)
        half = kind == "reflection"  # the group has two halves
        packed, linear = moved(kind, self.pack, self.graphs, number, half)
        rows = self.rows if not self.rows.vectors else turned(self.rows, linear, self.task.lengths)
        seeing = [name for name in names if kind not in self.symmetries[name]]
        cache: dict[str, Tensor] = {}
        return {name: self._fitted(name, packed, rows, cache) for name in seeing}

    def even(self, kind: str) -> list[float] | None:
        """The p-value that inputs are spread evenly over a compact group, and the copies made."""
        test = partial(randomisation_test, kind, self.pack, self.graphs, self.seed)
        return self.store.run(f"inputs: {kind}", lambda: list(test()))

    def _variation(self, kind: str) -> float | None:
        test = partial(variation_test, kind, self.pack, self.rows, self.seed)
        return self.store.run(f"variation: {kind}", test)

    def _spread(self, kind: str) -> SpreadFinding | None:
        even = self.even(kind) if kind in COMPACT else None
        found = self.store.run(
            f"spread: {kind}",
            lambda: asdict(spread_of(kind, self.pack, self.graphs, self.seed, even)),
        )
        if found is None:
            return None
        return SpreadFinding(**{**found, "interval": tuple(found["interval"])})

    def _pose(self) -> dict[str, Any]:
        found = pose_shortcut(self.pack, self.rows, self.seed)
        return {name: asdict(finding) for name, finding in found.items()}


def _pose_of(found: Mapping[str, Any]) -> PoseFinding:
    low, high = found["interval"]
    return PoseFinding(found["explained"], (low, high))
