"""A bar on stderr for what takes longer than two seconds; in a log, a line each minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import Progress

#: Signature: (steps done, steps in total) -> None
OnProgress: TypeAlias = Callable[[int, int], Any]
#: Seconds between two lines of a log.
LINE_EVERY = 60.0


class ProgressLines:
    """A callback that writes a line each minute, where there is no terminal to draw a bar in.

    Args:
        text: What stands at the beginning of each line.
        write: Writes a line.
    """

    def __init__(self, text: str, write: Callable[[str], Any]) -> None:
        self.text, self.write = text, write
        self.begin = self.last = time.monotonic()
        self.first: int | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        first = self.first = done if self.first is None else self.first
        if now - self.last < LINE_EVERY or not first < done < total:
            return
        left = (now - self.begin) * (total - done) / (done - first)
        time_left = f"about {left / 60:.0f} min" if left >= 60 else "less than a minute"
        self.write(f"{self.text}: {done:,} of {total:,}, {time_left} left")
        self.last = now


@contextmanager
def bar(text: str, show: bool | None = None) -> Iterator[OnProgress | None]:
    """A callback that draws a bar on stderr once two seconds have passed; None to draw none.

    Without `show`, there is a bar if stderr is a terminal, and else a line each minute.
    """
    if show is None and not sys.stderr.isatty():
        yield ProgressLines(text, lambda line: sys.stderr.write(f"{line}\n"))
        return
    if show is False:
        yield None
        return
    drawn = Progress(console=Console(stderr=True), transient=True)
    task = drawn.add_task(text)
    begin = time.monotonic()

    def on_progress(done: int, total: int) -> None:
        drawn.update(task, completed=done, total=total)
        if time.monotonic() - begin > 2:
            drawn.start()

    try:
        yield on_progress
    finally:
        if drawn.live.is_started:
            drawn.stop()
