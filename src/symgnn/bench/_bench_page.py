"""The page of a run of suites."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from symgnn.bench._bench_table import error_html, html_table
from symgnn.bench._speed_claims import summary
from symgnn.report import _markup as markup
from symgnn.report._page import Picture, document, duration, pictures_by
from symgnn.store import write_whole

TITLE = "How fast"
INTRODUCTION = (
    "Ratios of times that were measured by turns, in one process, so that whatever else the "
    "machine did slowed both sides. A ratio is the median over the rounds; a training step is "
    "forward, backward and Adam, in single precision."
)


def write_page(results: Mapping[str, Any], directory: Path) -> Path:
    """Write `report.html` and `figures/*.png` into the directory; give the page's path."""
    pictures = pictures_by("symgnn.bench._figures", results)
    parts = [f"<h1>{TITLE}</h1>", markup.paragraph(INTRODUCTION)]
    claims = [claim for suite in results["suites"] for claim in suite["claims"]]
    parts.append(markup.paragraph(summary(claims), "summary"))
    if pictures is None:
        parts.append(markup.paragraph("Install symgnn[plot] for the figures.", "note"))
    for suite in results["suites"]:
        parts += _suite(suite, pictures or [])
    text = document(TITLE, parts)
    for picture in pictures or []:
        write_whole(directory / "figures" / f"{picture.name}.png", picture.png)
    return write_whole(directory / "report.html", text.encode("utf-8"))


def _suite(suite: Mapping[str, Any], pictures: list[Picture]) -> list[str]:
    name = suite["name"]
    made = {
        "time": duration(suite["seconds"]),
        "threads": suite["threads"],
        "quick": "yes: too few rounds to mean anything" if suite["quick"] else None,
        **suite["environment"],
    }
    return [
        f"<h2>{escape(name)}: {escape(suite['title'])}</h2>",
        markup.paragraph(f"{summary(suite['claims'])} {suite['finding']}"),
        *(markup.paragraph(f"Not measured: {note}", "note") for note in suite["notes"]),
        *(
            markup.figure(picture.png, picture.heading, picture.caption)
            for picture in pictures
            if picture.name in (name, f"{name}-curve")
        ),
        *([error_html(suite)] if suite.get("runs") else []),
        html_table(suite),
        f"<details><summary>How it was made</summary>{markup.definitions(made)}</details>",
    ]
