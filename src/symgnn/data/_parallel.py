"""Datasets are prepared by several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from symgnn._argument_checks import check_count
from symgnn.progress import OnProgress, bar

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    jobs: int = 1,
    text: str,
    progress: bool | None = None,
) -> list[R]:
    """`function` of each item, in order, by `jobs` processes; `text` stands beside the bar.

    The processes are new ones, so a script that asks for more than one must be importable: what it
    runs stands behind `if __name__ == "__main__"`.
    """
    jobs = min(check_count("jobs", jobs, 1), max(len(items), 1))
    with bar(text, progress) as on_progress:
        if jobs == 1:
            return _collect(map(function, items), len(items), on_progress)
        context = multiprocessing.get_context("spawn")  # a forked torch may hang in its thread pool
        pool = ProcessPoolExecutor(jobs, context)
        try:
            return _collect(pool.map(function, items), len(items), on_progress)
        finally:
            pool.shutdown(cancel_futures=True)


def _collect(results: Iterator[R], total: int, on_progress: OnProgress | None) -> list[R]:
    collected = []
    for result in results:
        collected.append(result)
        if on_progress is not None:
            on_progress(len(collected), total)
    return collected


def chunks(count: int, size: int) -> list[slice]:
    """`count` rows in slices of at most `size`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
