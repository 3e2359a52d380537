"""Checkpoints of a training: the best weights of each member, and all that is needed to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from symgnn.report._record_lines import is_rising
from symgnn.report._run_log import Row, append_rows, as_csv, keep_rows, read_log
from symgnn.store import write_whole
from symgnn.train._checkpoint import fitting, read_checkpoint, write_checkpoint
from symgnn.train._ensemble import Ensemble
from symgnn.train._settings import Training
from symgnn.train._tensorboard_log import TensorBoardLog

#: A row of the log: the numbers of one validation and member.


@dataclass
class Group:
    """The trained members of some seeds: what `best.ckpt` and `log.csv` hold."""

    name: str  # of their directory within the run
    best: dict[str, Any]  # "members": the weights of each; "epoch": when they were best; ...
    log: list[Row] | None = None
    path: Path | None = None  # of `best.ckpt`, where there is one

    @property
    def rows(self) -> list[Row]:
        """The rows of the log, which is read when it is asked for."""
        if self.log is None:
            self.log = [] if self.path is None else read_log(self.path.with_name("log.csv"))
        return self.log

    def write(self, run: Path) -> None:
        """Write both files into the directory of a run."""
        write_checkpoint(run / self.name / "best.ckpt", self.best)
        text = as_csv(self.rows) if self.rows else ""
        write_whole(run / self.name / "log.csv", text.encode())

    @staticmethod
    def read(run: Path, name: str) -> Group:
        """Read both files from the directory of a run."""
        path = run / name / "best.ckpt"
        if not path.exists():
            raise ValueError(
                f"{path}: does not exist yet; continue with symgnn train {run} --resume"
            )
        return Group(name, read_checkpoint(path), path=path)


@dataclass
class Position:
    """How far a training has come."""

    epoch: int = 0  # epochs done
    step: int = 0  # steps done
    rate: float = 1.0  # the factor to which a plateau has lowered the learning rate
    seconds: float = 0.0  # that training took, of all processes together
    processor_seconds: float = 0.0  # of these, how long processors were busy


class Checkpoints:
    """Keeps the best weights of each member, the log, and the state to resume from.

    With a directory, each validation writes `best.ckpt` (where a member became better), `log.csv`
    and `last.ckpt`, in this order. What was best, and when, is known from `best.ckpt` alone: if it
    is an epoch ahead of `last.ckpt`, because the process was killed between the two, the epoch
    that is repeated finds the same. Without a directory, all of this stays in memory.

    Attributes:
        best: The `state_dict` of each member at its best validation.
        best_epochs: How many epochs were done then, `[S]`.
        rows: The log.
    """

    def __init__(self, settings: Training, seeds: Sequence[int], directory: Path | None) -> None:
        self.settings, self.seeds, self.directory = settings, list(seeds), directory
        infinite = torch.full((len(self.seeds),), torch.inf, dtype=torch.float64)
        self.value, self.loss = infinite, infinite  # monitored, less is better; loss decides ties
        self.best_epochs = torch.zeros(len(self.seeds), dtype=torch.long)
        self.risen = self.best_epochs  # when the value itself became better, for the patience
        self.best: list[dict[str, Tensor]] = []
        self.rows: list[Row] = []
        self.last_value = infinite
        self.board = None if directory is None else TensorBoardLog(directory)
        self.stopped_before = 0  # after so many epochs, an earlier process ran out of patience

    def group(self, name: str) -> Group:
        """The best weights and the log, under the name of a directory."""
        path = None if self.directory is None else self.directory / "best.ckpt"
        return Group(name, self._content(), self.rows, path)

    def _content(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "loss": self.loss,
            "risen": self.risen,
            "epoch": self.best_epochs,
            "seeds": self.seeds,
            "members": self.best,
        }

    # ---- before

    def restore(
        self,
        ensemble: Ensemble,
        optimizer: torch.optim.Optimizer,
        grad_scaler: torch.amp.GradScaler,
    ) -> Position:
        """Load `last.ckpt`, if it exists; return the position at which training continues."""
        self.best = ensemble.states()
        if self.directory is None:
            return Position()
        best_path, last_path = self.directory / "best.ckpt", self.directory / "last.ckpt"
        if best_path.exists():
            best = read_checkpoint(best_path)
            self.value, self.loss = best["value"], best["loss"]
            self.best_epochs, self.risen, self.best = best["epoch"], best["risen"], best["members"]
        if not last_path.exists():
            return Position()
        if not best_path.exists():
            raise ValueError(f"{best_path}: is missing; put it back, or train into another --out")
        last = read_checkpoint(last_path)
        with fitting(last_path):
            ensemble.load_states(last["members"])
            optimizer.load_state_dict(last["optimizer"])
            if last["precision"]:
                grad_scaler.load_state_dict(last["precision"])
        self.rows = read_log(self.directory / "log.csv")
        processor_seconds = last.get("processor_seconds", 0.0)  # 0 in files of earlier versions
        position = Position(
            last["epoch"], last["step"], last["rate"], last["seconds"], processor_seconds
        )
        if self.finished(position) and position.epoch < self.settings.epochs:
            self.stopped_before = position.epoch
        return position

    def clean(self) -> None:
        """Remove incomplete files of a killed process, and log rows after the last checkpoint."""
        if self.directory is None or not self.directory.exists():
            return
        for left in self.directory.glob(".*.ckpt.*"):
            left.unlink()
        last = self.directory / "last.ckpt"
        epoch = read_checkpoint(last)["epoch"] if last.exists() else 0
        keep_rows(self.directory / "log.csv", epoch)

    def finished(self, position: Position) -> bool:
        """Whether all epochs are done, or no member became better for `patience` epochs."""
        patience = self.settings.patience
        waited = position.epoch - int(self.risen.max())
        return position.epoch >= self.settings.epochs or (
            patience is not None and waited >= patience
        )

    # ---- after each validation

    def keep(
        self,
        position: Position,
        found: dict[str, Tensor],
        ensemble: Ensemble,
        optimizer: torch.optim.Optimizer,
        grad_scaler: torch.amp.GradScaler,
        learning_rate: float,
        fabric: Fabric,
    ) -> None:
        """Compare, lower the learning rate on a plateau, log and save."""
        if not any(found["train_loss"].isfinite()):
            raise ValueError(
                f"loss: is not finite in epoch {position.epoch}; lower train.learning_rate, or "
                "set train.clip"
            )
        states = ensemble.states()
        better = self._compare(position.epoch, found, states)
        self._lower_rate(position)
        rows = self._rows(position.epoch, found, learning_rate)
        self.rows += rows
        if self.directory is None or not fabric.is_global_zero:
            return
        if better:
            write_checkpoint(self.directory / "best.ckpt", self._content())
        append_rows(self.directory / "log.csv", rows)
        assert self.board is not None
        self.board.add(rows)
        content: dict[str, Any] = {
            "seeds": self.seeds,
            "epoch": position.epoch,
            "step": position.step,
            "rate": position.rate,
            "members": states,
            "optimizer": optimizer.state_dict(),
            "precision": grad_scaler.state_dict(),
            "seconds": position.seconds,
            "processor_seconds": position.processor_seconds,
        }
        write_checkpoint(self.directory / "last.ckpt", content)

    def _compare(self, epoch: int, found: dict[str, Tensor], states: list[dict]) -> bool:
        """Keep the weights of the members that became better; whether there are any.

        Of equal values the one with the lower validation loss is better, and of equal losses the
        earlier one. Patience and plateaus follow the value alone.
        """
        name = f"validation_{self.settings.monitor}"
        if self.settings.weights == "last":
            self.best, self.best_epochs = states, torch.full_like(self.best_epochs, epoch)
        if name not in found:
            return self.settings.weights == "last"
        self.last_value = found[name]
        value, loss = -self.last_value, found["validation_loss"]
        if not is_rising(self.settings.monitor):
            value = -value
        value, loss = (each.double().nan_to_num(torch.inf) for each in (value, loss))
        risen = value < self.value
        better = risen | ((value == self.value) & (loss < self.loss))
        self.value = torch.where(risen, value, self.value)
        self.loss = torch.where(better, loss, self.loss)
        self.risen = torch.where(risen, epoch, self.risen)
        if self.settings.weights == "last":
            return True
        self.best_epochs = torch.where(better, epoch, self.best_epochs)
        pairs = zip(better.tolist(), states, self.best, strict=True)
        self.best = [new if chosen else old for chosen, new, old in pairs]
        return bool(better.any())

    def _lower_rate(self, position: Position) -> None:
        """After every `plateau_patience` epochs without a better validation."""
        train = self.settings
        if train.schedule == "plateau":
            waited = position.epoch - int(self.risen.max())
            before = waited - train.validate_every
            if waited // train.plateau_patience > max(before, 0) // train.plateau_patience:
                position.rate *= train.plateau_factor

    def text(self) -> str:
        """The last and the best value of the monitored metric, for a progress bar."""
        name = self.settings.monitor
        sign = -1 if is_rising(name) else 1
        last, best = (float(value.mean()) for value in (self.last_value, sign * self.value))
        return f"validation {name} {last:.4g}, best {best:.4g}"

    def _rows(self, epoch: int, found: dict[str, Tensor], learning_rate: float) -> list[Row]:
        return [
            {
                "epoch": epoch,
                "seed": seed,
                "learning_rate": learning_rate,
                **{name: float(value[k]) for name, value in found.items()},
            }
            for k, seed in enumerate(self.seeds)
        ]
