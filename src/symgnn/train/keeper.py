"""What happens after each validation: the best weights are kept, everything is saved and logged.

Lightning's own checkpoints are not used. They go through a temporary file in the system's
directory for them, which on another file system is copied, so that a process killed then leaves a
damaged one; they hold no state of random numbers; and a run that goes on from one repeats hooks
of the epoch that was saved. Here a run goes on from the last validation, with what the
uninterrupted one has.
"""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer
from torch import Tensor

from symgnn.store import write_whole
from symgnn.train.checkpoint import fitting, read_checkpoint, write_checkpoint
from symgnn.train.metrics import is_rising
from symgnn.train.module import Module


class Keeper(Callback):
    """Keeps `best.ckpt`, `last.ckpt` and `log.csv` of a group of seeds in its directory.

    The best weights are chosen for each seed by itself. What was best, and when, is known from
    `best.ckpt` alone: if it is an epoch ahead of `last.ckpt`, because the process was killed
    between the two, the epoch that is repeated finds the same.
    """

    def __init__(self, directory: Path, module: Module) -> None:
        self.best_path, self.last_path = directory / "best.ckpt", directory / "last.ckpt"
        self.table = Log(directory / "log.csv", module.members.seeds)
        self.seconds, self.began = 0.0, time.monotonic()
        count = len(module.members)
        self.value = torch.full((count,), torch.inf, dtype=torch.float64)  # less is better
        self.loss = self.value  # then, of the validation: of equal values the lower is better
        self.epoch = torch.zeros(count, dtype=torch.long)  # how many were done then
        self.risen = self.epoch  # when the value itself became better, for the patience
        self.last_value = self.value
        self.states = module.members.states()

    def clean(self) -> None:
        """Take away what a process that was killed has begun."""
        for left in self.last_path.parent.glob(".*.ckpt.*"):
            left.unlink()
        last = read_checkpoint(self.last_path)["epoch"] if self.last_path.exists() else 0
        self.table.keep(last)

    def resume(self, module: Module) -> bool:
        """Go on from what is there; whether there is anything left to do."""
        if self.best_path.exists():
            best = read_checkpoint(self.best_path)
            self.value, self.loss = best["value"], best["loss"]
            self.epoch, self.risen, self.states = best["epoch"], best["risen"], best["members"]
        if not self.last_path.exists():
            return True
        if not self.best_path.exists():
            raise ValueError(f"{self.best_path}: is gone; put it back, or train into another --out")
        last = read_checkpoint(self.last_path)
        with fitting(self.last_path):
            module.members.load_states(last["members"])
        module.epoch, module.step, module.rate = last["epoch"], last["step"], last["rate"]
        module.saved_optimizer, module.saved_precision = last["optimizer"], last["precision"]
        self.seconds = last["seconds"]
        return not (module.epoch >= module.settings.epochs or self.out_of_patience(module))

    def on_validation_end(self, trainer: Trainer, module: Module) -> None:  # type: ignore[override]
        found = module.found()
        if not any(found["train_loss"].isfinite()):
            raise ValueError(
                f"loss: is not finite in epoch {module.epoch}; lower train.learning_rate, or set "
                "train.clip"
            )
        self.last_value = found[f"validation_{module.settings.monitor}"]
        better = self.compare(module, self.last_value, found["validation_loss"])
        self.lower_rate(module)
        if trainer.is_global_zero:
            if better.any():
                write_checkpoint(self.best_path, self.best(module))
            self.table.add(module, found)
            for logger in trainer.loggers:
                logger.log_metrics(self.table.flat(found), module.epoch)
            write_checkpoint(self.last_path, self.everything(trainer, module))
        trainer.should_stop = self.out_of_patience(module)

    def compare(self, module: Module, value: Tensor, loss: Tensor) -> Tensor:
        """Which seeds are better than before `[S]`; their weights are kept.

        Of equal values the one with the lower validation loss is better, and of equal losses the
        earlier one. Patience and plateaus go by the value alone.
        """
        if is_rising(module.settings.monitor):
            value = -value
        value, loss = (each.double().nan_to_num(torch.inf) for each in (value, loss))
        risen = value < self.value
        better = risen | ((value == self.value) & (loss < self.loss))
        self.value = torch.where(risen, value, self.value)
        self.loss = torch.where(better, loss, self.loss)
        self.risen = torch.where(risen, module.epoch, self.risen)
        self.epoch = torch.where(better, module.epoch, self.epoch)
        if better.any():
            now = module.members.states()
            pairs = zip(better.tolist(), now, self.states, strict=True)
            self.states = [new if chosen else old for chosen, new, old in pairs]
        return better

    def lower_rate(self, module: Module) -> None:
        """After every `plateau_patience` epochs without a better validation."""
        train = module.settings
        if train.schedule == "plateau":
            waited = module.epoch - int(self.risen.max())
            before = waited - train.validate_every
            if waited // train.plateau_patience > max(before, 0) // train.plateau_patience:
                module.rate *= train.plateau_factor

    def out_of_patience(self, module: Module) -> bool:
        """Whether no seed has become better for long enough."""
        patience = module.settings.patience
        return patience is not None and module.epoch - int(self.risen.max()) >= patience

    def text(self, module: Module) -> str:
        """The last value of what is monitored and the best, in a few words."""
        name = module.settings.monitor
        sign = -1 if is_rising(name) else 1
        last, best = (float(value.mean()) for value in (self.last_value, sign * self.value))
        return f"validation {name} {last:.4g}, best {best:.4g}"

    def best(self, module: Module) -> dict[str, Any]:
        """The best weights of each seed, and how good they are."""
        return {
            "seeds": module.members.seeds,
            "value": self.value,
            "loss": self.loss,
            "epoch": self.epoch,
            "risen": self.risen,
            "members": self.states,
        }

    def everything(self, trainer: Trainer, module: Module) -> dict[str, Any]:
        """All that the next epoch depends on."""
        return {
            "seeds": module.members.seeds,
            "epoch": module.epoch,
            "step": module.step,
            "rate": module.rate,
            "members": module.members.states(),
            "optimizer": trainer.optimizers[0].state_dict(),
            "precision": trainer.precision_plugin.state_dict(),
            "seconds": self.seconds + time.monotonic() - self.began,
        }


class Log:
    """A CSV with a row for each validation and seed."""

    def __init__(self, path: Path, seeds: list[int]) -> None:
        self.path, self.seeds = path, seeds

    def keep(self, epoch: int) -> None:
        """Only the rows up to this epoch, of a file that may end in the middle of one."""
        if self.path.exists():
            head, *lines = _complete_lines(self.path) or [""]
            kept = [line for line in lines if _epoch(line, self.path) <= epoch]
            write_whole(self.path, "".join([head, *kept]).encode() if kept else b"")

    def add(self, module: Module, found: dict[str, Tensor]) -> None:
        """Write the rows of a validation."""
        rows = [
            {
                "epoch": module.epoch,
                "seed": seed,
                "learning_rate": module.learning_rate(),
                **{name: float(value[k]) for name, value in found.items()},
            }
            for k, seed in enumerate(self.seeds)
        ]
        head = not self.path.exists() or not self.path.stat().st_size
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(_rows(rows, head))

    def flat(self, found: dict[str, Tensor]) -> dict[str, float]:
        """One number for each name and seed."""
        one = len(self.seeds) == 1
        return {
            name if one else f"{name}/seed {seed}": float(value[k])
            for name, value in found.items()
            for k, seed in enumerate(self.seeds)
        }


def read_log(path: Path) -> list[dict[str, float]]:
    """The rows that are complete."""
    rows = csv.DictReader(_complete_lines(path))
    try:
        return [{name: float(value) for name, value in row.items()} for row in rows]
    except (TypeError, ValueError):
        raise ValueError(f"{path}: has a cell that is no number; restore the file") from None


def _epoch(line: str, path: Path) -> int:
    first = line.partition(",")[0]
    if not first.isdigit():
        raise ValueError(
            f"{path}: {line.strip()[:40]!r} is no row of it; restore or delete the file"
        )
    return int(first)


def _complete_lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [line for line in file if line.endswith("\n")]


def _rows(rows: list[dict[str, Any]], head: bool) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    if head:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
