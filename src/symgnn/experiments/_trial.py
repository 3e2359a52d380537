"""One network on a dataset, in several initialisations: trained, measured, its errors known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data import Splits
from symgnn.experiments._experiment import Experiment, Protocol
from symgnn.experiments._saved_training import Spent, train_saved
from symgnn.experiments._test_residuals import (
    JudgedBatch,
    absolute_errors,
    graph_residuals,
    judged,
    scores,
)
from symgnn.experiments._train_row import TrainedRow
from symgnn.train import Training
from symgnn.train._loader import Batches, GraphDataset, loader
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
        self._known: dict[str, list[JudgedBatch]] = {}
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
        self.spent = Spent(0.0, 0.0)  # on training

    def add(self, split: str, graphs: Sequence[Data]) -> None:
        """Take graphs to measure."""
        network = self.network
        self._known.pop(split, None)
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
        self._known.clear()
        self.trained, self.spent = train_saved(
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
        return scores(self._judged(split), self.judge)

    def residuals(self, split: str) -> Tensor:
        """How much each graph of a split moves the score, `[G]`."""
        return graph_residuals(self._judged(split), self.judge, self.experiment.metric)

    def target_errors(self, split: str) -> dict[str, float]:
        """The standard error, over the graphs of a split, of the MAE of each of several targets."""
        if self.task.kind != "regression" or self.task.level != "graph":
            return {}
        found = absolute_errors(self._judged(split))
        if len(found) < 2:  # one graph does not say how they differ
            return {}
        errors = (found.std(0) / len(found) ** 0.5).tolist()
        return dict(zip(self.task.targets, errors, strict=True))

    def _judged(self, split: str) -> list[JudgedBatch]:
        """What the trained networks give for a split, which goes through them once."""
        if split not in self._known:
            assert self.trained is not None
            ensemble, graphs = self.trained.ensemble, self.graphs[split]
            order = Batches(len(graphs), self.settings.batch_size)
            batches = loader(graphs, order, ensemble.topology)
            self._known[split] = judged(ensemble, batches, self.judge)
        return self._known[split]


def _scaler(splits: Splits) -> Scaler:
    """The answers are ready: classes, or standardised."""
    mean, deviation = (
        torch.tensor(splits.about.get(name, [1.0]), dtype=torch.float64) for name in ("mean", "std")
    )
    return Scaler(mean, deviation, done=True)
