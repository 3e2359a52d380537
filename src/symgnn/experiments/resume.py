"""Work in parts, each saved as it completes; a run that was killed goes on where it was."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeAlias

import torch
from rich.console import Console

from symgnn.store import read_json, write_json
from symgnn.train import keep_memory
from symgnn.train.bar import bar

#: Signature: (on_epoch) -> the result of a part; on_epoch is called after each of its epochs.
Part: TypeAlias = Callable[[Callable[..., Any]], dict[str, Any]]
#: Signature: (epochs done by the parts that run) -> None
Report: TypeAlias = Callable[[int], Any]


def run_parts(
    parts: Mapping[str, Part],
    directory: Path,
    settings: Mapping[str, Any],
    epochs: int,
    console: Console,
    jobs: int = 1,
) -> list[dict[str, Any]]:
    """The results of all parts, in order, with a bar that shows the time left.

    A part that is in `directory`, run with the same settings, is not run again. With several
    `jobs`, as many parts run at once, each in a process and on a core of its own.
    """
    files = {name: directory / f"{name.replace(' ', '-')}.json" for name in parts}
    results = {}
    for name, file in files.items():
        saved = read_json(file)
        if isinstance(saved, dict) and saved.get("settings") == settings:
            results[name] = saved["result"]
    missing = {name: part for name, part in parts.items() if name not in results}
    with bar(console) as shown:
        task = shown.add_task("", total=len(missing) * epochs)

        def show(done: int) -> None:
            text = f"{len(results)} of {len(parts)} done"
            shown.update(task, completed=done, description=text)

        run = _one_by_one if jobs == 1 or len(missing) < 2 else _at_once
        for name, result in run(missing, jobs, show):
            write_json(files[name], {"settings": dict(settings), "result": result})
            results[name] = result
            if not console.is_terminal:  # where there is no bar, such as in a log
                console.print(f"{name}: done, {len(results)} of {len(parts)}")
    return [results[name] for name in parts]


def _one_by_one(
    parts: Mapping[str, Part], jobs: int, show: Report
) -> Iterator[tuple[str, dict[str, Any]]]:
    done = 0

    def on_epoch(*_: Any) -> None:
        nonlocal done
        done += 1
        show(done)

    for name, part in parts.items():
        show(done)
        yield name, part(on_epoch)


def _at_once(
    parts: Mapping[str, Part], jobs: int, show: Report
) -> Iterator[tuple[str, dict[str, Any]]]:
    context = multiprocessing.get_context("spawn")  # a forked torch may hang in its thread pool
    count = context.Value("q", 0)
    pool = ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(count,))
    try:
        names = {pool.submit(_work, part): name for name, part in parts.items()}
        waiting = set(names)
        while waiting:
            finished, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
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
    """In a worker: one thread, memory that is kept, and where to count epochs."""
    global _count
    _count = count
    torch.set_num_threads(1)
    keep_memory()


def _work(part: Part) -> dict[str, Any]:
    def on_epoch(*_: Any) -> None:
        with _count.get_lock():
            _count.value += 1

    return part(on_epoch)
