"""Files into structures: piece by piece, in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from typing import Any

import numpy as np

from symgnn.data.files._file_structure import FileStructure, How, Piece
from symgnn.data.files._formats import File
from symgnn.data.files._graph_list import Troubles
from symgnn.progress import bar


def parse(
    files: Sequence[File], how: How, troubles: Troubles, workers: int, progress: bool | None
) -> list[FileStructure]:
    """The structures of all files, in order."""
    total = sum(file.path.stat().st_size for file in files)
    structures: list[FileStructure] = []
    done = 0
    with bar(f"reading {len(files)} files", progress) as on_progress:
        jobs = ((file, piece) for file in files for piece in _pieces(file, how, troubles))
        for size, found in _run(partial(_attempt, how=how), jobs, workers):
            if isinstance(found, str):
                troubles.add(found)
            else:
                structures += found
            done += size
            if on_progress is not None:
                on_progress(min(done, total), total)
    return structures


def _run(attempt: Any, jobs: Iterable[Any], workers: int) -> Iterator[Any]:
    if not workers:
        yield from map(attempt, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=_context()) as pool:
        yield from pool.map(attempt, jobs, chunksize=16)


def _context() -> BaseContext:
    """Processes that are not forks of this one, which with the threads of torch could hang."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])  # imported once, not by each process
    return context


def _pieces(file: File, how: How, troubles: Troubles) -> Iterator[Piece]:
    try:
        count = 0
        for piece in file.reader.pieces(file.path, how):
            count += 1
            yield piece
        if not count:
            troubles.add(f"{file.path}: is empty")
    except UnicodeDecodeError:
        troubles.add(f"{file.path}: is not text in UTF-8")
    except ValueError as error:
        troubles.add(str(error))


def _attempt(job: tuple[File, Piece], how: How) -> tuple[int, list[FileStructure] | str]:
    """The structures of a piece, or in a line why there are none."""
    file, piece = job
    try:
        found = file.reader.parse(piece, how)
    except Exception as error:  # files are damaged in many ways, and libraries raise anything
        reason = str(error).strip().partition("\n")[0]
        if len(reason) > 400:  # a library quotes all that it could not read
            reason = f"{reason[:200]} ... {reason[-100:]}"
        if isinstance(error, MemoryError | RecursionError):
            reason = "it asks for more memory than there is, or is damaged; replace it"
        elif not isinstance(error, ValueError) or not reason:
            reason = f"cannot be read ({type(error).__name__}{': ' if reason else ''}{reason})"
        named = reason.startswith((str(piece.path), str(piece.path.parent) + os.sep))
        return piece.size, reason if named else f"{piece.where}: {reason}"
    parent = "" if file.folder is None else file.path.parent.relative_to(file.folder).as_posix()
    name = file.path if file.folder is None else file.path.relative_to(file.folder)
    for structure in found:
        structure.values["graph"].setdefault("file", np.array([name.as_posix()]))
        structure.values["graph"].setdefault("folder", np.array([file.path.parent.name]))
        if parent not in ("", "."):
            structure.aliases = (structure.name, *structure.aliases)
            structure.name = f"{parent}/{structure.name}"
    return piece.size, found
