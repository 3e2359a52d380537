"""The paper's numbers, to be printed beside ours."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def tables() -> dict[str, Any]:
    """The tables of "Symmetry-driven graph neural networks", by name."""
    return json.loads((resources.files("symgnn.experiments") / "paper.json").read_text())


def cell(table: str, block: str, aggregation: str, coordinate_map: str, column: str) -> dict:
    """`{"mean", "std"}` of a cell of a table; None where the paper has no such cell.

    Tables whose rows are blocks alone have that cell for every aggregation and coordinate map.
    """
    for row in tables()[table]["rows"]:
        psi = row.get("coordinate_map", coordinate_map) or "identity"
        key = (row["block"], row.get("aggregation", aggregation), psi)
        if key == (block, aggregation, coordinate_map):
            return row.get(column) or {"mean": None, "std": None}
    return {"mean": None, "std": None}
