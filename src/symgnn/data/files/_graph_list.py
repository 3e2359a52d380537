"""The result of `read`: a list of graphs with their task and the options of reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from symgnn.data._task import Task


class Graphs(list[Data]):
    """A list of graphs in the order of their files.

    Attributes:
        task: the task of `y`; None without targets, or if the task is ambiguous.
        unclear: the reason if the task is ambiguous.
        skipped: one line for each skipped structure or row, with the reason.
        files: the files that were read.
        options: options with which `read` reads further files with the same elements, features and
            edges.
        by_default: whether the edges are the defaults of `read`.
        metadata: further columns of the files, one value per graph, by the name of the column.
        missing: "mask" if labels may be missing, else "error".
    """

    def __init__(
        self,
        graphs: Iterable[Data],
        *,
        task: Task | None = None,
        skipped: Sequence[str] = (),
        files: Sequence[Path] = (),
        options: dict[str, Any] | None = None,
        by_default: bool = False,
        unclear: str = "",
        metadata: dict[str, list[str | None]] | None = None,
        missing: str = "error",
    ) -> None:
        super().__init__(graphs)
        self.task = task
        self.skipped = tuple(skipped)
        self.files = tuple(files)
        self.options = options or {}
        self.by_default = by_default
        self.unclear = unclear
        self.metadata = metadata or {}
        self.missing = missing

    def take(self, indices: Sequence[int]) -> Graphs:
        """The graphs with these indices, with their task, metadata and options."""
        return Graphs(
            [self[index] for index in indices],
            task=self.task,
            skipped=self.skipped,
            files=self.files,
            options=self.options,
            metadata={name: [each[i] for i in indices] for name, each in self.metadata.items()},
            missing=self.missing,
        )

    @property
    def names(self) -> list[str]:
        """The name of each graph: that of its file, with a number where a file has several."""
        return [graph.name for graph in self]

    def __repr__(self) -> str:
        sizes = [graph.num_nodes for graph in self]
        count = f"{len(self)} graphs" if len(self) != 1 else "1 graph"
        least, most = min(sizes, default=0), max(sizes, default=0)
        size = f"{least} to {most}" if least != most else str(least)
        text = f"{count} of {size} nodes"
        if self:
            text += f", in {self[0].pos.shape[1]} dimensions"
        return text if self.task is None else f"{text}: {describe(self.task)}"


def describe(task: Task) -> str:
    """A task in a few words."""
    names, units = task.vectors or task.targets, task.units
    if task.vectors:
        units = units[:: len(task.targets) // len(task.vectors)]
    named = ", ".join(
        f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True)
    )
    text = f"{named} of each {task.place}"
    text = f"{text}, as vectors" if task.vectors else text
    return f"{text}, one of {', '.join(task.classes)}" if task.classes else text


#: The advice of an error on a single structure.
ADVICE = "or pass on_error='skip' to skip such structures"


class Troubles:
    """Errors of single structures: raised at once, or collected so that they are skipped."""

    def __init__(self, on_error: str) -> None:
        if on_error not in ("raise", "skip"):
            raise ValueError(f"on_error: {on_error!r} is not known; choose from raise, skip")
        self.skip = on_error == "skip"
        self.reasons: list[str] = []

    def add(self, *reasons: str) -> None:
        """Each reason is a line; the first is the error."""
        if reasons and not self.skip:
            more = f" (and {len(reasons) - 1} more like it)" if len(reasons) > 1 else ""
            said = f"{reasons[0]}{more}"
            raise ValueError(said if said.endswith(ADVICE) else f"{said}; {ADVICE}")
        self.reasons += reasons
