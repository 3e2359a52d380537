"""Small results of both forms, made up."""

from __future__ import annotations

import json
from typing import Any

COLUMNS = ["train", "orthogonal+dilation", "non-orthogonal mu=3.0", "special-conformal"]
CLASSES = ["simplex", "hypercube", "orthoplex", "dodecahedron", "icosahedron"]
ENVIRONMENT = {"symgnn": "0.1.0", "python": "3.11", "commit": "abc123"}


def cell(
    mean: float,
    std: float = 0.0,
    paper: float | None = None,
    paper_std: float | None = None,
    verdict: str = "new",
) -> dict[str, Any]:
    return {
        "mean": mean,
        "std": std,
        "paper_mean": paper,
        "paper_std": paper_std,
        "verdict": verdict,
        "values": [mean, mean],
    }


def confusion(accuracy: float) -> list[list[float]]:
    """The accuracy on the diagonal, the rest spread evenly."""
    k = len(CLASSES)
    return [[accuracy if i == j else (1 - accuracy) / (k - 1) for j in range(k)] for i in range(k)]


def row(block: str, aggregation: str, coordinate_map: str | None, *cells: dict) -> dict[str, Any]:
    return {
        "block": block,
        "aggregation": aggregation,
        "coordinate_map": coordinate_map,
        "parameters": 59013,
        "symmetry": "similarities, permutations",
        "seconds": 12.3,
        "cells": dict(zip(COLUMNS, cells, strict=True)),
        "confusion": {
            column: confusion(entry["mean"]) for column, entry in zip(COLUMNS, cells, strict=True)
        },
        "curve": {"epoch": [0, 10, 20], "loss_mean": [1.6, 0.4, 0.0], "loss_std": [0.1, 0.5, 0.0]},
    }


def classification() -> dict[str, Any]:
    """Five rows and twenty cells, of every verdict; fifteen of them the paper has."""
    one = cell(1.0, paper=1.0, verdict="exact")
    guess = cell(0.2, paper=0.2, verdict="exact")
    new = cell(0.45, 0.05)
    rows = [
        row("AGN", "mean", "identity", one, one, cell(0.93, 0.02, 0.96, 0.04, "within"), new),
        row("AGN", "sum", "neighbour-sum", one, cell(0.87, 0.01, 1.0, None, "violated"), one, new),
        row("SDGN", "mean", "identity", guess, guess, guess, new),
        row("GN", "mean", None, one, *[cell(0.31, 0.03, 0.75, 0.05, "differs")] * 2, new),
        row("CGN", "sum", "identity", cell(1.0), cell(0.5), cell(0.5), cell(1.0, verdict="exact")),
    ]
    rows[4]["cells"]["train"].update(paper_mean=1.0, verdict="within")
    rows[4]["cells"]["orthogonal+dilation"].update(paper_mean=0.5, verdict="within")
    rows[4]["cells"]["non-orthogonal mu=3.0"].update(paper_mean=0.6, verdict="within")
    results = {
        "name": "polytopes-3d",
        "title": "Polytopes in 3 dimensions",
        "dimension": 3,
        "classes": CLASSES,
        "columns": COLUMNS,
        "rows": rows,
        "seeds": [0, 1],
        "epochs": 1000,
        "seconds": 123.4,
        "environment": ENVIRONMENT,
    }
    return json.loads(json.dumps(results))  # as read from a file, with nothing shared


def efficiency() -> dict[str, Any]:
    """A curve and three lines, two of them at the same height, in each of two columns."""
    columns = ["orthogonal", "non-orthogonal mu=0.5"]
    heights = {"AGN": (1.0, 0.0), "SDGN": (1.0, 0.0), "DGN": (0.6, 0.1)}
    return {
        "name": "data-efficiency",
        "title": "Data efficiency",
        "dimension": 3,
        "columns": columns,
        "samples": [1, 10, 100],
        "curves": [
            {
                "block": "GN",
                "aggregation": "sum",
                "column": column,
                "mean": [0.25, 0.55, 0.97],
                "std": [0.05, 0.08, 0.0],
            }
            for column in columns
        ],
        "lines": [
            {"block": block, "aggregation": "sum", "column": column, "mean": mean, "std": std}
            for column in columns
            for block, (mean, std) in heights.items()
        ],
        "seeds": [0, 1],
        "epochs": 1000,
        "seconds": 9000.0,
        "environment": ENVIRONMENT,
    }
