"""One of several processes that train together is gone: a line that names it, no traceback."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import Popen, TimeoutExpired
from typing import Any

#: Messages of the backends of torch.distributed when a process has ended.
LOST = re.compile(
    r"gloo|nccl|connection (closed|reset|refused|was)|broken pipe|TCPStore|by peer"
    r"|process ?group|distributed",
    re.IGNORECASE,
)


@contextmanager
def naming_lost_processes(fabric: Any) -> Iterator[None]:
    """Errors of communication between processes become one line that says how to go on."""
    try:
        yield
    except RuntimeError as error:
        world, rank = fabric.world_size, fabric.global_rank
        if world == 1 or not LOST.search(str(error)):
            raise
        started = getattr(getattr(fabric.strategy, "launcher", None), "procs", ())
        raise ValueError(lost(world, rank, started)) from None


def lost(world: int, rank: int, started: Sequence[Popen]) -> str:
    """Which of `world` processes is gone, as far as the one of this rank can know.

    Args:
        world: how many train together.
        rank: that of this process.
        started: the processes that this one started, of rank 1, 2, ...
    """
    gone: list[tuple[int, int | None]]
    gone = [(k + 1, code) for k, each in enumerate(started) if (code := _ended(each)) is not None]
    gone = gone or ([(1 - rank, None)] if world == 2 else [])
    if gone:
        names = ", ".join(f"{number}{_how(code)}" for number, code in gone)
        which = f"process {names} of {world} was lost"
    else:
        which = f"one of the {world} processes was lost (not process {rank})"
    return (
        f"train.devices: {which}; the same command with --resume goes on from the last validation"
    )


def _ended(process: Popen) -> int | None:
    """The exit code of a process that has ended, or does in a moment."""
    try:
        return process.wait(timeout=1.0)
    except TimeoutExpired:
        return None


def _how(code: int | None) -> str:
    if code is None:
        return ""
    return f" ({signal.Signals(-code).name})" if code < 0 else f" (exit code {code})"
