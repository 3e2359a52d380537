"""The parts of the page in HTML. All text is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from symgnn.report._palette import heat_colour, ink
from symgnn.report._result_rows import (
    Cell,
    Results,
    Row,
    is_efficiency,
    long_head,
    papers,
    rows_of,
    setting,
    short_head,
)
from symgnn.report._verdict_marks import VERDICTS, standing, verdict_of


def document(title: str, css: str, body: str) -> str:
    """A page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph, perhaps of a class."""
    return f'<p class="{escape(kind)}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def bullets(items: Iterable[str]) -> str:
    """A list."""
    return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in items) + "\n</ul>"


def definitions(entries: Mapping[str, Any]) -> str:
    """A list of names and values."""
    lines = (
        f"<div><dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd></div>"
        for name, value in entries.items()
        if value is not None
    )
    return "<dl>\n" + "\n".join(lines) + "\n</dl>"


def figure(png: bytes, heading: str, caption: str) -> str:
    """A figure, with the picture inside the page."""
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<figure><img alt="{escape(heading)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A plain table; the first `texts` columns are text, the others numbers."""

    def line(cells: Sequence[str], name: str) -> str:
        kinds = [name if k >= texts or name == "th" else "th" for k in range(len(cells))]
        classes = ["" if k < texts else ' class="number"' for k in range(len(cells))]
        return "".join(
            f"<{kind}{style}>{escape(cell)}</{kind}>"
            for kind, style, cell in zip(kinds, classes, cells, strict=True)
        )

    body = "\n".join(f"<tr>{line(cells, 'td')}</tr>" for cells in rows)
    return (
        f'<div class="scroll"><table class="facts"><thead><tr>{line(heads, "th")}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def table(results: Results) -> str:
    """The results; background of a cell by its accuracy, beneath it the paper's."""
    heads = "".join(
        f'<th scope="col" title="{escape(column)}">{escape(short_head(column))}</th>'
        for column in results["columns"]
    )
    groups: dict[str, list[str]] = {}
    for row in rows_of(results):
        cells = "".join(_cell(row, column) for column in results["columns"])
        groups.setdefault(row["block"], []).append(f"<tr>{_row_head(row)}{cells}</tr>")
    body = "\n".join("<tbody>\n" + "\n".join(lines) + "\n</tbody>" for lines in groups.values())
    return (
        '<div class="scroll"><table>\n'
        f'<thead><tr><th scope="col">block</th>{heads}</tr></thead>\n{body}\n</table></div>'
    )


def legend(results: Results) -> str:
    """The legend of the signs that occur in cells."""
    if is_efficiency(results):
        return ""
    found = {
        cell.get("verdict", "new") for row in rows_of(results) for cell in row["cells"].values()
    }
    signs = (
        f'<span><b class="sign {escape(name)}">{verdict.sign}</b> {escape(verdict.meaning)}</span>'
        for name, verdict in VERDICTS.items()
        if name in found
    )
    return f'<p class="legend">{" ".join(signs)}</p>'


def facts(results: Results) -> str:
    """The symmetry, size and time of each row, folded away."""
    if is_efficiency(results):
        return ""
    lines = []
    for row in rows_of(results):
        size, seconds = row.get("parameters"), row.get("seconds")
        lines.append(
            f"<tr>{_row_head(row)}<td>{escape(str(row.get('symmetry') or '–'))}</td>"
            f'<td class="number">{"–" if size is None else f"{size:,}"}</td>'
            f'<td class="number">{"–" if seconds is None else f"{seconds:.1f} s"}</td></tr>'
        )
    return (
        "<details><summary>Symmetry, size and training time of each row</summary>"
        '<table class="facts">\n<thead><tr><th>block</th><th>symmetry</th>'
        '<th class="number">parameters</th><th class="number">time</th></tr></thead>\n'
        "<tbody>\n" + "\n".join(lines) + "\n</tbody>\n</table></details>"
    )


def _row_head(row: Row) -> str:
    hint = f' title="symmetry: {escape(row["symmetry"])}"' if row.get("symmetry") else ""
    return (
        f'<th scope="row"{hint}>{escape(row["block"])} <small>{escape(setting(row))}</small></th>'
    )


def _cell(row: Row, column: str) -> str:
    cell: Cell | None = row["cells"].get(column)
    if cell is None:
        return '<td class="none">–</td>'
    mean, std, verdict = cell["mean"], cell.get("std"), verdict_of(cell)
    spread = f"<small>±{std:.2f}</small>" if std is not None and f"{std:.2f}" != "0.00" else ""
    kind = escape(cell.get("verdict", "new"))
    hint = f"{long_head(column)}: {verdict.meaning}"
    sign, beneath = "", ""
    if "samples" in row:
        hint = long_head(column)
    else:
        sign = f'<b class="sign {kind}" aria-label="{escape(verdict.meaning)}">{verdict.sign}</b>'
        paper = papers(cell)
        beneath = f'<span class="paper">{escape(paper)}</span>' if paper else ""
    return (
        f'<td class="{standing(cell)}" title="{escape(hint)}" '
        f'style="background:{heat_colour(mean)};color:{ink(mean)}">'
        f"{mean:.2f}{spread}{sign}{beneath}</td>"
    )
