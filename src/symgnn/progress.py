"""A bar for what takes long."""

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
def bar(text: str, show: bool | None) -> Iterator[OnProgress | None]:
    """A callback that draws a bar on stderr once two seconds have passed; None to draw none."""
    if not (sys.stderr.isatty() if show is None else show):
        yield None
        return
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(text)
    begin = time.monotonic()

    def on_progress(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if time.monotonic() - begin > 2:
            bar.start()

    try:
        yield on_progress
    finally:
        if bar.live.is_started:
            bar.stop()
