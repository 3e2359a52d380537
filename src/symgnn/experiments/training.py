"""Runs an experiment on a dataset, block by block."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.data import Splits, load
from symgnn.data.registry import dataset
from symgnn.experiments.datasets import EXPERIMENTS
from symgnn.experiments.engines import HERE, Engine
from symgnn.experiments.experiment import Experiment, Protocol
from symgnn.experiments.polytopes import Row
from symgnn.experiments.resume import run_parts, write_results
from symgnn.experiments.tables import loss_curve
from symgnn.experiments.verdicts import spread
from symgnn.nn import Model
from symgnn.train import Seeds
from symgnn.train.loader import Batches, Graphs, loader
from symgnn.train.metrics import Judge, Metrics, Scaler, loss_sums


@dataclass(frozen=True)
class Settings:
    """What a run depends on."""

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
    engine: Engine = HERE,
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
    """What the data say of themselves; of a file, its name, not where it is on this machine."""
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
    test: dict[int, Tensor] = {}  # of each epoch that is measured, [S]
    every = -(-protocol.epochs // protocol.points)
    best = Best(trial.models) if experiment.by_validation else None

    def after(epoch: int, losses: Tensor) -> None:
        done = epoch + 1
        if done % every == 0 or done == protocol.epochs:
            test[done] = trial.measure("test")[experiment.metric]
            if best is not None:
                best.keep(done, trial.measure("validation")[experiment.metric])
        if on_epoch is not None:
            on_epoch(epoch, losses)

    losses = trial.models.fit(
        trial.epoch,
        trial.loss,
        epochs=protocol.epochs,
        learning_rate=experiment.learning_rate,
        on_epoch=after,
    )
    if best is not None:
        best.restore()
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
        **({} if best is None else {"best_epochs": best.epochs}),
    }


class Best:
    """The weights of each model at its lowest validation error so far."""

    def __init__(self, models: Seeds) -> None:
        self.models = models
        self.weights = {name: value.detach().clone() for name, value in models.parameters.items()}
        self.errors = torch.full((len(models),), torch.inf, dtype=torch.float64)
        self.epochs = [0] * len(models)

    def keep(self, epoch: int, errors: Tensor) -> None:
        """Keep those whose error `[S]` is now the lowest."""
        for k in (errors < self.errors).nonzero().flatten().tolist():
            self.errors[k], self.epochs[k] = errors[k], epoch
            for name, value in self.models.parameters.items():
                self.weights[name][k] = value.detach()[k]

    def restore(self) -> None:
        """Give them back to the models."""
        for name, value in self.models.parameters.items():
            value.data.copy_(self.weights[name])


class Trial:
    """A network in several initialisations, and the data that it is trained and tested on."""

    def __init__(
        self, experiment: Experiment, block: str, splits: Splits, protocol: Protocol
    ) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.models = Seeds(lambda: experiment.make(block, splits).to(self.device), protocol.seeds)
        model = self.models.model
        assert isinstance(model, Model)
        self.network, self.task = model, splits.task
        self.graphs = {
            split: Graphs(getattr(splits, split), drop=model.unread, angles=model.needs_angles)
            for split in ("train", "validation", "test")
            if split != "validation" or experiment.by_validation
        }
        self.batch_size = protocol.batch_size
        self.judge = Judge(splits.task, _scaler(splits))

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch of training, the same for every block."""
        batches = Batches(len(self.graphs["train"]), self.batch_size, seed=0)
        batches.epoch = number
        return self._batches("train", batches)

    def _batches(self, split: str, batches: Batches) -> Iterator[Batch]:
        for batch in loader(self.graphs[split], batches, None):
            yield batch.to(self.device)

    def loss(self, outputs: Tensor, data: Data) -> Tensor:
        """Of one model: cross-entropy, or the mean squared error of standardised targets."""
        sums = loss_sums(outputs.unsqueeze(0), data.y, self.task)
        return sums.losses[0] / sums.weight

    @torch.no_grad()
    def measure(self, split: str) -> dict[str, Tensor]:
        """Every number of a split, by name, `[S]`."""
        metrics = Metrics(self.task, len(self.models), self.device)
        was = self.network.training
        self.network.eval()
        for batch in self._batches(split, Batches(len(self.graphs[split]), self.batch_size)):
            metrics.add(*self.judge(self.models(batch), batch.y))
        self.network.train(was)
        return metrics.values()


def _scaler(splits: Splits) -> Scaler:
    """The answers are ready: classes, or standardised."""
    mean, deviation = (
        torch.tensor(splits.about.get(name, [1.0]), dtype=torch.float64) for name in ("mean", "std")
    )
    return Scaler(mean, deviation, done=True)
