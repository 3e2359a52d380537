"""The table and page of the possible readings of the paper, by their distance from it."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from symgnn.report import _markup as markup
from symgnn.report._result_rows import Results

#: The choices, and their names in the head of the table.
CHOICES = {"offset": "q", "matrix": "A", "scaling": "alpha", "constant": "constant"}
#: How many readings the terminal shows.
_SHOWN = 10


def is_readings(results: Results) -> bool:
    """Whether the results are a comparison of readings."""
    return "readings" in results


def readings_table(results: Results) -> Table:
    """The best readings, for the terminal."""
    heads, lines = _lines(results)
    table = Table(title=Text(results["title"]), caption=Text(_note(results)), box=None)
    for k, head in enumerate(heads):
        table.add_column(head, justify="left" if k < len(CHOICES) else "right")
    for line in lines[:_SHOWN]:
        table.add_row(*line)
    return table


def markdown_readings(results: Results, shown: int = _SHOWN) -> str:
    """The best readings, and each choice alone, as tables in Markdown."""
    heads, lines = _lines(results)
    choice = ["choice", "distance"]
    tables = [(heads, lines[:shown]), (choice, alone(results))]
    return "\n".join(
        "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body])
        + "\n"
        for head, body in tables
    )


def alone(results: Results) -> list[list[str]]:
    """The distance for each choice, the others being as in the best reading."""
    best = results["readings"][0]
    found = []
    for name, label in CHOICES.items():
        others = [key for key in CHOICES if key != name]
        same = [r for r in results["readings"] if all(r[key] == best[key] for key in others)]
        found += [[f"{label}: {_word(r[name])}", f"{r['distance']:.2f}"] for r in same]
    return found


def parts(results: Results) -> list[str]:
    """The page's parts."""
    heads, lines = _lines(results)
    return [
        markup.paragraph(_note(results)),
        "<h2>Readings</h2>",
        markup.grid(heads, lines, texts=len(CHOICES)),
        "<h2>Each choice alone</h2>",
        markup.grid(["choice", "distance"], alone(results)),
    ]


def _lines(results: Results) -> tuple[list[str], list[list[str]]]:
    kinds = ("fixed", "trivial", "open")
    heads = [*CHOICES.values(), "distance", "agree", *kinds]
    lines = [
        [
            *[_word(each[name]) for name in CHOICES],
            f"{each['distance']:.2f}",
            f"{each['agree']}/{each['cells']}",
            *[f"{each['agree_by_kind'][k]}/{each['cells_by_kind'][k]}" for k in kinds],
        ]
        for each in results["readings"]
    ]
    return heads, lines


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


def _note(results: Results) -> str:
    return (
        "Distance: the sum over the paper's cells of the absolute difference between its accuracy "
        "and the one here. Agree: within three standard errors of the difference, or 0.05. Fixed: "
        "cells that theory fixes; trivial: where the paper has exactly 1 or chance; open: others."
    )
