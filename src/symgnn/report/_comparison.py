"""The page and table of blocks compared on datasets: a line for each number, a column per block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from symgnn.report import _markup as markup
from symgnn.report._result_rows import Results, Row

#: How the name of a line of published numbers begins.
_THEIRS = "  "
_NONE = {"mean": None, "std": None, "paper_mean": None, "paper_std": None}
_STYLES = {True: "green", False: "yellow", "undecided": "", None: "dim"}
HOLDS = {
    True: "holds",
    False: "does not hold",
    "undecided": "not decided",
    None: "not checked",
}


def is_comparison(results: Results) -> bool:
    """Whether the results are of blocks on datasets, with the paper's claims."""
    return "claims" in results


def paper_of(results: Results) -> str:
    """Whose numbers stand beneath ours."""
    published = results.get("published")
    return published["where"] if published else "the paper"


def number(mean: float | None, deviation: float | None) -> str:
    """`0.977±0.002`: three digits, and the deviation to as many places; no number is a dash."""
    if mean is None:
        return "–"
    size = math.floor(math.log10(abs(mean))) if mean else 0
    places = min(max(2 - size, 0), 6)
    return f"{mean:.{places}f}" + (f"±{deviation:.{places}f}" if deviation else "")


def lines(results: Results) -> list[tuple[str, list[str]]]:
    """A name, and a text for each block; the paper's numbers beneath ours, where it has any."""
    found = []
    first = {column.partition(" ")[0] for column in results["columns"]}
    prefix = f"{first.pop()} " if len(first) == 1 else ""  # the dataset, which the title names
    peers = results.get("peers", ())
    for column in results["columns"]:
        cells = [row["cells"].get(column, _NONE) for row in results["rows"]]
        texts = [number(cell["mean"], cell["std"]) for cell in cells]
        texts += [
            f"{e:g}" if (e := peer["cells"].get(column)) is not None else "" for peer in peers
        ]
        found.append((column.removeprefix(prefix), texts))
        if any(cell["paper_mean"] is not None for cell in cells):
            theirs = [number(cell["paper_mean"], cell["paper_std"]) for cell in cells]
            found.append((_THEIRS + paper_of(results), theirs + ["" for _ in peers]))
    rows: Sequence[Row] = results["rows"]
    if all("parameters" in row for row in rows):
        counts = [f"{row['parameters']:,}" for row in rows]
        found.append(("parameters", counts + ["" for _ in peers]))
    return found


def heads(results: Results) -> list[str]:
    """The names of the columns of `lines`: the blocks, and published networks beside them."""
    return [each["block"] for each in results["rows"]] + [
        f"{peer['name']}*" for peer in results.get("peers", ())
    ]


@dataclass(frozen=True)
class ComparisonTable:
    """For the terminal: the numbers, and whether the claims hold.

    In a narrow window deviations stand beneath their means.
    """

    results: Results

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table(break_at="")
        if Measurement.get(console, options.update(width=1000), table).maximum > options.max_width:
            table = self._table(break_at="±")
        yield table
        for each in self.results["claims"]:
            holds = each["holds"]
            yield Text.assemble((HOLDS[holds], _STYLES[holds]), f": {_sentence(each)}")

    def _table(self, break_at: str) -> Table:
        table = Table(
            title=Text(self.results["title"]),
            caption=Text(note(self.results)),
            box=None,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        table.add_column("", no_wrap=True)
        for head in heads(self.results):
            table.add_column(head, justify="right", no_wrap=True)
        for name, texts in lines(self.results):
            dim = "dim" if name.startswith(_THEIRS) else ""
            if break_at:
                texts = [text.replace(break_at, f"\n{break_at}") for text in texts]
            table.add_row(Text(name, style=dim), *[Text(text, style=dim) for text in texts])
        return table


def note(results: Results) -> str:
    """How to read the numbers."""
    if "batch_size" in results:
        rounds = f"Median over {results['epochs']} rounds ± half the distance of the quartiles."
        return f"{rounds} Protocol: {results['protocol']}."
    graphs, runs, epochs = results["graphs"], len(results["seeds"]), results["epochs"]
    best = any("best_epochs" in row for row in results["rows"])
    when = "at the lowest validation error within" if best else "after"
    text = (
        f"Mean±deviation over {counted(runs, 'initialisation')}, {when} {counted(epochs, 'epoch')} "
        f"on {graphs['train']:,} graphs; tested on {graphs['test']:,}. "
        f"Protocol: {results['protocol']}."
    )
    for column, score in results.get("baselines", {}).items():
        text += f" {column} of the two nearest neighbours of each node: {score:.3f}."
    if published := results.get("published"):
        text += f" {published['note']}"
    units = [f"{name} in {unit}" for name, unit in results["units"].items() if unit]
    if units:
        text += f" MSE of standardised targets; MAE of {', '.join(units)}."
    for peer in results.get("peers", ()):
        text += f" {peer['name']}*: as published, {peer['where']}."
    return text


def counted(count: int, what: str) -> str:
    """`1 epoch`, `2 epochs`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def parts(results: Results) -> list[str]:
    """The page's parts before the figures."""
    names = "".join(f'<th class="number">{escape(head)}</th>' for head in heads(results))
    body = "\n".join(
        f"<tr>{_head(name)}"
        + "".join(f'<td class="number">{escape(text)}</td>' for text in texts)
        + "</tr>"
        for name, texts in lines(results)
    )
    found = [
        markup.paragraph(note(results)),
        '<div class="scroll"><table class="facts">'
        f"<thead><tr><th></th>{names}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>",
    ]
    whose = "is claimed" if results.get("published") else "the paper claims"
    return found + claims(results["claims"], whose)


def claims(judged: Sequence[dict[str, Any]], whose: str = "the paper claims") -> list[str]:
    """Claims, and whether they hold."""
    if not judged:
        return []
    said = [f"{HOLDS[each['holds']]}: {_sentence(each)}" for each in judged]
    return [f"<h2>What {whose}</h2>", markup.bullets(said)]


def _head(name: str) -> str:
    return f"<td>{escape(name)}</td>" if name.startswith(_THEIRS) else f"<th>{escape(name)}</th>"


def _sentence(claim: dict[str, Any]) -> str:
    return f"{claim['claim']} ({claim['found']})"
