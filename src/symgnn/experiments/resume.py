"""Work in parts, each saved as it completes; a run that was killed goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from symgnn.experiments.store import read_json, write_json

#: Signature: (on_epoch) -> the result of a part; on_epoch is called after each of its epochs.
Part: TypeAlias = Callable[[Callable[..., Any]], dict[str, Any]]


def run_parts(
    parts: Mapping[str, Part],
    directory: Path,
    settings: Mapping[str, Any],
    epochs: int,
    console: Console,
) -> list[dict[str, Any]]:
    """The results of all parts, in order, with a bar that shows the time left.

    A part that is in `directory`, run with the same settings, is not run again.
    """
    results = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=len(parts) * epochs)
        for number, (name, run) in enumerate(parts.items()):
            bar.update(task, description=f"{name} ({number + 1}/{len(parts)})")
            file = directory / f"{name.replace(' ', '-')}.json"
            saved = read_json(file)
            if not isinstance(saved, dict) or saved.get("settings") != settings:
                saved = {"settings": dict(settings), "result": run(lambda *_: bar.advance(task))}
                write_json(file, saved)
            bar.update(task, completed=(number + 1) * epochs)
            results.append(saved["result"])
    return results
