"""The page of a training run."""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from symgnn.report import _markup as markup
from symgnn.report._outcome_cases import draw, read_outcome
from symgnn.report._outcome_cases import parts as cases
from symgnn.report._page import DPI, document
from symgnn.report._record_lines import missing_line, not_beaten
from symgnn.report._run_log import read_log
from symgnn.store import read_json, write_whole

#: Numbers of splits: `{split: {name: {"mean", "deviation", "values", "baseline", ...}}}`.
Metrics = Mapping[str, Mapping[str, Mapping[str, Any]]]
BASELINE, BY = "baseline", "baseline_by"


def metrics_table(metrics: Metrics, task: Mapping[str, Any]) -> Table:
    """The numbers of each split in the units of a task, mean±deviation over the seeds, and those of
    the trivial baseline on the last split.

    Squared errors are left out where their roots are there; `metrics.json` has every number.
    """
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    heads, lines = metrics_lines(metrics, task)
    numbers = [cell for split in metrics.values() for cell in split.values()]
    if numbers and all(cell["deviation"] is None for cell in numbers):
        heads[0] = "one initialisation"
    last = len(heads) - 1
    shown = [k for k, head in enumerate(heads) if head != BASELINE or k == last]
    for k in shown:
        justify: Any = "right" if k else "left"
        style = "dim" if heads[k] == BASELINE else None
        table.add_column(heads[k], justify=justify, style=style, overflow="fold")
    roots = any(name.startswith("rmse") for name, *_ in lines)
    for line in lines:
        if not (roots and line[0].startswith("mse")):
            table.add_row(*(Text(line[k]) for k in shown))
    return table


def print_metrics(console: Console, metrics: Metrics, record: Mapping[str, Any]) -> None:
    """Print the table, and a line if the network does not beat the baseline.

    Args:
        console: where to.
        metrics: of the splits that were measured; test is judged if it is among them.
        record: `run.json` of the run.
    """
    console.print(metrics_table(metrics, record["task"]))
    judged = ["test"] if "test" in metrics else list(metrics)
    for split in judged:
        line = not_beaten(metrics, list(record.get("headlines", [])), split)
        if line:
            text = Text(f"The network {line}", style="bold yellow")
            console.print(text, soft_wrap=True, highlight=False)


def write_run_report(directory: str | os.PathLike[str]) -> Path:
    """Write `report.html` and the figures of a run that has been measured; give the page's path.

    Without matplotlib the page is written without figures.
    """
    directory = Path(directory)
    record, metrics = read_json(directory / "run.json"), read_json(directory / "metrics.json")
    if not isinstance(record, dict) or not isinstance(metrics, dict):
        raise ValueError(f"{directory}: has no run that was measured; use symgnn train first")
    log = [row for path in sorted(directory.glob("seed*/log.csv")) for row in read_log(path)]
    curves = _curves(log, metrics)
    if curves is not None:
        write_whole(directory / "curves.png", curves)
    outcome = read_outcome(directory)
    picture = draw(outcome) if outcome else None
    if picture is not None:
        write_whole(directory / picture.name, picture.png)
    config = (directory / "config.yaml").read_text(encoding="utf-8")
    title = f"{directory.resolve().name}: {record['model'].partition('(')[0]}"
    seeds = len(record["seeds"])
    cases_of = cases(outcome, picture, seeds, "the test graphs") if outcome else []
    text = document(title, _parts(title, record, metrics, config, curves, cases_of))
    return write_whole(directory / "report.html", text.encode("utf-8"))


def _parts(
    title: str,
    record: dict[str, Any],
    metrics: Metrics,
    config: str,
    curves: bytes | None,
    cases_of: Sequence[str],
) -> list[str]:
    task, seeds = record["task"], record["seeds"]
    over = (
        f", mean±deviation over {len(seeds)} initialisations"
        if len(seeds) > 1
        else ", with one initialisation, which has no deviation"
    )
    parts = [
        f"<h1>{escape(title)}</h1>",
        markup.paragraph(f"{asked_for(task)}, by {record['model']}."),
        *reached(metrics, task, record.get("headlines", []), over),
        *cases_of,
    ]
    if curves is None:
        parts.append(markup.paragraph("Install symgnn[plot] for the curves.", "note"))
    else:
        caption = (
            "Mean over the initialisations; the band reaches from the least to the largest."
            if len(seeds) > 1
            else "Numbers after each validation."
        )
        caption += " Dashed: the baseline on the validation graphs."
        parts += ["<h2>Training</h2>", markup.figure(curves, "Training", caption)]
    made = {
        "graphs": ", ".join(f"{count:,} {name}" for name, count in record["counts"].items()),
        "labels": missing_line(record["labels"]) if record.get("labels") else None,
        "parameters": f"{record['parameters']:,}",
        "symmetry": record["symmetry"],
        "seeds": ", ".join(map(str, seeds)),
        "code": record["code"],
        **record["environment"],
    }
    parts += ["<h2>How it was made</h2>", markup.definitions(made)]
    parts.append(f"<details><summary>Config</summary><pre>{escape(config)}</pre></details>")
    return parts


def asked_for(task: Mapping[str, Any]) -> str:
    """The task in a few words."""
    vectors = task.get("vectors")
    named = ", ".join(vectors or task["targets"])
    asked = f"{task['kind'].capitalize()} of {named} for each {task['level']}"
    asked = asked.replace("for each coordinates", "as coordinates")
    return asked.replace("-vectors", ", as vectors") if vectors else asked


def reached(
    metrics: Metrics, task: Mapping[str, Any], headlines: Sequence[str], over: str
) -> list[str]:
    """The numbers beside the baseline, and a line where that is not beaten."""
    line = not_beaten(metrics, list(headlines), "test")
    by = sorted({c["baseline_by"] for cells in metrics.values() for c in cells.values() if BY in c})
    explained = (
        f" The baseline knows nothing of a graph but the training labels ({'; '.join(by)})."
        if by
        else ""
    )
    return [
        "<h2>What was reached</h2>",
        markup.paragraph(f"The network {line}.", "summary") if line else "",
        markup.paragraph(
            f"Measured with the weights of the best validation, in units of the targets{over}."
            + explained
        ),
        markup.grid(*metrics_lines(metrics, task)),
    ]


def metrics_lines(metrics: Metrics, task: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The heads of the columns, and for each number its name with its unit and a cell for each
    split, with the baseline beside it.
    """
    heads = [""]
    for split, cells in metrics.items():
        heads += [split, BASELINE] if any(BY in cell for cell in cells.values()) else [split]
    lines = []
    for name in next(iter(metrics.values())):
        line = [name + _unit(name, task)]
        for cells in metrics.values():
            line.append(_number(cells[name]))
            if any(BY in cell for cell in cells.values()):
                line.append(_number({"mean": cells[name].get(BASELINE), "deviation": None}))
        lines.append(line)
    return heads, lines


def _unit(name: str, task: Mapping[str, Any]) -> str:
    """` [eV]`, or nothing."""
    kind, _, target = name.partition(" ")
    names = task.get("vectors") or task["targets"]
    units = dict(zip(names, task["units"][:: len(task["targets"]) // len(names)], strict=True))
    if task.get("level") == "potential":  # whose errors are in thousandths
        first = {"forces": "force_x", "stress": "stress_xx"}
        units = {target: f"m{units[first.get(target, 'energy')]}"}
    unit = units.get(target) or ("" if target else next(iter(units.values())))
    if not unit or kind not in ("mae", "mse", "rmse", "vector_error"):
        return ""
    return f" [({unit})²]" if kind == "mse" else f" [{unit}]"


def _number(cell: Mapping[str, Any]) -> str:
    mean, deviation = cell["mean"], cell["deviation"]
    if mean is None or mean != mean:  # not defined, such as R2 of one graph
        return "–"
    return f"{mean:.4g}" if deviation is None else f"{mean:.4g}±{deviation:.2g}"


def _curves(log: Sequence[Mapping[str, float]], metrics: Metrics) -> bytes | None:
    """The curves as PNG; None if matplotlib is missing, or there are none."""
    if not log or importlib.util.find_spec("matplotlib") is None:
        return None
    from symgnn.report.figures._run_curves import run_curves

    known = {n: cell.get(BASELINE) for n, cell in metrics.get("validation", {}).items()}
    buffer = io.BytesIO()
    drawn = run_curves(log, {name: value for name, value in known.items() if value is not None})
    drawn.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return buffer.getvalue()
