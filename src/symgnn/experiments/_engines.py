"""Where the parts of an experiment run: in this process, in several here, or on a Ray cluster."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch

from symgnn.train import keep_memory

#: Signature: (on_epoch) -> the result of a part; on_epoch is called after each of its epochs.
Part: TypeAlias = Callable[[Callable[..., Any]], dict[str, Any]]
#: Signature: (epochs done by the parts that run) -> None
Report: TypeAlias = Callable[[int], Any]
#: The name of a part, and its result.
Done: TypeAlias = tuple[str, dict[str, Any]]

#: How often the parts that run are asked how far they are, in seconds.
_EVERY = 0.5
#: The settings of this machine that workers on others need.
_PASSED_ON = ("SYMGNN_DATA", "XDG_CACHE_HOME")


class RowEngine(Protocol):
    """Runs independent parts of an experiment."""

    @property
    def jobs(self) -> int:
        """Processes that may prepare data here."""

    def run(self, parts: Mapping[str, Part], show: Report) -> Iterator[Done]:
        """Each part as it completes, in any order."""


@dataclass(frozen=True)
class Local:
    """Runs parts on this machine: one by one, or up to `jobs` at once in separate processes."""

    jobs: int = 1

    def run(self, parts: Mapping[str, Part], show: Report) -> Iterator[Done]:
        """Each part as it completes."""
        if self.jobs == 1 or len(parts) < 2:
            return _one_by_one(parts, show)
        return _at_once(parts, self.jobs, show)


#: One part after the other, in this process.
HERE = Local()


@dataclass(frozen=True)
class Ray:
    """Runs parts on a Ray cluster: that of RAY_ADDRESS, else a running local one, else a new one.

    Every part gets a CPU, and a GPU where the cluster has any. With `most`, no more than that many
    parts run at once. The machines need symgnn, and the data in the same folders.
    """

    most: int | None = None
    jobs: int = os.cpu_count() or 1

    def __post_init__(self) -> None:
        if importlib.util.find_spec("ray") is None:
            raise ValueError("--engine ray: Ray is not installed; pip install symgnn[ray]")

    def run(self, parts: Mapping[str, Part], show: Report) -> Iterator[Done]:
        """Each part as it completes."""
        ray: Any = importlib.import_module("ray")
        started = not ray.is_initialized()
        if started:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
        running: dict[Any, str] = {}
        try:
            counter = ray.remote(num_cpus=0)(_Counter).remote()
            gpus = int("GPU" in ray.cluster_resources())
            work = ray.remote(num_cpus=1, num_gpus=gpus)(_work_on_ray)
            passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            waiting = list(parts)
            while waiting or running:
                while waiting and len(running) < (self.most or len(parts)):
                    name = waiting.pop(0)
                    running[work.remote(parts[name], passed, counter)] = name
                finished, _ = ray.wait(list(running), timeout=_EVERY)
                show(ray.get(counter.value.remote()))
                for reference in finished:
                    yield running.pop(reference), _result(reference)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            if started:
                ray.shutdown()


def engine_named(name: str, jobs: int | None = None) -> RowEngine:
    """The engine "local" or "ray" with up to `jobs` parts at once (default: one per core)."""
    if name == "ray":
        return Ray(jobs)
    return Local(jobs or os.cpu_count() or 1)


def _one_by_one(parts: Mapping[str, Part], show: Report) -> Iterator[Done]:
    done = 0

    def on_epoch(*_: Any) -> None:
        nonlocal done
        done += 1
        show(done)

    for name, part in parts.items():
        show(done)
        yield name, part(on_epoch)


def _at_once(parts: Mapping[str, Part], jobs: int, show: Report) -> Iterator[Done]:
    context = multiprocessing.get_context("spawn")  # a forked torch may hang in its thread pool
    count = context.Value("q", 0)
    pool = ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(count,))
    try:
        names = {pool.submit(_work, part): name for name, part in parts.items()}
        waiting = set(names)
        while waiting:
            finished, waiting = wait(waiting, timeout=_EVERY, return_when=FIRST_COMPLETED)
            show(count.value)
            for future in finished:
                yield names[future], future.result()
    finally:
        # without waiting for parts that nobody will read
        for process in (pool._processes or {}).values() if waiting else ():
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


_count: Any = None


def _start(count: Any) -> None:
    """In a worker: where to count epochs."""
    global _count
    _count = count
    _be_a_worker()


def _be_a_worker() -> None:
    """One thread, and memory that is kept."""
    torch.set_num_threads(1)
    keep_memory()


def _work(part: Part) -> dict[str, Any]:
    def on_epoch(*_: Any) -> None:
        with _count.get_lock():
            _count.value += 1

    return part(on_epoch)


class _Counter:
    """The epochs that all parts have done, kept on the cluster."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        """One more."""
        self.count += 1

    def value(self) -> int:
        """So far."""
        return self.count


def _work_on_ray(part: Part, environment: Mapping[str, str], counter: Any) -> dict[str, Any]:
    os.environ.update(environment)
    _be_a_worker()
    return part(lambda *_: counter.add.remote())


def _result(reference: Any) -> dict[str, Any]:
    """The result of a part; its own error is raised as if it had run here."""
    ray: Any = importlib.import_module("ray")
    try:
        found: dict[str, Any] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    return found
