"""The tables for the terminal and for Markdown."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.text import Text

from report.sample import cell, classification, efficiency, row
from symgnn.report import markdown_table, rich_table
from symgnn.report._result_rows import number, short_head


def rich_cells(results: dict, column: int) -> list[Text]:
    return list(rich_table(results).columns[column].cells)


def printed(results: dict, width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(rich_table(results))
    return capture.get()


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (0.96, 0.04, "0.96±0.04"),
        (1.0, 0.0, "1.00"),
        (1.0, None, "1.00"),
        (0.5, 0.004, "0.50"),
        (None, None, "–"),
    ],
)
def test_number(mean: float | None, std: float | None, text: str) -> None:
    assert number(mean, std) == text


def test_short_heads() -> None:
    names = ["train", "orthogonal", "orthogonal+dilation", "non-orthogonal mu=0.5"]
    names += ["non-orthogonal mu=3.0", "special-conformal", "other"]
    expected = ["train", "orth.", "+dil.", "μ=0.5", "μ=3", "conf.", "other"]
    assert [short_head(name) for name in names] == expected


def test_rich_shows_ours_above_the_papers() -> None:
    cells = rich_cells(classification(), 3)
    assert [text.plain for text in cells] == [
        "0.93±.02\n0.96±.04",
        "1.00\n1.00",
        "0.20\n0.20",
        "0.31±.03\n0.75±.05",
        "0.50\n0.60",
    ]
    assert rich_cells(classification(), 4)[0].plain == "0.45±.05"


@pytest.mark.parametrize(
    ("verdict", "style"),
    [
        ("exact", "green"),
        ("within", "green"),
        ("differs", "yellow"),
        ("violated", "bold red"),
        ("new", ""),
    ],
)
def test_rich_colour_is_the_verdict(verdict: str, style: str) -> None:
    results = classification()
    results["columns"] = results["columns"][:1]
    results["rows"] = results["rows"][:1]
    results["rows"][0]["cells"]["train"] = cell(0.5, 0.1, 0.9, 0.2, verdict)
    (text,) = rich_cells(results, 1)
    ours, paper = (text.plain.index(part) for part in ("0.50±.10", "0.90±.20"))
    styles = {span.start: str(span.style) for span in text.spans}
    assert styles.get(ours, "") == style
    assert styles[paper] == "dim"


def test_rich_widest_table_fits_in_80_columns() -> None:
    results = classification()
    columns = ["train", "orthogonal", "orthogonal+dilation", "special-conformal"]
    columns += [f"non-orthogonal mu={mu}" for mu in (0.5, 1.5, 3.0)]
    wide = row("Combined", "mean", "neighbour-sum", *[cell(0.5)] * 4)
    wide["cells"] = {column: cell(0.96, 0.04, 0.96, 0.04, "within") for column in columns}
    text = printed({**results, "columns": columns, "rows": [wide]})
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("0.96±.04") == 14
    assert "mean, n.-sum" in text
    assert "…" not in text


def test_rich_takes_markup_in_names_as_text() -> None:
    results = classification()
    results["title"] = "[red]title[/red]"
    results["rows"][0]["block"] = "[b]X"
    text = printed(results)
    assert "[red]title[/red]" in text
    assert "[b]X" in text


def test_markdown() -> None:
    lines = markdown_table(classification()).splitlines()
    assert lines[0] == "| block | aggregation | coordinate map | train | +dil. | μ=3 | conf. |"
    assert lines[1] == "| --- | --- | --- | ---: | ---: | ---: | ---: |"
    assert lines[2] == (
        "| AGN | mean | identity | 1.00 (1.00) | 1.00 (1.00) | 0.93±0.02 (0.96±0.04) | 0.45±0.05 |"
    )
    assert "| **0.87±0.01** (1.00) |" in lines[3]
    assert "| GN | mean |  | 1.00 (1.00) | *0.31±0.03* (0.75±0.05) |" in lines[5]
    assert "**Bold**" in lines[-1]
    assert "*Italic*" in lines[-1]
    assert {line.count("|") for line in lines[:7]} == {8}


def test_markdown_without_the_paper_has_no_notes() -> None:
    text = markdown_table(efficiency())
    assert "(" not in text
    assert text.splitlines()[2:] == [
        "| AGN | sum | 1 | 1.00 | 1.00 |",
        "| SDGN | sum | 1 | 1.00 | 1.00 |",
        "| DGN | sum | 1 | 0.60±0.10 | 0.60±0.10 |",
        "| GN | sum | 1 | 0.25±0.05 | 0.25±0.05 |",
        "| GN | sum | 10 | 0.55±0.08 | 0.55±0.08 |",
        "| GN | sum | 100 | 0.97 | 0.97 |",
    ]


def test_markdown_bar_in_a_name_is_escaped() -> None:
    results = classification()
    results["rows"][0]["block"] = "A|B"
    assert "| A\\|B | mean |" in markdown_table(results)


def test_cell_that_is_missing_is_a_dash() -> None:
    results = classification()
    del results["rows"][0]["cells"]["train"]
    assert "| AGN | mean | identity | – |" in markdown_table(results)
    assert rich_cells(results, 1)[0].plain == "–"


def test_rows_of_a_block_are_together() -> None:
    results = classification()
    results["rows"].append(row("AGN", "max", "identity", *[cell(0.5)] * 4))
    blocks = [line.split(" | ")[0] for line in markdown_table(results).splitlines()[2:8]]
    assert blocks == ["| AGN", "| AGN", "| AGN", "| SDGN", "| GN", "| CGN"]


@pytest.mark.parametrize("width", [45, 60, 80, 200])
def test_numbers_of_a_comparison_are_whole_in_any_window(width: int) -> None:
    rows = [
        {"block": block, "cells": {"n-body test MSE": cell(mean, 0.00012)}, "parameters": 105091}
        for block, mean in {"EGNN": 0.00827, "DGN": 0.00749, "GN": 0.045}.items()
    ]
    claims = [{"claim": "DGN is below GN", "found": "0.0075 and 0.0450", "holds": True}]
    results = {
        "title": "Particles",
        "columns": ["n-body test MSE"],
        "rows": rows,
        "claims": claims,
        "seeds": [0, 1],
        "epochs": 3,
        "graphs": {"train": 5, "test": 5},
        "protocol": "quick",
        "units": {},
    }
    text = printed(results, width)
    assert "…" not in text
    means = next(line for line in text.splitlines() if line.startswith("test MSE"))
    beside = {"0.00827±0.00012", "0.00749±0.00012", "0.0450±0.0001"} <= set(means.split())
    assert beside == (width >= 60)
    assert beside or means.split()[2:] == ["0.00827", "0.00749", "0.0450"]
    assert "holds: DGN is below GN" in text
