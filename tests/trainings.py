"""Trainings in processes of their own, which can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from pathlib import Path

#: With everything that has a state: dropout, a schedule, clipping, patience, two seeds.
SMALL = {
    "data": {"name": "polytopes-3d", "copies": 1},
    "model": {"block": "dgn", "hidden": 4, "layers": 1, "dropout": 0.1},
    "train": {
        "epochs": 14,
        "batch_size": 2,
        "learning_rate": 0.01,
        "schedule": "cosine",
        "warmup": 1,
        "clip": 1.0,
        "patience": 14,
        "seeds": 2,
    },
}


def solids(
    *, level: str = "node", kind: str = "regression", scale: float = 1.0, holes: bool = False
):
    """The solids with answers for each graph, node or edge; the test set is the training set.

    With `holes`, two of three labels are missing, and all of two solids.
    """
    import torch

    from symgnn.data import polytopes
    from symgnn.data._task import Splits, Task

    graphs = polytopes(3)
    for k, graph in enumerate(graphs):
        del graph.name
        rows = {"graph": 1, "node": graph.num_nodes, "edge": graph.num_edges}[level]
        numbers = torch.arange(rows, dtype=torch.float32)
        graph.y = torch.stack([numbers + 10 * k, 100 - numbers * k], 1)
        if kind == "classification":
            graph.y = (numbers.long() + k) % 3
        if holes:
            flat = graph.y.reshape(-1)
            there = (torch.arange(len(flat)) + k) % 3 == 0
            missing = -1 if kind == "classification" else torch.nan
            graph.y = torch.where(there & (k not in (1, 3)), flat, missing).view_as(graph.y)
        graph.pos = graph.pos * scale
    if kind == "classification":
        task = Task(level, kind, ("colour",), classes=("red", "green", "blue"))
    else:
        task = Task(level, kind, ("energy", "charge"), ("eV", ""))
    about = {"missing": "mask"} if holes else {}
    return Splits(graphs, graphs, graphs, task, scale, about)


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["symgnn.train._training", "symgnn.report._run_page"])


def start(config: dict, out: Path, crash: tuple[str, int] | None = None, rank: dict | None = None):
    """A process that trains, or goes on with what is there; see :func:`_crash_at`."""
    process = _context.Process(target=_train, args=(config, out, crash, rank or {}))
    process.start()
    return process


def start_two(config: dict, out: Path) -> list:
    """Two processes that train together, as torchrun would start them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "test"}
    world |= {"WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": 0}
    ranks = [{**world, "RANK": k, "LOCAL_RANK": k} for k in range(2)]
    return [start(config, out, rank=rank) for rank in ranks]


def _train(config: dict, out: Path, crash: tuple[str, int] | None, rank: dict) -> None:
    os.environ |= {name: str(value) for name, value in rank.items()}
    import torch

    from symgnn.data import _registry as registry
    from symgnn.train._config import resolve
    from symgnn.train._training import finish, train

    torch.set_num_threads(1)
    registry.DATASETS["solids"] = registry.Dataset("solids", "made", (5, 5, 5), solids)
    if crash is not None:
        _crash_at(*crash)
    try:
        run = train(resolve(config), out, resume=True)
    except ValueError as error:  # as the command does
        (out.parent / f"error-{rank.get('RANK', 0)}").write_text(str(error))
        raise SystemExit(2) from None
    if run is not None:
        finish(run)


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
