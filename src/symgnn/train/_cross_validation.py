"""Cross-validation: a run for each fold, and the metrics over all folds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console

from symgnn.data._task import Splits
from symgnn.store import environment, read_json, write_json, write_whole
from symgnn.train import _run_data as run_data
from symgnn.train._config import Config
from symgnn.train._data_checks import check_same
from symgnn.train._devices import launch
from symgnn.train._outcomes import Outcomes
from symgnn.train._run_loading import load
from symgnn.train._run_metrics import summary
from symgnn.train._run_record import MAY_GROW, read_record
from symgnn.train._trained_run import SPLITS
from symgnn.train._training import check_config, claimed, finish, say, train

#: The cells of a number over folds, by split and name.
Cells = Mapping[str, Mapping[str, Mapping[str, Any]]]


def train_folds(
    config: Config, out: Path, *, resume: bool = False, console: Console | None = None
) -> dict[str, Any] | None:
    """Train and evaluate each fold in a separate directory; write and return the metrics.

    With `resume`, folds that are finished are skipped, and the others go on; with more epochs than
    before, all go on. In processes other than the first nothing is given.

    Args:
        config: a run with `data.folds`.
        out: gets `fold-1`, ..., and `metrics.json` (mean and deviation over the folds),
            `predictions.csv` (of each graph, by the fold that has not seen it), `folds.json`.
        resume: whether to go on with what is there.
        console: where to print.
    """
    console = console or Console(quiet=True)
    fabric = launch(config.train)
    first = fabric.is_global_zero
    with claimed(out) if first else nullcontext():
        if first:
            check_config(out, config, resume)
        folds = run_data.load_folds(config.data)
        if first:
            write_whole(out / "config.yaml", config.to_yaml().encode())
        for number, splits in enumerate(folds, 1):
            directory = out / f"fold-{number}"
            own = fold_config(config, number)
            if is_finished(directory, own):
                if first:
                    check_finished(directory, own, splits)
                    say(console, f"fold {number} of {len(folds)}: is finished")
                continue
            if first:  # what was measured before the fold goes on
                (directory / "metrics.json").unlink(missing_ok=True)
            run = train(own, directory, resume=True, console=console, splits=splits, fabric=fabric)
            if run is not None:
                finish(run)
        return summarise(out, folds) if first else None


def fold_config(config: Config, number: int) -> Config:
    """The run of one fold, which stands for itself: it can be resumed, measured and used."""
    return dataclasses.replace(config, data={**config.data, "fold": number})


def is_finished(directory: Path, config: Config) -> bool:
    """Whether a fold was trained as long as is asked for, and measured."""
    if not (directory / "metrics.json").exists():
        return False
    before = read_record(directory)["config"]["train"]
    return all(before[key] == getattr(config.train, key) for _, key in MAY_GROW)


def check_finished(directory: Path, config: Config, splits: Splits) -> None:
    """A fold that is skipped has this config and these data."""
    check_config(directory, config, resume=True)
    counts = {name: len(getattr(splits, name)) for name in SPLITS}
    now = {"task": dataclasses.asdict(splits.task), "scale": splits.scale, "counts": counts}
    check_same(
        read_record(directory),
        {**now, "about": splits.about},
        "put them back, or train into another --out",
    )


def summarise(out: Path, folds: Sequence[Splits]) -> dict[str, Any]:
    """Write `metrics.json`, `outcomes.json`, `predictions.csv` and `folds.json`; give the first."""
    each, parts = [], []
    for number, splits in enumerate(folds, 1):
        directory = out / f"fold-{number}"
        each.append(read_json(directory / "metrics.json"))
        noted = Outcomes(splits.task, splits.test, fold=number)
        load(directory).compare(splits.test, noted)
        parts.append(noted)
    whole = Outcomes.joined(parts)
    whole.write(out / "predictions.csv")
    write_json(out / "outcomes.json", {"test": whole.summary()})
    record = read_record(out / "fold-1")
    shared = {k: record[k] for k in ("task", "seeds", "headlines", "model", "symmetry")}
    about = folds[0].about
    made = {
        **shared,
        "parameters": record["parameters"],
        "code": record["code"],
        "folds": len(folds),
        "graphs": about["graphs"],
        "split": about["split"],
        "validation": about["validation"],
        "environment": environment(),
    }
    write_json(out / "folds.json", made)
    metrics = over_folds(each)
    write_json(out / "metrics.json", metrics)
    return metrics


def over_folds(each: Sequence[Cells]) -> dict[str, Any]:
    """Mean and deviation over the folds of every number, of which each fold has the mean over its
    seeds; the baseline is the mean over the folds as well.

    A number that is not defined in a fold, such as R2 of one graph, has no part in the mean.
    """
    found: dict[str, Any] = {}
    for split, cells in each[0].items():
        found[split] = {}
        for name in cells:
            mine = [fold[split][name] for fold in each]
            values = [cell["mean"] for cell in mine]
            cell: dict[str, Any] = {"mean": None, "deviation": None}
            known = [value for value in values if is_number(value)]
            if known:
                cell = summary(known)
            cell["values"] = values
            trivial = [cell["baseline"] for cell in mine if is_number(cell.get("baseline"))]
            if len(trivial) == len(mine):
                by = dict.fromkeys(cell["baseline_by"] for cell in mine)
                cell |= {"baseline": sum(trivial) / len(trivial), "baseline_by": ", ".join(by)}
            found[split][name] = cell
    return found


def is_number(value: float | None) -> bool:
    """Whether a number is there and finite."""
    return value is not None and math.isfinite(value)
