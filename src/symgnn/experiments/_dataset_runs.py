"""Runs an experiment on a dataset, block by block."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from symgnn.data import Splits, load
from symgnn.data._packed_graphs import PackedGraphs
from symgnn.data._registry import dataset
from symgnn.experiments._dataset_protocols import EXPERIMENTS
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._experiment import DATA_OF_READING, Experiment, NetworkRow, Protocol
from symgnn.experiments._joined_rows import (
    check_seeds,
    is_joined,
    missing_seeds,
    read_rows,
    with_joined,
    without_rows,
)
from symgnn.experiments._paper_verdicts import spread
from symgnn.experiments._qm9_peers import FIELD_UNITS
from symgnn.experiments._resume import run_parts, write_results
from symgnn.experiments._saved_training import Spent
from symgnn.experiments._tables import loss_curve
from symgnn.experiments._test_residuals import standard_error, with_test_error
from symgnn.experiments._tour_baseline import benchmark_tours, nearest_f1
from symgnn.experiments._trial import Trial
from symgnn.store import code

#: The name of the second test set, in columns.
SECOND = "benchmark test"
#: Fields of a protocol that may differ between files whose rows are joined.
SEED_SETTINGS = ("seeds", "first_seed")


@dataclass(frozen=True)
class Settings:
    """The settings that a run depends on."""

    experiment: str
    protocol: Protocol
    source: str | None = None

    def load(self, block: str = "", reading: str = "", jobs: int = 1) -> Splits:
        """The data, as a block is given them by a reading."""
        experiment = EXPERIMENTS[self.experiment]
        of_row = {**experiment.data_of_block.get(block, {}), **DATA_OF_READING.get(reading, {})}
        options = {**experiment.data, **self.protocol.options, **of_row}
        options["limit"] = self.protocol.limit
        if self.source is not None:
            options["source"] = self.source
        if "jobs" in dataset(self.experiment).options:
            options["jobs"] = jobs
        return load(self.experiment, **options)

    @property
    def stamp(self) -> dict[str, Any]:
        """The settings of a saved part; other settings do not reuse it."""
        return {"experiment": self.experiment, "source": self.source, **_plain(self.protocol)}

    def second(self) -> PackedGraphs | None:
        """The second test set, of problems that were not generated, where there is one at hand."""
        if self.experiment != "tsp" or self.protocol.options.get("source") != "generated":
            return None
        return None if self.source is not None else benchmark_tours()


def run_experiment(
    experiment: Experiment,
    directory: Path,
    *,
    protocol: str = "cpu",
    seeds: int | None = None,
    epochs: int | None = None,
    limit: int | None = None,
    source: str | None = None,
    rows: Sequence[NetworkRow] | None = None,
    join: Sequence[Path] | None = None,
    join_only: bool = False,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train and test the rows of an experiment; write and return its results.json.

    Options that are not given have the values of the protocol. Rows that an earlier run with the
    same settings completed are reused, and an interrupted row continues after its last saved epoch.
    Rows of the results.json files in `join`, possibly of other versions, are shown and judged with
    them; without `rows`, only the rows that these files lack are run. Of a row of which they have
    some initialisations, only the others are run. With `join_only`, nothing is run.
    """
    if join_only and (rows or not join):
        raise ValueError("--join-only: shows the rows of --join FILE; give it, and no --rows")
    chosen = experiment.protocol(protocol)
    chosen = replace(
        chosen,
        seeds=seeds or chosen.seeds,
        epochs=epochs or chosen.epochs,
        limit=(limit, limit, limit) if limit else chosen.limit,
    )
    settings = Settings(experiment.name, chosen, source)
    same = {"name": experiment.name, "protocol": protocol, "settings": _plain(chosen)}
    joined = [row for file in join or () for row in read_rows(file, same, SEED_SETTINGS)]
    wanted = chosen.initialisations
    check_seeds(joined, wanted)
    again = [row.shown_key for row in rows or () if is_joined(row.shown_key, joined, wanted)]
    joined = without_rows(joined, again)
    splits = settings.load(jobs=engine.jobs)  # once, before several processes ask for it
    column, counted = experiment.column("test"), len(splits.test)
    joined = [with_test_error(row, column, experiment.metric, counted) for row in joined]
    parts, seeds_of = {}, {}
    for row in () if join_only else rows or experiment.rows:
        missing = missing_seeds(row.shown_key, joined, wanted)
        if missing:
            own = replace(chosen, seeds=len(missing), first_seed=missing[0])
            mine = replace(settings, protocol=own)
            parts[str(row)] = partial(run_row, mine, row, directory / "training", mine.stamp)
            seeds_of[str(row)] = {name: getattr(own, name) for name in SEED_SETTINGS}
    done = run_parts(
        parts, directory / "rows", settings.stamp, chosen.epochs, console, engine, own=seeds_of
    )
    order = [row.shown_key for row in experiment.all_rows]
    done = with_joined(done, joined, order, experiment.cell)
    judged = [c.check(done, column, experiment.metric) for c in experiment.claims]
    judged += [
        each
        for claim in experiment.claims
        for name in (done[0]["cells"] if claim.how == "below" else ())
        if " MAE " in name and (each := claim.check(done, name))["holds"] is not None
    ]
    if protocol == "cpu":
        judged += [goal.check(done, column, experiment.metric) for goal in experiment.goals]
    return write_results(
        directory,
        done,
        name=experiment.name,
        title=experiment.title,
        seeds=chosen.seeds,
        epochs=chosen.epochs,
        columns=list(dict.fromkeys(name for row in done for name in row["cells"])),
        rows=[{name: value for name, value in row.items() if name != "residuals"} for row in done],
        claims=judged,
        published=asdict(experiment.published) if experiment.published else None,
        protocol=protocol,
        settings=_plain(chosen),
        graphs={name: len(getattr(splits, name)) for name in ("train", "test")},
        units={
            name: FIELD_UNITS.get(unit, (unit,))[0]
            for name, unit in zip(splits.task.targets, splits.task.units, strict=True)
        },
        peers=[asdict(peer) for peer in experiment.peers],
        data={"scale": splits.scale, **_about(splits)},
        baselines=_baselines(experiment, splits, settings),
    )


def _factor(unit: str) -> float:
    return FIELD_UNITS[unit][1] if unit in FIELD_UNITS else 1.0


def _baselines(experiment: Experiment, splits: Splits, settings: Settings) -> dict[str, float]:
    """Scores of no network, by column; on tours, those of the two nearest neighbours."""
    if experiment.name != "tsp":
        return {}
    sets = {experiment.column("test"): splits.test, experiment.column(SECOND): settings.second()}
    return {name: nearest_f1(graphs) for name, graphs in sets.items() if graphs is not None}


def _about(splits: Splits) -> dict[str, Any]:
    """The description of the data; of a file its name alone, without its folder."""
    about = dict(splits.about)
    if isinstance(about.get("source"), str):
        about["source"] = Path(about["source"]).name
    return about


def _plain(protocol: Protocol) -> dict[str, Any]:
    """As it comes back from JSON."""
    return json.loads(json.dumps(asdict(protocol)))


def run_row(
    settings: Settings,
    row: NetworkRow,
    directory: Path | None = None,
    stamp: Mapping[str, Any] | None = None,
    on_epoch: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """Train one network in all initialisations, on the same batches, and test it."""
    experiment, protocol = EXPERIMENTS[settings.experiment], settings.protocol
    trial = Trial(
        experiment, row.block, settings.load(row.block, row.reading), protocol, row.reading
    )
    folder = None if directory is None else directory / str(row).replace(" ", "-")
    trained = trial.train(on_epoch, folder, {**(stamp or {}), **code()})
    tested = Spent.now()
    second = settings.second()
    if second is not None:
        trial.add(SECOND, second)
    values = {split: trial.measure(split) for split in ("train", "test", SECOND) if split in trial}
    cells = {experiment.column(split): found[experiment.metric] for split, found in values.items()}
    # errors of each target in the units of the field, where there are several
    factors = dict(zip(trial.task.targets, map(_factor, trial.task.units), strict=True))
    cells |= {
        f"{experiment.paper} test MAE {name[4:]}": factors[name[4:]] * found
        for name, found in values["test"].items()
        if name.startswith("mae ")
    }
    network = trial.network
    errors: dict[str, float | None] = {
        f"{experiment.paper} test MAE {name}": factors[name] * each
        for name, each in trial.target_errors("test").items()
    }
    residuals = {
        experiment.column(split): trial.residuals(split) for split in values if split != "train"
    }
    errors |= {name: standard_error(each) for name, each in residuals.items()}
    spent = [sum(each) for each in zip(trial.spent, Spent.since(tested), strict=True)]
    return {
        **row.shown_key,
        "seeds": list(protocol.initialisations),
        "parameters": sum(p.numel() for p in network.parameters()),
        "symmetry": str(network.symmetry),
        "training_seconds": trial.spent.seconds,
        **dict(zip(Spent._fields, spent, strict=True)),
        "cells": {
            column: {
                **experiment.cell(row.label, column, found.tolist()),
                "test_error": errors.get(column),
            }
            for column, found in cells.items()
        },
        "residuals": {
            column: [round(r, 5) for r in each.tolist()] for column, each in residuals.items()
        },
        "curve": {**loss_curve(trained.losses), **_test_curves(trial, trained.log)},
        **({"best_epochs": trained.best_epochs.tolist()} if experiment.by_validation else {}),
    }


def _test_curves(trial: Trial, log: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """The test score after each epoch that was measured; of several targets, each one's MSE too."""
    epochs = sorted({int(row["epoch"]) for row in log})

    def curve(name: str, factor: float = 1.0) -> tuple[list[float], list[float]]:
        found = [[factor * r[name] for r in log if r["epoch"] == epoch] for epoch in epochs]
        return [fmean(values) for values in found], [spread(values) for values in found]

    mean, std = curve(f"test_{trial.experiment.metric}")
    found: dict[str, Any] = {"test_epoch": epochs, "test_mean": mean, "test_std": std}
    targets = trial.task.targets
    if trial.task.kind == "regression" and len(targets) > 1 and trial.task.level == "graph":
        units = trial.judge.unit().tolist()
        found["targets"] = {
            name: dict(zip(("mean", "std"), curve(f"test_mse {name}", unit**-2), strict=True))
            for name, unit in zip(targets, units, strict=True)
        }
    return found
