"""Trains the network of a row: all initialisations as one ensemble, by the one training loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from symgnn.train._checkpointing import Checkpoints
from symgnn.train._devices import launch
from symgnn.train._ensemble import Ensemble
from symgnn.train._loader import GraphDataset
from symgnn.train._loop import train_loop
from symgnn.train._metrics import Judge
from symgnn.train._settings import Training


@dataclass(frozen=True)
class TrainedRow:
    """The trained ensemble of a row.

    Attributes:
        ensemble: With the weights that `settings.weights` chose.
        losses: The training loss of each epoch and member, `[epochs, S]`.
        best_epochs: How many epochs each member was trained for, `[S]`.
        log: For each validation and member, the metrics of the watched splits.
    """

    ensemble: Ensemble
    losses: Tensor
    best_epochs: Tensor
    log: list[dict[str, float]]


def train_row(
    make: Callable[[], nn.Module],
    graphs: GraphDataset,
    judge: Judge,
    settings: Training,
    *,
    watched: Mapping[str, GraphDataset] | None = None,
    on_epoch: Callable[..., Any] | None = None,
) -> TrainedRow:
    """Train `settings.seeds` initialisations, with the seeds from `settings.seed` on.

    Args:
        make: Builds the network.
        graphs: The training graphs.
        judge: The loss and the metrics.
        settings: Epochs, batch size, ...; with `weights="best"`, `watched` has "validation".
        watched: Splits that are measured every `settings.validate_every` epochs.
        on_epoch: Called after each epoch with its number, from 0, and the losses `[S]`.
    """
    history: list[Tensor] = []

    def after(epoch: int, losses: Tensor) -> None:
        history.append(losses)
        if on_epoch is not None:
            on_epoch(epoch - 1, losses)

    ensemble = Ensemble(make, range(settings.seed, settings.seed + settings.seeds))
    checkpoints = Checkpoints(settings, ensemble.seeds, None)
    train_loop(
        ensemble,
        graphs,
        judge,
        settings,
        checkpoints,
        fabric=launch(settings),
        watched=watched or {},
        on_epoch=after,
    )
    ensemble.load_states(checkpoints.best)
    losses = torch.stack(history) if history else torch.empty(0, len(ensemble))
    return TrainedRow(ensemble.eval(), losses, checkpoints.best_epochs, checkpoints.rows)
