"""The paper's tables and figures: what is run, what is expected, and the runner."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from symgnn.experiments import efficiency
from symgnn.experiments.efficiency import run_efficiency
from symgnn.experiments.polytopes import TABLES, Row, Table
from symgnn.experiments.tables import choose_rows, run_table

#: What can be reproduced, with its title.
REPRODUCIBLE = {
    **{name: table.title for name, table in TABLES.items()},
    efficiency.NAME: efficiency.TITLE,
}

__all__ = ["REPRODUCIBLE", "TABLES", "Row", "Table", "reproduce", "run_efficiency", "run_table"]


def reproduce(
    name: str,
    directory: Path,
    *,
    seeds: int = 10,
    epochs: int = 1000,
    rows: Sequence[str] | None = None,
    node_features: bool = False,
    jobs: int = 1,
    console: Console | None = None,
) -> dict[str, Any]:
    """Run one of the paper's tables or figures into a directory; give its results.json."""
    if name not in REPRODUCIBLE:
        near = difflib.get_close_matches(name, REPRODUCIBLE, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"reproduce: {name!r}: {hint}choose from {', '.join(REPRODUCIBLE)}")
    if name == efficiency.NAME:
        if rows or node_features:
            raise ValueError(f"reproduce: {name} takes neither --rows nor --node-features")
        return run_efficiency(directory, seeds=seeds, epochs=epochs, jobs=jobs, console=console)
    table = TABLES[name]
    return run_table(
        table,
        directory,
        seeds=seeds,
        epochs=epochs,
        rows=choose_rows(table, rows),
        node_features=node_features,
        jobs=jobs,
        console=console,
    )
