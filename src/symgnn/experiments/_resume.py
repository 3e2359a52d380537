"""Work in parts, each saved as it completes; a run that was killed goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from symgnn.experiments._engines import Part, RowEngine
from symgnn.progress import ProgressLines
from symgnn.store import code, environment, read_json, write_json
from symgnn.train._bar import bar


def run_parts(
    parts: Mapping[str, Part],
    directory: Path,
    settings: Mapping[str, Any],
    epochs: int,
    console: Console | None,
    engine: RowEngine,
    own: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """The results of all parts, in order, with a bar that shows the time left.

    A part that is in `directory`, run with the same settings and code, is not run again.

    Args:
        parts: Functions, by name.
        directory: Where their results are saved.
        settings: What all of them depend on.
        epochs: The length of each, for the bar.
        console: Where the bar is shown.
        engine: Where parts are run.
        own: Settings of single parts, by name.
    """
    console = console or Console()
    stamps = {
        name: json.loads(json.dumps({**settings, **(own or {}).get(name, {}), **code()}))
        for name in parts  # as they come back from a file
    }
    files = {name: directory / f"{name.replace(' ', '-')}.json" for name in parts}
    results = {}
    for name, file in files.items():
        saved = read_json(file)
        if isinstance(saved, dict) and saved.get("settings") == stamps[name]:
            results[name] = saved["result"]
    missing = {name: part for name, part in parts.items() if name not in results}
    total = len(missing) * epochs
    in_log = ProgressLines("epochs", console.print)
    with bar(console) as shown:
        task = shown.add_task("", total=total)

        def show(done: int) -> None:
            text = f"{len(results)} of {len(parts)} done"
            shown.update(task, completed=done, description=text)
            if not console.is_terminal:
                in_log(done, total)

        for name, result in engine.run(missing, show) if missing else ():
            results[name] = {**result, "commit": stamps[name]["commit"]}
            write_json(files[name], {"settings": stamps[name], "result": results[name]})
            if not console.is_terminal:  # where there is no bar, such as in a log
                console.print(f"{name}: done, {len(results)} of {len(parts)}")
    return [results[name] for name in parts]


def write_results(
    directory: Path,
    done: Sequence[Mapping[str, Any]],
    *,
    name: str,
    title: str,
    seeds: int,
    epochs: int,
    **found: Any,
) -> dict[str, Any]:
    """Write results.json of the parts that are done, with what was found; give it."""
    results = {
        "name": name,
        "title": title,
        **found,
        "seeds": list(range(seeds)),
        "epochs": epochs,
        "seconds": sum(part["seconds"] for part in done),
        "environment": environment(),
    }
    write_json(directory / "results.json", results)
    return results
