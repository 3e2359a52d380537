"""The report: one page in HTML with everything inside."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from symgnn.report import _comparison as comparison
from symgnn.report import _markup as markup
from symgnn.report import _readings
from symgnn.report._comparison import is_comparison
from symgnn.report._css import CSS
from symgnn.report._readings import is_readings
from symgnn.report._result_rows import Results, is_efficiency
from symgnn.report._verdict_marks import differences, mixed_up, summary
from symgnn.store import write_whole

if TYPE_CHECKING:
    from symgnn.report.figures._figure_list import Captioned

DPI = 120


class Picture(NamedTuple):
    """A drawn figure."""

    name: str
    heading: str
    caption: str
    png: bytes


def write_report(results: Results, directory: str | os.PathLike[str]) -> Path:
    """Write `report.html` and `figures/*.png` into the directory; return the page's path.

    Without matplotlib the page is written without figures. Everything is drawn before anything is
    written, and each file appears complete or not at all.
    """
    pictures = pictures_by("symgnn.report.figures", results)
    text = page(results, pictures)
    directory = Path(directory)
    for picture in pictures or []:
        write_whole(directory / "figures" / f"{picture.name}.png", picture.png)
    return write_whole(directory / "report.html", text.encode("utf-8"))


def page(results: Results, pictures: list[Picture] | None) -> str:
    """The page's text; `pictures` is None if matplotlib is missing."""
    title = str(results.get("title") or results["name"])
    if is_comparison(results):
        parts = [f"<h1>{escape(title)}</h1>", *comparison.parts(results)]
        return document(title, [*parts, *_figures(results, pictures), *_how(results)])
    if is_readings(results):
        parts = [f"<h1>{escape(title)}</h1>", *_readings.parts(results), *_how(results)]
        return document(title, parts)
    parts = [f"<h1>{escape(title)}</h1>", markup.paragraph(_reading_aid(results))]
    if not is_efficiency(results):
        parts.append(markup.paragraph(summary(results), "summary"))
    if pictures is None:
        parts.append(markup.paragraph("Install symgnn[plot] for the figures.", "note"))
    tables = ["<h2>Table</h2>", markup.table(results), markup.legend(results)]
    tables.append(markup.facts(results))
    if is_efficiency(results):
        parts += [*_figures(results, pictures), *comparison.claims(results.get("judged", []))]
        parts += tables
    else:
        parts += [*tables, *_differences(results), *_figures(results, pictures)]
    return document(title, [*parts, *_how(results)])


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page of parts in HTML; those that are empty are left out."""
    body = "\n".join(part for part in parts if part)
    return markup.document(title, CSS, body)


def _reading_aid(results: Results) -> str:
    """How to read the page."""
    runs = f"{len(results['seeds'])} initialisations"
    if is_efficiency(results):
        return (
            "Networks of the block without built-in symmetry learn to name the regular polytopes "
            f"in {results['dimension']} dimensions from more and more samples per class, and are "
            "tested on randomly transformed copies. Beside them: blocks that have the symmetry "
            "built in, and see one sample per class. Numbers are accuracies, mean±deviation over "
            f"{runs}."
        )
    classes = len(results["classes"])
    return (
        f"Each network sees one graph for each of the {classes} regular polytopes in "
        f"{results['dimension']} dimensions, and is then asked to name randomly transformed copies "
        f"of them. Numbers are accuracies, mean±deviation over {runs}; guessing gives "
        f"{1 / classes:.2f}. A block that is invariant under a transformation has the same "
        "accuracy on the copies as in training; one that is not may lose it. In the table, the "
        "columns are the transformations, from the training graphs to the largest, and the small "
        "number beneath is the paper’s."
    )


def _differences(results: Results) -> list[str]:
    sentences = differences(results)
    heading = "<h2>Cells that differ</h2>"
    return [heading, markup.bullets(sentences) if sentences else markup.paragraph("None.")]


def _figures(results: Results, pictures: list[Picture] | None) -> list[str]:
    parts = []
    for picture in pictures or []:
        parts.append(f"<h2>{escape(picture.heading)}</h2>")
        parts.append(markup.figure(picture.png, picture.heading, picture.caption))
        mixed = mixed_up(results) if picture.name == "confusion" else []
        if mixed:
            parts += [markup.paragraph("Mixed up even on the training graphs:")]
            parts += [markup.bullets(mixed)]
    return parts


def _how(results: Results) -> list[str]:
    return ["<h2>How it was made</h2>", markup.definitions(_made(results))]


_SETTINGS = ("protocol", "source", "threads", "batch_size", "settings", "data")


def _made(results: Results) -> dict[str, object]:
    """Seeds, epochs, time and environment."""
    seeds = list(results["seeds"])
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return {
        "experiment": results["name"],
        "seeds": f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds)),
        "epochs": results.get("epochs"),
        "time": duration(results["seconds"]) if results.get("seconds") is not None else None,
        **{name: results.get(name) for name in _SETTINGS},
        **results.get("environment", {}),
        "rows of other commits": _other_commits(results),
    }


def _other_commits(results: Results) -> str | None:
    """The rows that were run with other code than the last ones; None where there are none."""
    now = results.get("environment", {}).get("commit")
    found = [row for row in results.get("rows", ()) if row.get("commit", now) != now]
    return ", ".join(f"{row['block']} ({row['commit']})" for row in found) or None


def duration(seconds: float) -> str:
    """`12.3 s`, `5 min` or `2 h 5 min`."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def pictures_by(module: str, subject: object) -> list[Picture] | None:
    """The figures of `all_figures` of a module, as PNG; None without matplotlib."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return None
    return [_drawn(entry) for entry in importlib.import_module(module).all_figures(subject)]


def _drawn(entry: Captioned) -> Picture:
    """A figure as PNG."""
    buffer = io.BytesIO()
    entry.figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return Picture(entry.name, entry.heading, entry.caption, buffer.getvalue())
