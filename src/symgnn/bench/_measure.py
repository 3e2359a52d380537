"""Times that can be compared: both sides take turns, and a ratio is of times of the same round."""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
GIB = 2**30
#: How much of the memory that is free a child may take.
SHARE = 0.85
#: Seconds of each side, one for each round.
Times: TypeAlias = dict[str, list[float]]


class MissingError(Exception):
    """Something that is compared with is not here; what it says is printed in place of a ratio."""


class NoMemoryError(MissingError):
    """A process needed more than `limit` bytes, which is what it was allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"it needs more than the {self.limit / GIB:.1f} GiB that are free"


class Spread(NamedTuple):
    """The median and the quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one number."""
        if len(values) < 2:
            return cls(values[0], values[0], values[0])
        low, middle, high = quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high)


def paired(above: Sequence[float], below: Sequence[float], factor: float = 1.0) -> Spread:
    """`factor * above / below` of each round: what slowed the machine then slowed both."""
    return Spread.of([factor * a / b for a, b in zip(above, below, strict=True)])


def medians(times: Times, *names: str) -> dict[str, float]:
    """The median seconds of these sides."""
    return {name: median(times[name]) for name in names}


@dataclass(frozen=True)
class Rounds:
    """How often something is measured: `repeats` times, fewer where that takes too long.

    `clock` gives seconds: `time.process_time` counts those of the processor alone, for one thread
    on a machine that others use too.
    """

    repeats: int = 15
    least: int = 5
    warm_up: int = 2
    seconds: float = 60.0
    threads: int = 1
    on_round: Callable[[], Any] | None = None
    clock: Callable[[], float] = time.perf_counter

    def alternate(self, runs: Mapping[str, Callable[[], Any]]) -> Times:
        """The times of functions that take turns, in this order and back by turns."""
        times: Times = {name: [] for name in runs}
        names = list(runs)
        began = time.perf_counter()
        for number in range(-self.warm_up, self.repeats):
            for name in names:
                start = self.clock()
                runs[name]()
                if number >= 0:
                    times[name].append(self.clock() - start)
            names.reverse()
            self.count()
            if number + 1 >= self.least and time.perf_counter() - began > self.seconds:
                break
        return times

    def count(self) -> None:
        """A round is done."""
        if self.on_round is not None:
            self.on_round()

    @property
    def most(self) -> int:
        """How many rounds there may be."""
        return self.warm_up + self.repeats


def in_child(function: Callable[..., T], *args: Any) -> T:
    """The result of a function in a process of its own, so that its memory can be measured.

    It may take most of what is free, so that no other process has to end for it.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(_limited, function, *args).result()
        except BrokenProcessPool:
            raise MissingError("its process was killed, probably for lack of memory") from None


def _limited(function: Callable[..., T], *args: Any) -> T:
    limit = _limit_memory()
    try:
        return function(*args)
    except (RuntimeError, MemoryError) as error:
        if limit is None or not ("alloc" in str(error) or isinstance(error, MemoryError)):
            raise
        raise NoMemoryError(limit) from None


def _limit_memory() -> int | None:
    """Allow this process no more than most of what is free; None where that is not known."""
    free = _number_in(Path("/proc/meminfo"), "MemAvailable")
    if not free:
        return None
    import resource

    limit = int(SHARE * free)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return limit


class Memory:
    """The memory of this process in bytes: now, and at most since it began or was `forgotten`."""

    def now(self) -> int:
        """Resident; where the system does not say, the most so far."""
        return _number_in(_STATUS, "VmRSS") or self.most()

    def most(self) -> int:
        """The peak. Not that of `getrusage`, where it can be had otherwise.

        There, a process starts with the peak of the one that started it.
        """
        return _number_in(_STATUS, "VmHWM") or _peak_of_usage()

    def forget(self) -> None:
        """Begin to look for the peak anew, where the system allows."""
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


_STATUS = Path("/proc/self/status")


def _number_in(path: Path, name: str) -> int:
    """Bytes, from a line `name: 123 kB` of what Linux tells; 0 where it does not."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(found[0]) * 1024 if found else 0


def _peak_of_usage() -> int:
    try:
        import resource
    except ImportError:
        raise MissingError("peak memory cannot be measured on this system") from None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
