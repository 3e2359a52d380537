"""Trains the network of a row, saved epoch by epoch: a training that was killed goes on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from symgnn.experiments._train_row import TrainedRow
from symgnn.store import read_json, write_json
from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._checkpointing import Checkpoints
from symgnn.train._devices import launch
from symgnn.train._ensemble import Ensemble
from symgnn.train._loader import GraphDataset
from symgnn.train._loop import train_loop
from symgnn.train._metrics import Judge
from symgnn.train._settings import Training


class Spent(NamedTuple):
    """How long something took."""

    seconds: float
    processor_seconds: float  # how long processors were busy with it: without other work

    @staticmethod
    def since(earlier: Spent) -> Spent:
        """What was spent since :meth:`now` gave an earlier one."""
        now = Spent.now()
        return Spent(now[0] - earlier[0], now[1] - earlier[1])

    @staticmethod
    def now() -> Spent:
        """The clocks of this process, which start anywhere."""
        return Spent(time.perf_counter(), time.process_time())


def train_saved(
    make: Callable[[], nn.Module],
    graphs: GraphDataset,
    judge: Judge,
    settings: Training,
    *,
    directory: Path | None,
    stamp: Mapping[str, Any],
    watched: Mapping[str, GraphDataset],
    on_epoch: Callable[..., Any] | None = None,
) -> tuple[TrainedRow, Spent]:
    """Train `settings.seeds` initialisations, from the start or from the last checkpoint.

    Args:
        make: Builds the network.
        graphs: The training graphs.
        judge: The loss and the metrics.
        settings: Epochs, batch size, ...; weights are saved every `settings.validate_every` epochs.
        directory: Where checkpoints are; None for none.
        stamp: The settings and the code. A checkpoint with another stamp is deleted.
        watched: Splits that are measured with each checkpoint.
        on_epoch: Called after each epoch with its number, from 0, and the losses `[S]`; also for
            those that were done before.

    Returns:
        The trained row, and the time that training took, of all processes together.
    """
    began = Spent.now()
    if directory is not None and read_json(directory / "stamp.json") != dict(stamp):
        shutil.rmtree(directory, ignore_errors=True)
        write_json(directory / "stamp.json", dict(stamp))
    ensemble = Ensemble(make, range(settings.seed, settings.seed + settings.seeds))
    checkpoints = Checkpoints(settings, ensemble.seeds, directory)
    checkpoints.clean()
    history: list[Tensor] = []

    def count_earlier() -> None:
        """Epochs of earlier processes, which are in the log."""
        for earlier, each in enumerate(_losses(checkpoints.rows, len(ensemble))):
            if on_epoch is not None:
                on_epoch(earlier, each)

    def after(epoch: int, losses: Tensor) -> None:
        if not history:
            count_earlier()
        history.append(losses)
        if on_epoch is not None:
            on_epoch(epoch - 1, losses)

    train_loop(
        ensemble,
        graphs,
        judge,
        settings,
        checkpoints,
        fabric=launch(settings),
        watched=watched,
        on_epoch=after,
    )
    if not history:
        count_earlier()
    ensemble.load_states(checkpoints.best)
    # of every epoch where all were done here; else of those that were saved
    whole = len(history) == settings.epochs
    losses = torch.stack(history) if whole else _losses(checkpoints.rows, len(ensemble))
    row = TrainedRow(ensemble.eval(), losses, checkpoints.best_epochs, checkpoints.rows)
    if directory is None:
        return row, Spent.since(began)
    last = read_checkpoint(directory / "last.ckpt")
    return row, Spent(*(float(last.get(name, 0.0)) for name in Spent._fields))


def _losses(rows: list[dict[str, float]], members: int) -> Tensor:
    """The training losses in a log, `[validations, S]`."""
    found = [row["train_loss"] for row in rows]
    return torch.tensor(found, dtype=torch.float64).view(-1, members)
