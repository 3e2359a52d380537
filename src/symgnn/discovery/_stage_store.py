"""Results of single steps, written as they come, so that a stopped search goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symgnn.progress import OnProgress
from symgnn.store import read_json, source_hash, write_json


class StageStore:
    """Runs steps until the time is over; a step that was done before is read.

    Steps have seeds of their own, so that it does not matter when they were run.

    Args:
        path: The file; None to keep results in memory.
        key: What the results belong to (data, seed, code); others are not read.
        end: When to stop, by `time.monotonic`: a step is not begun after it.
        total: The number of steps, as far as it is known.
        on_progress: Is told of each step.
    """

    def __init__(
        self,
        path: Path | None,
        key: dict[str, Any],
        end: float,
        total: int,
        on_progress: OnProgress | None,
    ) -> None:
        self.path, self.key = path, {**key, "source": source_hash()}
        self.end, self.total = end, total
        self.on_progress = on_progress
        self.done = 0
        self.missed: list[str] = []
        self.results: dict[str, Any] = {}

    def read(self) -> None:
        """The steps of an earlier search of the same data with the same seed and code."""
        if self.path is None or not self.path.exists():
            return
        found = read_json(self.path)
        if not isinstance(found, dict) or not isinstance(found.get("results"), dict):
            raise ValueError(f"--resume: {self.path} is damaged; leave out --resume to begin anew")
        if found.get("key") != self.key:
            raise ValueError(
                f"--resume: {self.path} is of other data, another seed or another version; leave "
                "out --resume, or give another --out"
            )
        self.results = found["results"]

    def run(self, name: str, step: Callable[[], Any]) -> Any:
        """The result of a step; None if the time was over before it began."""
        self.done += 1
        if name not in self.results:
            if time.monotonic() > self.end:
                self.missed.append(name)
                return None
            self.results[name] = step()
            if self.path is not None:
                write_json(self.path, {"key": self.key, "results": self.results})
        if self.on_progress is not None:
            self.on_progress(min(self.done, self.total), self.total)
        return self.results[name]
