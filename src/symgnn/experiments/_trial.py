"""One network on a dataset, in several initialisations: trained, measured, its errors known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from symgnn.data import Splits
from symgnn.experiments._experiment import Experiment, Protocol
from symgnn.experiments._saved_training import train_saved
from symgnn.experiments._test_residuals import absolute_errors, graph_residuals
from symgnn.experiments._train_row import TrainedRow
from symgnn.train import Ensemble, Training
from symgnn.train._devices import launch
from symgnn.train._loader import Batches, GraphDataset, loader
from symgnn.train._loop import measure
from symgnn.train._metrics import Judge, Scaler


class Trial:
    """A network in several initialisations, and the data that it is trained and tested on."""

    def __init__(
        self,
        experiment: Experiment,
        block: str,
        splits: Splits,
        protocol: Protocol,
        reading: str = "",
    ) -> None:
        self.experiment, self.task = experiment, splits.task
        self.make = experiment.maker(block, splits, reading)
        self.network = self.make()
        self.graphs: dict[str, GraphDataset] = {}
        for split in ("train", "validation", "test"):
            if split != "validation" or experiment.by_validation:
                self.add(split, getattr(splits, split))
        self.settings = Training(
            epochs=protocol.epochs,
            batch_size=protocol.batch_size,
            learning_rate=experiment.learning_rate,
            seed=protocol.first_seed,
            seeds=protocol.seeds,
            monitor=experiment.metric,
            weights="best" if experiment.by_validation else "last",
            validate_every=-(-protocol.epochs // protocol.points),
        )
        self.judge = Judge(splits.task, _scaler(splits))
        self.trained: TrainedRow | None = None
        self.seconds = 0.0  # that training took

    def add(self, split: str, graphs: Sequence[Data]) -> None:
        """Take graphs to measure."""
        network = self.network
        self.graphs[split] = GraphDataset(graphs, drop=network.unread, angles=network.needs_angles)

    def __contains__(self, split: str) -> bool:
        return split in self.graphs

    def train(
        self,
        on_epoch: Callable[..., Any] | None = None,
        directory: Path | None = None,
        stamp: Mapping[str, Any] | None = None,
    ) -> TrainedRow:
        """Train all initialisations, on the same batches for every block.

        With a directory, from its last checkpoint on, if that has this stamp.
        """
        watched = {name: graphs for name, graphs in self.graphs.items() if name != "train"}
        self.trained, self.seconds = train_saved(
            self.make,
            self.graphs["train"],
            self.judge,
            self.settings,
            directory=directory,
            stamp=stamp or {},
            watched=watched,
            on_epoch=on_epoch,
        )
        return self.trained

    def measure(self, split: str) -> dict[str, Tensor]:
        """Every metric of a split, by name, `[S]`."""
        ensemble, batches = self._tested(split)
        return measure(ensemble, batches, self.judge, launch(self.settings))

    def residuals(self, split: str) -> Tensor:
        """How much each graph of a split moves the score, `[G]`."""
        return graph_residuals(*self._tested(split), self.judge, self.experiment.metric)

    def target_errors(self, split: str) -> dict[str, float]:
        """The standard error, over the graphs of a split, of the MAE of each of several targets."""
        if self.task.kind != "regression" or self.task.level != "graph":
            return {}
        found = absolute_errors(*self._tested(split), self.judge)
        if len(found) < 2:  # one graph does not say how they differ
            return {}
        errors = (found.std(0) / len(found) ** 0.5).tolist()
        return dict(zip(self.task.targets, errors, strict=True))

    def _tested(self, split: str) -> tuple[Ensemble, DataLoader]:
        assert self.trained is not None
        ensemble, graphs = self.trained.ensemble, self.graphs[split]
        order = Batches(len(graphs), self.settings.batch_size)
        return ensemble, loader(graphs, order, ensemble.topology)


def _scaler(splits: Splits) -> Scaler:
    """The answers are ready: classes, or standardised."""
    mean, deviation = (
        torch.tensor(splits.about.get(name, [1.0]), dtype=torch.float64) for name in ("mean", "std")
    )
    return Scaler(mean, deviation, done=True)
