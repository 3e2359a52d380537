"""Readings of the details that the paper's polytope tables leave open; one training per row.

Open are the law of q (:data:`symgnn.data._polytope_sets.OFFSETS`), the law of A at equal mu
(`MATRICES`), the length alpha to which SDGN scales the longest edge, and whether the nodes of GN
have a constant beside their coordinates. (gamma is standard normal, "gamma in R".) A reading is one
choice of each, for all tables together.

Rule, fixed before the run: of all readings, the one with the least total distance is taken, the
sum of |accuracy here - accuracy in the paper| over the 252 cells of the paper's four tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from symgnn.data import Polytopes
from symgnn.data._polytope_sets import MATRICES, OFFSETS, Law
from symgnn.experiments import _paper as paper
from symgnn.experiments._engines import HERE, RowEngine
from symgnn.experiments._polytope_accuracy import SetAccuracy, accuracy_on, keeps, known_train
from symgnn.experiments._polytope_tables import COLUMNS, TABLES, PaperReading, PolytopeTable, Row
from symgnn.experiments._polytope_training import Model, train_network
from symgnn.experiments._resume import run_parts, write_results
from symgnn.experiments._tables import compared, drawn_set, features_of, kept_file
from symgnn.report import agrees

NAME = "polytopes-readings"
TITLE = "What the polytope tables leave open: distance from the paper of each reading"
SCALINGS = (0.5, 1.0, 2.0)
#: Graphs of a class in a test set; in four dimensions, whose graphs are large, fewer.
COPIES = {3: 100, 4: 30, 5: 100}
#: The tables that the paper has, the one with the largest graphs last.
PAPER_TABLES = ("polytopes-3d", "polytopes-3d-map", "polytopes-5d", "polytopes-4d")
#: The paper's columns.
_COLUMNS = COLUMNS[:-1]


def paper_rows(table: PolytopeTable) -> list[Row]:
    """The rows of a table that the paper has."""
    return [
        row
        for row in table.rows
        if paper.cell(table.paper, row.block, row.aggregation, row.coordinate_map, "train")["mean"]
        is not None
    ]


def readings() -> list[PaperReading]:
    """All readings that are compared."""
    return [
        PaperReading(Law(offset, matrix), scaling, constant)
        for offset, matrix, scaling, constant in product(OFFSETS, MATRICES, SCALINGS, (False, True))
    ]


def run_readings(
    directory: Path,
    *,
    seeds: int = 10,
    epochs: int = 1000,
    tables: Sequence[str] = PAPER_TABLES,
    copies: Mapping[int, int] = COPIES,
    trained: Path | None = None,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train each row of the paper and test it with every reading; write and return results.json."""
    settings = {"seeds": seeds, "epochs": epochs, "copies": dict(copies)}
    parts = {
        f"{name} {row}{_suffix(row, scaling, constant)}": partial(
            run_row, name, row, scaling, constant, seeds, epochs, copies, trained
        )
        for name in tables
        for row in paper_rows(TABLES[name])
        for scaling in (SCALINGS if row.block == "SDGN" else (1.0,))
        for constant in ((False, True) if row.block == "GN" else (False,))
    }
    done = run_parts(parts, directory / "rows", settings, epochs, console, engine)
    found = sorted((judged(reading, done) for reading in readings()), key=lambda r: r["distance"])
    return write_results(
        directory,
        done,
        name=NAME,
        title=TITLE,
        seeds=seeds,
        epochs=epochs,
        tables=list(tables),
        readings=found,
        rows=done,
    )


def _suffix(row: Row, scaling: float, constant: bool) -> str:
    if row.block == "SDGN":
        return f" alpha={scaling:g}"
    return " constant" if constant else ""


def run_row(
    name: str,
    row: Row,
    scaling: float,
    constant: bool,
    seeds: int,
    epochs: int,
    copies: Mapping[int, int],
    trained: Path | None = None,
    on_epoch: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """Train one network, and test it by every law that makes a difference to it."""
    began = time.perf_counter()
    table = TABLES[name]
    n = table.dimension
    features = features_of(row, False, PaperReading(constant=constant))
    train = Polytopes(n, node_features=features)
    alpha = scaling if row.block == "SDGN" else None
    kept = kept_file(trained, row, n, features, alpha)
    found = train_network(row, train, n, seeds, epochs, on_epoch, scaling=alpha, kept=kept)
    network = found.ensemble.model
    assert isinstance(network, Model)
    cells: dict[str, dict[str, Any]] = {}
    in_train: list[float] = []
    for column in _COLUMNS:
        theirs = paper.cell(table.paper, row.block, row.aggregation, row.coordinate_map, column)
        cells[column] = {}
        for label, law in laws_of(row, column).items():
            exact = column == "train" or keeps(network.symmetry, column)
            each: SetAccuracy = accuracy_on(
                found.ensemble, drawn_set(n, column, copies[n], features, law), exact
            )
            fixed: Any = None
            if column == "train":
                in_train = each.accuracy.tolist()
                fixed = known_train(row, n, len(train.names))
            elif exact:
                fixed = in_train
            drawn = 0 if column == "train" else copies[n]
            cells[column][label] = compared(each, theirs, fixed, len(train.names), drawn)
    return {
        "table": name,
        **row.key,
        "scaling": alpha,
        "constant": constant,
        "seconds": time.perf_counter() - began,
        "cells": cells,
    }


def label_of(row: Row, column: str, law: Law) -> str:
    """The law that makes a difference to a row in a column, such as "none noise".

    All blocks but GN see no translation, and without mu all laws of A are one.
    """
    offset = law.offset if row.block == "GN" and column != "train" else "none"
    matrix = law.matrix if column.startswith("non-orthogonal") else MATRICES[0]
    return f"{offset} {matrix}"


def laws_of(row: Row, column: str) -> dict[str, Law]:
    """The laws by which a row is tested in a column, by their labels."""
    laws = [Law(*pair) for pair in product(OFFSETS, MATRICES)]
    labels = dict.fromkeys(label_of(row, column, law) for law in laws)
    return {label: Law(*label.split()) for label in labels}


def cells_by(reading: PaperReading, parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The cells of all tables as a reading has them."""
    found = []
    for part in parts:
        row = Row(part["block"], part["aggregation"], part["coordinate_map"])
        if part["scaling"] not in (None, reading.scaling):
            continue
        if row.block == "GN" and part["constant"] != reading.constant:
            continue
        for column, by_law in part["cells"].items():
            cell = by_law[label_of(row, column, reading.law)]
            found.append({"table": part["table"], "column": column, **cell})
    return found


def judged(reading: PaperReading, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A reading with its total distance from the paper, and how many cells agree, by kind."""
    cells = cells_by(reading, parts)
    agreeing = [cell for cell in cells if agrees(cell)]
    kinds = ("fixed", "trivial", "open")
    return {
        **reading.key,
        "distance": sum(_distance(cell) for cell in cells),
        "distances": {
            name: sum(_distance(cell) for cell in cells if cell["table"] == name)
            for name in dict.fromkeys(cell["table"] for cell in cells)
        },
        "cells": len(cells),
        "agree": len(agreeing),
        "cells_by_kind": {kind: sum(c["kind"] == kind for c in cells) for kind in kinds},
        "agree_by_kind": {kind: sum(c["kind"] == kind for c in agreeing) for kind in kinds},
    }


def _distance(cell: Mapping[str, Any]) -> float:
    return float(abs(cell["mean"] - cell["paper_mean"]))
