"""Files as splits, from options as they stand in a configuration."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from symgnn._argument_checks import check_count, unknown_name
from symgnn.data._task import Splits
from symgnn.data.files._graph_list import Graphs
from symgnn.data.files._reading import listed, read
from symgnn.data.files._splitting import folds as make_folds
from symgnn.data.files._splitting import splits

#: The options of `read`, without the paths.
READING = [
    name for name in inspect.signature(read).parameters if name not in ("paths", "scale", "seed")
]
#: The options of `load`.
OPTIONS = ["path", "split", "folds", "fold", "fractions", "scale", "seed", *READING]
#: The keys of `split`.
SPLIT = ("by", "column", "validation")


def load(
    *,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    split: str | Mapping[str, Any] | None = None,
    folds: int | None = None,
    fold: int | None = None,
    fractions: Sequence[float] | None = None,
    scale: float | None = None,
    seed: int = 0,
    **reading: Any,
) -> Splits:
    """Read your own files and divide them: :func:`read`, then :func:`splits` or :func:`folds`.

    Args:
        path: Files, folders or patterns.
        split: "random", "scaffold", or a mapping such as `{"by": "group", "column": "patient"}`;
            see :func:`symgnn.data.splits`.
        folds: The number of folds for cross-validation.
        fold: The fold, counted from 1, that is the test part.
        fractions, scale, seed: As for :func:`symgnn.data.splits`.
        reading: As for :func:`symgnn.data.read`.

    Returns:
        Three splits. Their `about` has the source of the graphs with a checksum, the seed, the unit
        of the coordinates, and as "read" the options with which `read` reads new files in the same
        form.

    Example:
        >>> splits = symgnn.data.load_files(path=symgnn.data.sample("sdf"), columns=["dipole"])
        >>> len(splits.train), len(splits.validation), len(splits.test)
        (14, 2, 2)
    """
    if folds is not None and fold is None:
        raise ValueError(f"fold: is missing; give the number of one of the {folds} folds")
    if folds is None and fold is not None:
        raise ValueError("folds: is missing; give the number of folds")
    if folds is None:
        division = _division(split)
        if "validation" in division:
            raise ValueError("split.validation: is for folds; give fractions instead")
        graphs, about = _read(path, seed, reading, division)
        with _in_split():
            found = splits(graphs, **division, fractions=fractions, seed=seed, scale=scale)
        return dataclasses.replace(found, about={**about, **found.about})
    every = load_folds(
        path=path, split=split, folds=folds, fractions=fractions, scale=scale, seed=seed, **reading
    )
    if check_count("fold", fold, 1) > len(every):
        raise ValueError(f"fold: is {fold}; give a number from 1 to {len(every)}")
    return every[fold - 1]  # type: ignore[operator]


def load_folds(
    *,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    folds: int,
    split: str | Mapping[str, Any] | None = None,
    fractions: Sequence[float] | None = None,
    scale: float | None = None,
    seed: int = 0,
    **reading: Any,
) -> list[Splits]:
    """The splits of every fold, from files that are read once; options are those of `load`."""
    check_count("folds", folds, 2)
    if fractions is not None:
        raise ValueError("fractions: folds define the parts; remove fractions")
    division = _division(split)
    graphs, about = _read(path, seed, reading, division)
    with _in_split():
        found = make_folds(graphs, folds, **division, seed=seed, scale=scale)
    return [dataclasses.replace(each, about={**about, **each.about}) for each in found]


def _division(split: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of `splits` or `folds` that `split` stands for."""
    if split is None or isinstance(split, str):
        return {} if split is None else {"by": split}
    if not isinstance(split, Mapping):
        raise ValueError(
            f"split: is {split!r}; give a word such as scaffold, or by and column, such as "
            "{by: group, column: patient}"
        )
    for name in split:
        if name not in SPLIT:
            raise ValueError(unknown_name("split", name, SPLIT, "a key of split"))
    return dict(split)


@contextmanager
def _in_split() -> Iterator[None]:
    """Let errors name the keys as they are called in the options."""
    try:
        yield
    except ValueError as error:
        name, colon, said = str(error).partition(":")
        if name in SPLIT:
            raise ValueError(f"split.{name}{colon}{said}") from None
        if name == "k":
            raise ValueError(f"folds{colon}{said}") from None
        raise


def _read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    seed: int,
    reading: dict[str, Any],
    division: Mapping[str, Any],
) -> tuple[Graphs, dict[str, Any]]:
    """The graphs, whose targets and features have no part in how they are divided, and their
    source.
    """
    for name in reading:
        if name not in READING:
            raise ValueError(unknown_name("data", name, OPTIONS, "an option of files"))
    is_one = isinstance(path, str | os.PathLike)
    column = division.get("column")
    others = listed(reading.get("metadata"), "metadata") or []
    options = {**reading, "metadata": [*others, *([] if column is None else [column])]}
    try:
        graphs = read(path, seed=seed, **options)
    except ValueError as error:
        said = str(error)
        if said.startswith(f"metadata: {column!r}"):
            said = said.replace("metadata", "split.column", 1)
        raise ValueError(said) from None
    if graphs.task is None:
        unknown = "columns: is missing; name the targets, of a CSV or that the files have"
        raise ValueError(graphs.unclear or unknown)
    atoms = any("z" in graph for graph in graphs)
    return graphs, {
        "source": [str(part) for part in ([path] if is_one else path)],  # type: ignore[union-attr]
        "files": len(graphs.files),
        "sha256": checksum(graphs.files),
        "units": "angstrom" if atoms else reading.get("units") or "",
    }


def checksum(files: Sequence[Path]) -> str:
    """Of the names and contents of the files, in this order."""
    digest = hashlib.sha256()
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.name} {content}\n".encode())
    return digest.hexdigest()
