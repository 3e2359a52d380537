"""How a training shows what it does."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, Trainer
from rich.console import Console

from symgnn.train.bar import bar
from symgnn.train.keeper import Keeper
from symgnn.train.module import Module

#: How many lines are printed where there is no terminal to draw a bar in.
LINES = 20


class Progress(Callback):
    """A bar over all epochs with the time left, or some lines where there is no terminal."""

    def __init__(self, console: Console, keeper: Keeper) -> None:
        self.console, self.keeper, self.bar = console, keeper, bar(console)
        self.task = self.bar.add_task("epoch 1")

    def on_train_start(self, trainer: Trainer, module: Module) -> None:  # type: ignore[override]
        if trainer.is_global_zero and self.console.is_terminal:
            total = module.settings.epochs * len(module.loaders["train"])
            self.bar.update(self.task, total=total, completed=module.step)
            self.bar.start()

    def on_train_batch_end(self, trainer: Trainer, module: Module, *_: Any) -> None:  # type: ignore[override]
        self.bar.update(self.task, completed=module.step + 1)  # its hook comes after this

    def on_validation_end(self, trainer: Trainer, module: Module) -> None:  # type: ignore[override]
        if not trainer.is_global_zero:
            return
        train = module.settings
        text = f"epoch {module.epoch} of {train.epochs}, {self.keeper.text(module)}"
        self.bar.update(self.task, description=text)
        step = max(train.epochs // LINES, 1)
        if not self.console.is_terminal and module.epoch // step > (
            (module.epoch - train.validate_every) // step
        ):
            self.console.print(text)

    def on_train_end(self, trainer: Trainer, module: Module) -> None:  # type: ignore[override]
        self.stop()

    def on_exception(self, trainer: Trainer, module: Module, exception: BaseException) -> None:  # type: ignore[override]
        self.stop()

    def stop(self) -> None:
        """Take the bar away, if there is one."""
        if self.bar.live.is_started:
            self.bar.stop()
