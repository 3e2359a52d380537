"""The paper's remark on node features: with marks, SDGN with means tells all solids apart.

Marks must not give the class away. "one marked": one vertex of every solid has a 1, the others
have 0; as all vertices of a solid are alike, it does not matter which. (Their share is one over the
number of vertices, so that a mean over the vertices counts them.) "half marked": half of the
vertices, drawn anew for every graph, so that their share is the same for all solids; then the test
sets have other marks than the training set, and what was learnt of those has to carry over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from symgnn.data import Polytopes
from symgnn.experiments import _tables as tables
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._polytope_tables import COLUMNS, COPIES, READING, TABLES, Row
from symgnn.experiments._resume import run_parts, write_results

NAME = "polytopes-3d-marked"
TITLE = "Polytopes in three dimensions, with marked vertices"
MARKS = ("one marked", "half marked")
#: With the table that has their networks.
ROWS = (
    ("polytopes-3d", Row("SDGN", "mean")),
    ("polytopes-3d-map", Row("SDGN", "mean", "neighbour-sum")),
    ("polytopes-3d", Row("SDGN", "sum")),
    ("polytopes-3d", Row("DGN", "mean")),
    ("polytopes-3d", Row("AGN", "mean")),
    ("polytopes-3d", Row("GN", "mean")),
)


def run_marked(
    directory: Path,
    *,
    seeds: int = 10,
    epochs: int = 1000,
    copies: int = COPIES,
    trained: Path | None = None,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train and test networks on solids with marked vertices; write and return results.json."""
    settings = {"seeds": seeds, "epochs": epochs, "copies": copies, "reading": READING.key}
    parts = {
        f"{row} {marks}": partial(run_row, table, row, marks, seeds, epochs, copies, trained)
        for marks in MARKS
        for table, row in ROWS
    }
    done = run_parts(parts, directory / "rows", settings, epochs, console, engine)
    dimension = TABLES["polytopes-3d"].dimension
    return write_results(
        directory,
        done,
        name=NAME,
        title=TITLE,
        seeds=seeds,
        epochs=epochs,
        dimension=dimension,
        classes=Polytopes(dimension).names,
        columns=list(COLUMNS),
        rows=done,
        copies=copies,
        reading=READING.key,
    )


def run_row(
    table: str,
    row: Row,
    marks: str,
    seeds: int,
    epochs: int,
    copies: int,
    trained: Path | None = None,
    on_epoch: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """One row, whose block is named with its marks."""
    found = tables.run_row(table, row, seeds, epochs, marks, copies, READING, trained, on_epoch)
    return {**found, "block": f"{row.block}, {marks}"}
