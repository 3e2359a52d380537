"""Files as splits, from options as they stand in a configuration."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from symgnn.data.files.reading import read
from symgnn.data.files.splitting import splits
from symgnn.data.files.table import not_among
from symgnn.data.task import Splits

#: What `read` takes besides the paths.
READING = [
    name for name in inspect.signature(read).parameters if name not in ("paths", "scale", "seed")
]
#: What `load` takes.
OPTIONS = ["path", "fractions", "scale", "seed", *READING]


def load(
    *,
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    fractions: Sequence[float] = (0.8, 0.1, 0.1),
    scale: float | None = None,
    seed: int = 0,
    **reading: Any,
) -> Splits:
    """`read`, which takes the further options, and `splits` of what it gives.

    `about` has where the graphs are from with a checksum, the seed, the unit of the coordinates,
    and as "read" the options with which `read` gives new files the same form.
    """
    for name in reading:
        if name not in READING:
            raise ValueError(not_among("data", name, OPTIONS, "an option of files"))
    is_one = isinstance(path, str | os.PathLike)
    graphs = read(path, seed=seed, **reading)
    if graphs.task is None:
        missing = "columns: is missing; name the targets, of a CSV or that the files have"
        raise ValueError(graphs.unclear or missing)
    found = splits(graphs, fractions=fractions, seed=seed, scale=scale)
    atoms = any("z" in graph for graph in graphs)
    return Splits(
        found.train,
        found.validation,
        found.test,
        found.task,
        found.scale,
        {
            "source": [str(part) for part in ([path] if is_one else path)],  # type: ignore[union-attr]
            "files": len(graphs.files),
            "sha256": checksum(graphs.files),
            "units": "angstrom" if atoms else reading.get("units") or "",
            **found.about,
        },
    )


def checksum(files: Sequence[Path]) -> str:
    """Of the names and contents of the files, in this order."""
    digest = hashlib.sha256()
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.name} {content}\n".encode())
    return digest.hexdigest()
