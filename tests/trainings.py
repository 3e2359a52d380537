"""Trainings in processes of their own, which can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

#: With everything that has a state: dropout, a schedule, clipping, patience, two seeds.
SMALL = {
    "data": {"name": "nbody", "train": 18, "validation": 5, "test": 5},
    "model": {
        "block": "dgn",
        "coordinate_map": "neighbour-sum",
        "hidden": 4,
        "dropout": 0.1,
    },
    "train": {
        "epochs": 6,
        "batch_size": 4,
        "learning_rate": 0.01,
        "schedule": "cosine",
        "warmup": 1,
        "clip": 1.0,
        "patience": 5,
        "seeds": 2,
    },
}

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["symgnn.train.run", "symgnn.report.run"])


def start(config: dict, out: Path, crash: tuple[str, int] | None = None):
    """A process that trains, or goes on with what is there; see :func:`crashing`."""
    process = _context.Process(target=_train, args=(config, out, crash))
    process.start()
    return process


def _train(config: dict, out: Path, crash: tuple[str, int] | None) -> None:
    import torch

    from symgnn.train.config import resolve
    from symgnn.train.run import finish, train

    torch.set_num_threads(1)
    if crash is not None:
        _crash_at(*crash)
    finish(out, train(resolve(config), out, resume=True))


def _crash_at(moment: str, count: int) -> None:
    """Kill this process at a moment of the count-th file that it writes whole."""
    from symgnn import store

    left = [count]

    def now() -> bool:
        left[0] -= 1
        return left[0] == 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    class Half:
        """A file that is written by half."""

        def __init__(self, file):
            self.file = file

        def __enter__(self):
            self.file.__enter__()
            return self

        def __exit__(self, *error):
            return self.file.__exit__(*error)

        def write(self, content: bytes) -> None:
            if moment == "half" and now():
                self.file.write(content[: len(content) // 2])
                self.file.flush()
                die()
            self.file.write(content)

        def flush(self) -> None:
            self.file.flush()
            if moment == "written" and now():
                die()

        def fileno(self) -> int:
            return self.file.fileno()

    class Files:
        """`os`, with files that are written by half."""

        def __getattr__(self, name: str):
            return getattr(os, name)

        @staticmethod
        def fdopen(*args):
            return Half(os.fdopen(*args))

    store.os = Files()  # type: ignore[assignment]
    if moment == "renamed":
        replace = Path.replace

        def replaced(self, target):
            found = replace(self, target)
            if now():
                die()
            return found

        Path.replace = replaced  # type: ignore[method-assign]
