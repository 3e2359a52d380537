"""The page of a cross-validation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console

from symgnn.report import _markup as markup
from symgnn.report import _outcome_cases as cases
from symgnn.report._page import document
from symgnn.report._run_page import Metrics, asked_for, print_metrics, reached, write_run_report
from symgnn.store import read_json, write_whole


def print_folds(console: Console, metrics: Metrics, record: Mapping[str, Any]) -> None:
    """Print the numbers over all folds, as :func:`symgnn.report._run_page.print_metrics` does."""
    console.print(f"mean±deviation over {record['folds']} folds:", highlight=False)
    print_metrics(console, metrics, record)


def write_folds_report(directory: str | os.PathLike[str]) -> Path:
    """Write `report.html` and the figure of a cross-validation; give the page's path.

    Each fold gets a page of its own, to which this one has links.
    """
    directory = Path(directory)
    record, metrics = read_json(directory / "folds.json"), read_json(directory / "metrics.json")
    if not isinstance(record, dict) or not isinstance(metrics, dict):
        raise ValueError(f"{directory}: has no cross-validation; use symgnn train with data.folds")
    for number in range(1, record["folds"] + 1):
        write_run_report(directory / f"fold-{number}")
    outcome = cases.read_outcome(directory)
    picture = cases.draw(outcome) if outcome else None
    if picture is not None:
        write_whole(directory / picture.name, picture.png)
    name = record["model"].partition("(")[0]
    title = f"{directory.resolve().name}: {name}, {record['folds']} folds"
    graphs = "all graphs, each by the run that has not seen it"
    seeds = len(record["seeds"])
    parts = [
        f"<h1>{escape(title)}</h1>",
        markup.paragraph(f"{asked_for(record['task'])}, by {record['model']}."),
        markup.paragraph(_division(record)),
        *reached(metrics, record["task"], record["headlines"], _over(record)),
        *_each(metrics, record),
        *(cases.parts(outcome, picture, seeds, graphs) if outcome else []),
        *_made(record, (directory / "config.yaml").read_text(encoding="utf-8")),
    ]
    return write_whole(directory / "report.html", document(title, parts).encode("utf-8"))


def _over(record: Mapping[str, Any]) -> str:
    seeds = len(record["seeds"])
    inner = f" (each the mean over {seeds} initialisations)" if seeds > 1 else ""
    return f", mean±deviation over {record['folds']} folds{inner}"


def _division(record: Mapping[str, Any]) -> str:
    """How the graphs were divided."""
    split = record["split"]
    ways = {
        "random": "at random",
        "group": f"by the groups of column {split['column']!r}, none of which is divided",
        "scaffold": "by scaffold, none of which is divided",
        "column": f"as column {split['column']!r} says",
    }
    return (
        f"{record['graphs']:,} graphs in {record['folds']} folds, {ways[split['by']]}. Each fold "
        f"is the test part of one run; {record['validation']:.0%} of the other graphs choose its "
        "best weights."
    )


def _each(metrics: Metrics, record: Mapping[str, Any]) -> list[str]:
    """The numbers of each fold on its test part."""
    test = metrics["test"]
    names = [name for name in test if not name.startswith("mse")]
    rows = []
    for k in range(record["folds"]):
        values = [test[name]["values"][k] for name in names]
        numbers = ["–" if value is None else f"{value:.4g}" for value in values]
        rows.append([f"fold {k + 1}", *numbers])
    links = ", ".join(
        f'<a href="fold-{k}/report.html">fold {k}</a>' for k in range(1, record["folds"] + 1)
    )
    return [
        "<h2>Each fold</h2>",
        markup.grid(["test", *names], rows),
        f'<p class="note">Pages of the folds: {links}. All predictions: '
        '<a href="predictions.csv">predictions.csv</a></p>',
    ]


def _made(record: Mapping[str, Any], config: str) -> list[str]:
    made = {
        "parameters": f"{record['parameters']:,}",
        "symmetry": record["symmetry"],
        "seeds": ", ".join(map(str, record["seeds"])),
        "code": record["code"],
        **record["environment"],
    }
    return [
        "<h2>How it was made</h2>",
        markup.definitions(made),
        f"<details><summary>Config</summary><pre>{escape(config)}</pre></details>",
    ]
