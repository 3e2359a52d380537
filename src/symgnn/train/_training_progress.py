"""The progress of a training: a bar in a terminal, or lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from symgnn.train._bar import bar
from symgnn.train._checkpointing import Checkpoints
from symgnn.train._settings import Training

#: How many lines are printed where there is no terminal to draw a bar in.
LINES = 20


class Progress:
    """A bar over all epochs with the remaining time, or lines without a terminal."""

    def __init__(self, console: Console, settings: Training, checkpoints: Checkpoints) -> None:
        self.console, self.settings, self.checkpoints = console, settings, checkpoints
        self.bar = bar(console)
        self.task = self.bar.add_task("epoch 1")
        self.last = 0  # the epoch of the last line

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the bar, in a terminal."""
        if self.console.is_terminal:
            self.bar.start()
        try:
            yield
        finally:
            if self.bar.live.is_started:
                self.bar.stop()

    def on_step(self, step: int, steps: int) -> None:
        """After each step."""
        self.bar.update(self.task, completed=step, total=steps)

    def on_validation(self, epoch: int) -> None:
        """After each validation."""
        text = f"epoch {epoch} of {self.settings.epochs}, {self.checkpoints.text()}"
        self.bar.update(self.task, description=text)
        every = max(self.settings.epochs // LINES, 1)
        if not self.console.is_terminal and epoch // every > self.last // every:
            self.console.print(text)
        self.last = epoch
