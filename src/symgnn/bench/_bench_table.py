"""The claims of a suite as a table: for the terminal, for Markdown, and for a page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from symgnn.bench._speed_claims import bound_of, number, summary

#: A suite or a claim, as in results.json.
Plain = Mapping[str, Any]
VERDICTS = {True: "reached", False: "missed", None: ""}
HEADS = ("graphs", "what", "ratio", "quartiles", "bound", "")
_NUMBERS = ("ratio", "quartiles", "bound")
_STYLES = {True: "green", False: "yellow", None: "dim"}


def line(claim: Plain) -> list[str]:
    """The entries of its line, in the order of :data:`HEADS`."""
    ratio = claim["ratio"]
    spread = f"{number(ratio['low'])}–{number(ratio['high'])}"
    if ratio["low"] == ratio["high"]:
        spread = "–"
    verdict = VERDICTS[claim["reached"]]
    return [
        claim["shape"], claim["what"], number(ratio["median"]), spread, bound_of(claim), verdict
    ]  # fmt: skip


def rich_table(suite: Plain) -> Group:
    """For the terminal: the table, what was found, and what is missing."""
    table = Table(
        title=Text(f"{suite['name']}: {suite['title']}"),
        title_justify="left",
        box=None,
        show_edge=False,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for head in HEADS[1:]:
        table.add_column(
            head, justify="right" if head in _NUMBERS else "left", no_wrap=head != "what"
        )
    last = None
    for claim in suite["claims"]:
        shape, what, *numbers, verdict = line(claim)
        if shape != last:
            table.add_row(Text(shape, style="bold"))
        style = _STYLES[claim["reached"]]
        table.add_row(Text(f"  {what}"), *map(Text, numbers), Text(verdict, style=style))
        last = shape
    notes = [Text(f"not measured: {note}", style="yellow") for note in suite["notes"]]
    if suite.get("runs"):
        notes = [Text("\n".join("  ".join(row) for row in _padded(error_rows(suite)))), *notes]
    return Group(table, Text(f"{summary(suite['claims'])} {suite['finding']}"), *notes, Text(""))


def markdown_table(suite: Plain) -> str:
    """The table in Markdown; bounds that are missed are in bold."""
    lines = [list(HEADS), ["---:" if head in _NUMBERS else "---" for head in HEADS]]
    for claim in suite["claims"]:
        entries = line(claim)
        if claim["reached"] is False:
            entries[-1] = f"**{entries[-1]}**"
        lines.append(entries)
    return "\n".join(f"| {' | '.join(entries)} |" for entries in lines)


def error_rows(suite: Plain) -> list[list[str]]:
    """Of `learning`, the error of each network on each target beneath its heads; the smallest of a
    target has a star.
    """
    runs = suite["runs"]
    units = {target: next(iter(found.values()))["unit"] for target, found in runs.items()}
    heads = ["network", "parameters", "rate"]
    rows = [[*heads, *(f"{target} ({units[target]})" for target in runs), "steps"]]
    for name in suite["protocol"]["networks"]:
        found = {target: known[name] for target, known in runs.items() if name in known}
        if not found:
            continue
        first = next(iter(found.values()))
        errors = [_error(runs[target], name) for target in runs]
        steps = min(run["steps"] for run in found.values())
        entries = [f"{first['parameters']:,}", f"{first['rate']:g}", *errors, f"{steps:,}"]
        rows.append([name, *entries])
    return rows


def _error(runs: Plain, name: str) -> str:
    if name not in runs:
        return "–"
    error = runs[name]["error"]
    best = error == min(run["error"] for run in runs.values())
    return f"{number(error)}{' *' if best else ''}"


def _padded(rows: list[list[str]]) -> list[list[str]]:
    """Columns of one width, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [row[0].ljust(widths[0]), *(e.rjust(w) for e, w in zip(row[1:], widths[1:], strict=True))]
        for row in rows
    ]


def error_markdown(suite: Plain) -> str:
    """:func:`error_rows` in Markdown."""
    heads, *rows = error_rows(suite)
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(entries)} |" for entries in lines)


def error_html(suite: Plain) -> str:
    """:func:`error_rows` for a page."""
    heads, *rows = error_rows(suite)
    kinds = ["", *[' class="number"'] * (len(heads) - 1)]
    head = "".join(f"<th{k}>{escape(text)}</th>" for k, text in zip(kinds, heads, strict=True))
    lines = [
        "".join(f"<td{k}>{escape(text)}</td>" for k, text in zip(kinds, row, strict=True))
        for row in rows
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<div class="scroll"><table class="facts">\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        f"{body}\n</tbody>\n</table></div>"
    )


def html_table(suite: Plain) -> str:
    """The table of a page; a note of a claim is beneath its text."""
    heads = "".join(f"<th{_kind(head)}>{head}</th>" for head in HEADS)
    rows = []
    for claim in suite["claims"]:
        cells = "".join(
            f"<td{_kind(head)}>{escape(text)}{_note(claim) if head == 'what' else ''}</td>"
            for head, text in zip(HEADS, line(claim), strict=True)
        )
        rows.append(f"<tr>{cells}</tr>")
    return (
        f'<div class="scroll"><table class="facts">\n<thead><tr>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table></div>"
    )


def _kind(head: str) -> str:
    return ' class="number"' if head in _NUMBERS else ""


def _note(claim: Plain) -> str:
    return f"<br><small>{escape(claim['note'])}</small>" if claim["note"] else ""
