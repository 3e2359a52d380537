"""Runs an experiment on a dataset, block by block."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from symgnn.data import Splits, load
from symgnn.data._registry import dataset
from symgnn.experiments._dataset_protocols import EXPERIMENTS
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._experiment import Experiment, Protocol
from symgnn.experiments._paper_verdicts import spread
from symgnn.experiments._polytope_training import Row
from symgnn.experiments._resume import run_parts, write_results
from symgnn.experiments._tables import loss_curve
from symgnn.experiments._train_row import TrainedRow, train_row
from symgnn.train import Training
from symgnn.train._devices import launch
from symgnn.train._loader import Batches, GraphDataset, loader
from symgnn.train._loop import measure
from symgnn.train._metrics import Judge, Scaler


@dataclass(frozen=True)
class Settings:
    """The settings that a run depends on."""

    experiment: str
    protocol: Protocol
    source: str | None = None

    def load(self, block: str | None = None, jobs: int = 1) -> Splits:
        """The data, as a block is given them."""
        experiment = EXPERIMENTS[self.experiment]
        of_block = experiment.data_of_block.get(block or "", {})
        options = {**experiment.data, **self.protocol.options, **of_block}
        options["limit"] = self.protocol.limit
        if self.source is not None:
            options["source"] = self.source
        if "jobs" in dataset(self.experiment).options:
            options["jobs"] = jobs
        return load(self.experiment, **options)


def run_experiment(
    experiment: Experiment,
    directory: Path,
    *,
    protocol: str = "quick",
    seeds: int | None = None,
    epochs: int | None = None,
    limit: int | None = None,
    source: str | None = None,
    rows: Sequence[Row] | None = None,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train and test the rows of an experiment; give, and write, its results.json.

    What is not given is as in the protocol. Rows that an earlier run with the same settings
    completed are taken from it.
    """
    chosen = experiment.protocol(protocol)
    chosen = replace(
        chosen,
        seeds=seeds or chosen.seeds,
        epochs=epochs or chosen.epochs,
        limit=(limit, limit, limit) if limit else chosen.limit,
    )
    settings = Settings(experiment.name, chosen, source)
    splits = settings.load(jobs=engine.jobs)  # once, before several processes ask for it
    parts = {str(row): partial(run_row, settings, row) for row in rows or experiment.rows}
    stamp = {"experiment": experiment.name, "source": source, **_plain(chosen)}
    done = run_parts(parts, directory / "rows", stamp, chosen.epochs, console, engine)
    return write_results(
        directory,
        done,
        name=experiment.name,
        title=experiment.title,
        seeds=chosen.seeds,
        epochs=chosen.epochs,
        columns=list(done[0]["cells"]),
        rows=done,
        claims=[c.check(done, experiment.column("test")) for c in experiment.claims],
        published=asdict(experiment.published) if experiment.published else None,
        protocol=protocol,
        settings=_plain(chosen),
        graphs={name: len(getattr(splits, name)) for name in ("train", "test")},
        units=dict(zip(splits.task.targets, splits.task.units, strict=True)),
        data={"scale": splits.scale, **_about(splits)},
    )


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
    settings: Settings, row: Row, on_epoch: Callable[..., Any] | None = None
) -> dict[str, Any]:
    """Train one network in all initialisations, on the same batches, and test it."""
    began = time.perf_counter()
    experiment, protocol = EXPERIMENTS[settings.experiment], settings.protocol
    trial = Trial(experiment, row.block, settings.load(row.block), protocol)
    trained = trial.train(on_epoch)
    every = [row for row in trained.log if row["seed"] == 0]
    test = {  # of each epoch that is measured, [S]
        int(one["epoch"]): torch.tensor(
            [r[f"test_{experiment.metric}"] for r in trained.log if r["epoch"] == one["epoch"]]
        )
        for one in every
    }
    losses = trained.losses
    values = {split: trial.measure(split) for split in ("train", "test")}
    cells = {experiment.column(split): found[experiment.metric] for split, found in values.items()}
    # errors of each target in its units, where there are several
    cells |= {
        f"{experiment.paper} test MAE {name[4:]}": found
        for name, found in values["test"].items()
        if name.startswith("mae ")
    }
    network = trial.network
    return {
        **row.key,
        "parameters": sum(p.numel() for p in network.parameters()),
        "symmetry": str(network.symmetry),
        "seconds": time.perf_counter() - began,
        "cells": {
            column: experiment.cell(row.block, column, found.tolist())
            for column, found in cells.items()
        },
        "curve": {
            **loss_curve(losses),
            "test_epoch": list(test),
            "test_mean": [float(found.mean()) for found in test.values()],
            "test_std": [spread(found.tolist()) for found in test.values()],
        },
        **({"best_epochs": trained.best_epochs.tolist()} if experiment.by_validation else {}),
    }


class Trial:
    """A network in several initialisations, and the data that it is trained and tested on."""

    def __init__(
        self, experiment: Experiment, block: str, splits: Splits, protocol: Protocol
    ) -> None:
        self.experiment, self.task = experiment, splits.task
        self.make = partial(experiment.make, block, splits)
        self.network = self.make()
        self.graphs = {
            split: GraphDataset(
                getattr(splits, split), drop=self.network.unread, angles=self.network.needs_angles
            )
            for split in ("train", "validation", "test")
            if split != "validation" or experiment.by_validation
        }
        self.settings = Training(
            epochs=protocol.epochs,
            batch_size=protocol.batch_size,
            learning_rate=experiment.learning_rate,
            seed=0,
            seeds=protocol.seeds,
            monitor=experiment.metric,
            weights="best" if experiment.by_validation else "last",
            validate_every=-(-protocol.epochs // protocol.points),
        )
        self.judge = Judge(splits.task, _scaler(splits))
        self.trained: TrainedRow | None = None

    def train(self, on_epoch: Callable[..., Any] | None = None) -> TrainedRow:
        """Train all initialisations, on the same batches for every block."""
        watched = {name: graphs for name, graphs in self.graphs.items() if name != "train"}
        self.trained = train_row(
            self.make,
            self.graphs["train"],
            self.judge,
            self.settings,
            watched=watched,
            on_epoch=on_epoch,
        )
        return self.trained

    def measure(self, split: str) -> dict[str, Tensor]:
        """Every metric of a split, by name, `[S]`."""
        assert self.trained is not None
        ensemble, graphs = self.trained.ensemble, self.graphs[split]
        batches = loader(graphs, Batches(len(graphs), self.settings.batch_size), ensemble.topology)
        return measure(ensemble, batches, self.judge, launch(self.settings))


def _scaler(splits: Splits) -> Scaler:
    """The answers are ready: classes, or standardised."""
    mean, deviation = (
        torch.tensor(splits.about.get(name, [1.0]), dtype=torch.float64) for name in ("mean", "std")
    )
    return Scaler(mean, deviation, done=True)
