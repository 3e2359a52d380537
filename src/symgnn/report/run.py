"""The page of a training run."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from symgnn.report import markup
from symgnn.report.page import DPI, document
from symgnn.store import read_json, write_whole

#: Numbers of splits: `{split: {name: {"mean", "deviation", "values"}}}`.
Metrics = Mapping[str, Mapping[str, Mapping[str, Any]]]


def metrics_table(metrics: Metrics, task: Mapping[str, Any]) -> Table:
    """The numbers of each split in the units of a task, mean±deviation over the seeds."""
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    numbers = [cell for split in metrics.values() for cell in split.values()]
    one = bool(numbers) and all(cell["deviation"] is None for cell in numbers)
    table.add_column("one initialisation" if one else "")
    for split in metrics:
        table.add_column(split, justify="right")
    for name, cells in _lines(metrics, task):
        table.add_row(Text(name), *cells)
    return table


def write_run_report(directory: str | os.PathLike[str]) -> Path:
    """Write `report.html` and `curves.png` of a run that has been measured; give the page's path.

    Without matplotlib the page is written without the curves.
    """
    directory = Path(directory)
    record, metrics = read_json(directory / "run.json"), read_json(directory / "metrics.json")
    if not isinstance(record, dict) or not isinstance(metrics, dict):
        raise ValueError(f"{directory}: has no run that was measured; use symgnn train first")
    log = [row for path in sorted(directory.glob("seed*/log.csv")) for row in _log(path)]
    picture = _curves(log)
    if picture is not None:
        write_whole(directory / "curves.png", picture)
    config = (directory / "config.yaml").read_text(encoding="utf-8")
    title = f"{directory.resolve().name}: {record['model'].partition('(')[0]}"
    text = document(title, _parts(title, record, metrics, config, picture))
    return write_whole(directory / "report.html", text.encode("utf-8"))


def _parts(
    title: str, record: dict[str, Any], metrics: Metrics, config: str, picture: bytes | None
) -> list[str]:
    task = record["task"]
    vectors = task.get("vectors")
    named = ", ".join(vectors or task["targets"])
    asked = f"{task['kind'].capitalize()} of {named} for each {task['level']}"
    asked = asked.replace("for each coordinates", "as coordinates")
    asked = asked.replace("-vectors", ", as vectors") if vectors else asked
    seeds = record["seeds"]
    over = (
        f", mean±deviation over {len(seeds)} initialisations"
        if len(seeds) > 1
        else ", with one initialisation, which has no deviation"
    )
    parts = [
        f"<h1>{escape(title)}</h1>",
        markup.paragraph(f"{asked}, by {record['model']}."),
        "<h2>What was reached</h2>",
        markup.paragraph(
            f"Measured with the weights of the best validation, in units of the targets{over}."
        ),
        _table(metrics, task),
    ]
    if picture is None:
        parts.append(markup.paragraph("Install symgnn[plot] for the curves.", "note"))
    else:
        caption = (
            "Mean over the initialisations; the band reaches from the least to the largest."
            if len(seeds) > 1
            else "Numbers after each validation."
        )
        parts += ["<h2>Training</h2>", markup.figure(picture, "Training", caption)]
    made = {
        "graphs": ", ".join(f"{count:,} {name}" for name, count in record["counts"].items()),
        "parameters": f"{record['parameters']:,}",
        "symmetry": record["symmetry"],
        "seeds": ", ".join(map(str, seeds)),
        "code": record["code"],
        **record["environment"],
    }
    parts += ["<h2>How it was made</h2>", markup.definitions(made)]
    parts.append(f"<details><summary>Config</summary><pre>{escape(config)}</pre></details>")
    return parts


def _lines(metrics: Metrics, task: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """A name with its unit, and a cell for each split."""
    names = list(next(iter(metrics.values())))
    return [
        (name + _unit(name, task), [_number(split[name]) for split in metrics.values()])
        for name in names
    ]


def _unit(name: str, task: Mapping[str, Any]) -> str:
    """` [eV]`, or nothing."""
    kind, _, target = name.partition(" ")
    names = task.get("vectors") or task["targets"]
    units = dict(zip(names, task["units"][:: len(task["targets"]) // len(names)], strict=True))
    unit = units.get(target) or ("" if target else next(iter(units.values())))
    if not unit or kind not in ("mae", "mse", "vector_error"):
        return ""
    return f" [({unit})²]" if kind == "mse" else f" [{unit}]"


def _number(cell: Mapping[str, Any]) -> str:
    mean, deviation = cell["mean"], cell["deviation"]
    if mean is None:
        return "–"
    return f"{mean:.4g}" if deviation is None else f"{mean:.4g}±{deviation:.2g}"


def _table(metrics: Metrics, task: Mapping[str, Any]) -> str:
    heads = "".join(f'<th class="number">{escape(split)}</th>' for split in metrics)
    body = "\n".join(
        f"<tr><th>{escape(name)}</th>"
        + "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
        + "</tr>"
        for name, cells in _lines(metrics, task)
    )
    return (
        f'<table class="facts"><thead><tr><th></th>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table>"
    )


def _log(path: Path) -> Sequence[Mapping[str, float]]:
    from symgnn.train.keeper import read_log

    return read_log(path)


def _curves(log: Sequence[Mapping[str, float]]) -> bytes | None:
    """The curves as PNG; None if matplotlib is missing, or there are none."""
    if not log or importlib.util.find_spec("matplotlib") is None:
        return None
    from symgnn.report.figures.run import run_curves

    buffer = io.BytesIO()
    run_curves(log).savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return buffer.getvalue()
