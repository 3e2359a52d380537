"""The results as a table, for the terminal and for Markdown."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from symgnn.report._comparison import ComparisonTable, is_comparison
from symgnn.report._readings import is_readings, readings_table
from symgnn.report._result_rows import Cell, Results, is_efficiency, ours, papers, rows_of, setting
from symgnn.report._result_rows import short_head as head
from symgnn.report._verdict_marks import standing, summary, verdict_of


def rich_table(results: Results) -> RenderableType:
    """The measured numbers with the paper's dim beneath; accuracies are coloured by verdict."""
    if is_comparison(results):
        return ComparisonTable(results)
    if is_readings(results):
        return readings_table(results)
    table = Table(
        title=Text(results.get("title", results["name"])),
        caption=Text(_caption(results)),
        box=None,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("block", no_wrap=True)
    for column in results["columns"]:
        table.add_column(Text(head(column)), justify="right", no_wrap=True)
    rows = rows_of(results)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        # in as few characters as can be read: the table of the paper fits in 80 columns
        short = setting(row).replace("neighbour-sum", "n.-sum")
        name = Text.assemble(row["block"], "\n", (short, "dim"))
        if is_efficiency(results):
            name = Text.assemble(row["block"], " ", (setting(row), "dim"))
        cells = [_rich_cell(row["cells"].get(column)) for column in results["columns"]]
        table.add_row(
            name, *cells, end_section=after is not None and after["block"] != row["block"]
        )
    return table


def markdown_table(results: Results) -> str:
    """The measured accuracies with the paper's in parentheses, as a table in Markdown."""
    efficiency = is_efficiency(results)
    heads = ["block", "aggregation", "samples" if efficiency else "coordinate map"]
    lines = [[*heads, *map(head, results["columns"])], ["---"] * 3]
    lines[1] += ["---:"] * len(results["columns"])
    verdicts = set()
    for row in rows_of(results):
        third = row["samples"] if efficiency else row.get("coordinate_map") or ""
        line = [row["block"], row["aggregation"], str(third)]
        for column in results["columns"]:
            cell = row["cells"].get(column)
            line.append(_markdown_cell(cell))
            verdicts.add(standing(cell))
        lines.append(line)
    text = "\n".join(
        "| " + " | ".join(entry.replace("|", "\\|") for entry in line) + " |" for line in lines
    )
    notes = []
    if any("(" in entry for line in lines[2:] for entry in line[3:]):
        notes.append("In parentheses: the paper.")
    if "differs" in verdicts:
        notes.append("*Italic*: differs from the paper.")
    if "violated" in verdicts:
        notes.append("**Bold**: fixed by theory, and not met.")
    return f"{text}\n" + (f"\n{' '.join(notes)}\n" if notes else "")


def _caption(results: Results) -> str:
    """A summary of the results, and how to read a cell."""
    if is_efficiency(results):
        return f"mean±deviation over {len(results['seeds'])} initialisations"
    return f"{summary(results)} Beneath each number: the paper’s."


def _rich_cell(cell: Cell | None) -> Text:
    if cell is None:
        return Text("–", style="dim")
    text = Text(_short(ours(cell)), style=verdict_of(cell).style)
    paper = papers(cell)
    return text if paper is None else Text.assemble(text, "\n", (_short(paper), "dim"))


def _short(number: str) -> str:
    """`0.96±.04`."""
    return number.replace("±0.", "±.")


def _markdown_cell(cell: Cell | None) -> str:
    mark = {"violated": "**", "differs": "*"}.get(standing(cell), "")
    paper = papers(cell)
    return f"{mark}{ours(cell)}{mark}" + (f" ({paper})" if paper else "")
