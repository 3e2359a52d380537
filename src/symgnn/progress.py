"""A bar on stderr for what takes longer than two seconds."""

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


@contextmanager
def bar(text: str, show: bool | None = None) -> Iterator[OnProgress | None]:
    """A callback that draws a bar on stderr once two seconds have passed; None to draw none.

    Without `show`, there is one if stderr is a terminal.
    """
    if not (sys.stderr.isatty() if show is None else show):
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
