"""Error at equal time: ours and the peers' own code, trained on the same molecules of QM9.

The protocol: every network has the same number of parameters within 20 %, the same molecules with
the same inputs, the same batches, loss and optimiser, and the same processor time, as other
processes may share the machine; networks take turns for the same reason. Its learning rate is the
best of three, by the validation error after a short training on the first target. Each training is
kept as it goes, and one that was stopped continues.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from symgnn._argument_checks import check_count, check_positive, unknown_name
from symgnn.bench._learning_networks import networks
from symgnn.bench._learning_runs import LOOKS, MoleculeSets, TimedTraining, count_of, take_turns
from symgnn.bench._measure import MissingError, Rounds, Spread
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._suite import Suite, SuitePart
from symgnn.data._qm9 import TARGETS
from symgnn.progress import OnProgress
from symgnn.store import read_json

FINDING = (
    "The error is the mean absolute error on validation molecules; time is the processor time "
    "of training steps. A ratio below 1 means that the best of our networks has the smaller "
    "error after the same time."
)
#: The largest number of parameters over the smallest.
SIZES = 1.2


@dataclass(frozen=True)
class LearningProtocol:
    """The task, the amount of data and the time of a comparison."""

    targets: tuple[str, ...] = ("homo", "zpve", "mu")
    networks: tuple[str, ...] = ()  # all, if there are none
    molecules: int = 10_000
    validation: int = 500
    minutes: float = 2.0  # of each training
    choice: float = 0.2  # the part of the time for which each learning rate is tried
    rates: tuple[float, ...] = (3e-4, 1e-3, 3e-3)
    source: str | None = None

    @property
    def seconds(self) -> float:
        """Of each training."""
        return 60 * self.minutes


#: A second for each network: to see that the suite works.
QUICK = LearningProtocol(
    targets=("homo", "mu"), minutes=0.002, choice=0.5, rates=(1e-3, 3e-3), source="sample"
)


@dataclass(frozen=True)
class LearningSuite(Suite):
    """Trains networks, where the other suites time steps; `place` keeps the trainings."""

    protocol: LearningProtocol = field(default_factory=LearningProtocol)
    place: Path | None = None

    def configured(self, options: Mapping[str, Any], out: Path | None) -> LearningSuite:
        """The suite with options of the command line, its trainings kept in `out/learning`."""
        given = {name: value for name, value in options.items() if value not in (None, [])}
        if "molecules" in given:
            check_count("--molecules", given["molecules"], 1)
        if "minutes" in given:
            check_positive("--minutes", given["minutes"])
        known = networks()
        for name in given.get("networks", ()):
            if name not in known:
                raise ValueError(unknown_name("--network", name, known, "known"))
        if "networks" in given:
            given["networks"] = tuple(given["networks"])
        return replace(
            self,
            protocol=replace(self.protocol, **given),
            place=None if out is None else out / self.name,
        )

    def run(
        self,
        rounds: Rounds,
        quick: bool = False,
        on_progress: OnProgress | None = None,
        shapes: Sequence[str] = (),
    ) -> dict[str, Any]:
        """As every suite, with the curves, the learning rates and the protocol."""
        protocol = replace(QUICK, networks=self.protocol.networks) if quick else self.protocol
        with tempfile.TemporaryDirectory() as elsewhere:
            runs = LearningRuns(protocol, self.place or Path(elsewhere), quick, on_progress)
            parts = [SuitePart(name, partial(runs.claims, name)) for name in protocol.targets]
            suite = replace(self, parts=lambda quick: parts)
            found = super(LearningSuite, suite).run(rounds, quick, None, shapes)
            return {**found, **runs.record()}


class LearningRuns:
    """The trainings of a protocol, kept in a folder: `TARGET-NETWORK.json` each, with its curve,
    and `rate-NETWORK-RATE.json` of each learning rate.
    """

    def __init__(
        self,
        protocol: LearningProtocol,
        place: Path,
        quick: bool = False,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.protocol, self.place, self.on_progress = protocol, place, on_progress
        known = networks(quick)
        self.networks = {name: known[name] for name in protocol.networks or known}
        self.sets = MoleculeSets(protocol.source, protocol.molecules, protocol.validation)
        self.missing: dict[str, str] = {}
        self.rates: dict[str, float] = {}
        self.done = 0.0

    def claims(self, target: str, rounds: Rounds) -> Iterator[SpeedClaim]:
        """The best of ours over each peer, and each of ours over the best peer."""
        if not self.rates:
            self.check_sizes()
            self.choose_rates()
        files = {f"{target}-{name}": (name, rate) for name, rate in self.rates.items()}
        found = self.train(target, files, self.protocol.seconds)
        runs = dict(zip(self.rates, found.values(), strict=True))
        errors = {name: run["error"] for name, run in runs.items()}
        ours, theirs = (
            sorted((n for n in runs if self.networks[n].ours is mine), key=errors.__getitem__)
            for mine in (True, False)
        )
        if ours and theirs:
            for above, below, bound in (
                *((ours[0], peer, 1.0) for peer in theirs),
                *((other, theirs[0], None) for other in ours[1:]),
            ):
                unit = runs[above]["unit"]
                yield SpeedClaim(
                    target,
                    f"error of {above} over {below}",
                    Spread.of([errors[above] / errors[below]]),
                    bound,
                    note=f"{errors[above]:.4g} and {errors[below]:.4g} {unit}",
                )
        for reason in self.missing.values():
            raise MissingError(reason)

    def check_sizes(self) -> None:
        """Refuse networks of different size; leave out those that are not installed."""
        counts = {}
        for name, learner in self.networks.items():
            known = self.sets(self.protocol.targets[0], learner.reach).averages
            try:
                counts[name] = count_of(learner.make(known))
            except MissingError as missing:
                self.missing[name] = str(missing)
        least, most = (choose(counts, key=counts.__getitem__) for choose in (min, max))
        if counts[most] > SIZES * counts[least]:
            raise ValueError(
                f"learning: {most} has {counts[most]:,} parameters and {least} {counts[least]:,}; "
                f"make them alike within a factor of {SIZES}"
            )

    def choose_rates(self) -> None:
        """The best learning rate of each network, by a short training on the first target."""
        target, own = self.protocol.targets[0], self.protocol
        for name in self.networks:
            if name not in self.missing:
                files = {f"rate-{name}-{rate:g}": (name, rate) for rate in own.rates}
                found = self.train(target, files, own.choice * own.seconds, (0.5, 1.0))
                best = min(found.values(), key=_error)
                self.rates[name] = best["rate"]

    def train(
        self,
        target: str,
        files: Mapping[str, tuple[str, float]],
        seconds: float,
        looks: Sequence[float] = LOOKS,
    ) -> dict[str, dict[str, Any]]:
        """Train networks with learning rates by turns, or go on, or read what is there, by file."""
        trainings = []
        for file, (name, rate) in files.items():
            learner, place = self.networks[name], self.place / f"{file}.json"
            data = self.sets(target, learner.reach)
            trainings.append(TimedTraining(learner, data, seconds, rate, place=place, looks=looks))
        before, parts = self.done, [0.0] * len(trainings)

        def on_progress(number: int, part: float) -> None:
            parts[number] = min(part, 1.0)
            self.done = before + sum(parts) * seconds
            if self.on_progress is not None:
                self.on_progress(int(self.done), int(self.total))

        found = take_turns(trainings, on_progress)
        self.done = before + len(trainings) * seconds
        return dict(zip(files, found, strict=True))

    @property
    def total(self) -> float:
        """The seconds of all trainings."""
        own = self.protocol
        each = own.choice * len(own.rates) + len(own.targets)
        return len(self.networks) * each * own.seconds

    def record(self) -> dict[str, Any]:
        """The protocol, the errors of each learning rate, and the curves that are there."""
        runs: dict[str, Any] = {}
        for target in TARGETS:
            found = {
                name: read_json(self.place / f"{target}-{name}.json") for name in self.networks
            }
            known = {
                name: run
                for name, run in found.items()
                if run is not None and run["seconds"] == self.protocol.seconds
            }
            if known:
                runs[target] = known
        rates: dict[str, Any] = {}
        for name in self.networks:
            for rate in self.protocol.rates:
                found_rate = read_json(self.place / f"rate-{name}-{rate:g}.json")
                if found_rate is not None:
                    rates.setdefault(name, {})[f"{rate:g}"] = found_rate["error"]
        ours = [name for name, each in self.networks.items() if each.ours]
        protocol = {**asdict(self.protocol), "networks": list(self.networks), "source": None}
        return {"protocol": protocol, "ours": ours, "rates": rates, "runs": runs}


def _error(run: Mapping[str, Any]) -> float:
    """Infinite where training went astray, so that another learning rate is chosen."""
    error = run["error"]
    return error if error is not None and math.isfinite(error) else math.inf


def parts(quick: bool) -> list[SuitePart]:
    """The targets of the protocol; trainings begin in :meth:`LearningSuite.run`."""
    protocol = QUICK if quick else LearningProtocol()
    runs = LearningRuns(protocol, Path("unused"), quick)
    return [SuitePart(target, partial(runs.claims, target)) for target in protocol.targets]


SUITE = LearningSuite("learning", FINDING, parts)
