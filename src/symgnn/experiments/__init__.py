"""The paper's tables and figures: protocols, expected values, and the runner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from symgnn._argument_checks import unknown_name
from symgnn.experiments import _data_efficiency as data_efficiency
from symgnn.experiments import _marked_solids as marked_solids
from symgnn.experiments import _reading_sweep as reading_sweep
from symgnn.experiments import _step_time as step_time
from symgnn.experiments._data_efficiency import run_efficiency
from symgnn.experiments._dataset_protocols import EXPERIMENTS
from symgnn.experiments._dataset_runs import run_experiment
from symgnn.experiments._engines import HERE, Local, Ray, RowEngine, engine_named
from symgnn.experiments._marked_solids import run_marked
from symgnn.experiments._polytope_tables import TABLES, PaperReading, PolytopeTable, Row
from symgnn.experiments._reading_sweep import run_readings
from symgnn.experiments._step_time import run_step_time
from symgnn.experiments._tables import choose_rows, run_table

#: The experiments, with their titles.
REPRODUCIBLE = {
    **{name: table.title for name, table in TABLES.items()},
    marked_solids.NAME: marked_solids.TITLE,
    reading_sweep.NAME: reading_sweep.TITLE,
    data_efficiency.NAME: data_efficiency.TITLE,
    **{name: experiment.title for name, experiment in EXPERIMENTS.items()},
    step_time.NAME: step_time.TITLE,
}

__all__ = [
    "EXPERIMENTS",
    "REPRODUCIBLE",
    "TABLES",
    "Local",
    "Options",
    "PolytopeTable",
    "Ray",
    "Row",
    "RowEngine",
    "engine_named",
    "reproduce",
    "run_efficiency",
    "run_experiment",
    "run_marked",
    "run_readings",
    "run_step_time",
    "run_table",
]


@dataclass(frozen=True)
class Options:
    """Options of an experiment; None for the value of the protocol."""

    protocol: str | None = None
    seeds: int | None = None
    epochs: int | None = None
    limit: int | None = None
    source: str | None = None
    rows: Sequence[str] | None = None
    node_features: str | None = None
    reading: Path | None = None
    join: Sequence[Path] | None = None
    join_only: bool = False
    samples: Sequence[int] | None = None

    def given(self, *names: str) -> dict[str, Any]:
        """The options of these names that are given; an error if there are others."""
        found = {name: value for name, value in vars(self).items() if value not in (None, False)}
        for name in found:
            if name not in names:
                option = name.replace("_", "-")
                raise ValueError(f"--{option}: is not an option of this experiment; remove it")
        return found


#: Everything as in the protocol.
DEFAULTS = Options()


def reproduce(
    name: str,
    directory: Path,
    options: Options = DEFAULTS,
    *,
    trained: Path | None = None,
    engine: RowEngine = HERE,
    console: Console | None = None,
) -> dict[str, Any]:
    """Run one of the paper's tables or figures into a directory; return its results.json.

    The folder `trained` keeps trained networks on polytopes, which several tables use.
    """
    if name not in REPRODUCIBLE:
        raise ValueError(unknown_name("reproduce", name, REPRODUCIBLE, "known"))
    if name == step_time.NAME:
        if isinstance(engine, Ray):
            raise ValueError("--engine: step-time runs locally, one block at a time; remove it")
        return run_step_time(directory, console=console, **options.given("protocol", "source"))
    if name == data_efficiency.NAME:
        given = options.given("seeds", "epochs", "samples", "join")
        return run_efficiency(directory, engine=engine, console=console, **given)
    if name == marked_solids.NAME:
        given = options.given("seeds", "epochs")
        return run_marked(directory, trained=trained, engine=engine, console=console, **given)
    if name == reading_sweep.NAME:
        given = options.given("seeds", "epochs")
        return run_readings(directory, trained=trained, engine=engine, console=console, **given)
    if name in TABLES:
        given = options.given("seeds", "epochs", "rows", "node_features", "reading", "join")
        given["trained"] = trained
        if options.reading is not None:
            given["reading"] = PaperReading.best_of(options.reading)
        given["rows"] = choose_rows(name, TABLES[name].rows, options.rows) if options.rows else None
        return run_table(TABLES[name], directory, engine=engine, console=console, **given)
    experiment = EXPERIMENTS[name]
    given = options.given(
        "protocol", "seeds", "epochs", "limit", "source", "rows", "join", "join_only"
    )
    given["rows"] = choose_rows(name, experiment.all_rows, options.rows) if options.rows else None
    return run_experiment(experiment, directory, engine=engine, console=console, **given)
