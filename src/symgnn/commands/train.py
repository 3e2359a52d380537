"""`symgnn train`."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    train = commands.add_parser(
        "train", help="train on a dataset or your own files, configured by a YAML file"
    )
    train.add_argument("config", type=Path, help="YAML file, or the directory of a run")
    train.add_argument(
        "changes",
        nargs="*",
        default=[],
        metavar="key=value",
        help="overrides a value of the file, such as model.hidden=64",
    )
    train.add_argument(
        "--out", type=Path, help="directory of the run (default: runs/ and the file's name)"
    )
    train.add_argument("--resume", action="store_true", help="continue the run in the directory")
    train.add_argument("--seeds", type=int, help="number of initialisations (sets train.seeds)")
    train.add_argument(
        "--folds", type=int, help="number of folds for cross-validation (sets data.folds)"
    )
    train.add_argument(
        "--devices", type=int, help="number of processes or GPUs (sets train.devices)"
    )
    return train


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    check_installed()
    from symgnn.store import read_json
    from symgnn.train import keep_memory
    from symgnn.train._config import read_config
    from symgnn.train._training import finish, train

    keep_memory()
    console = Console()
    changes = list(options.changes)
    for name in ("seeds", "devices"):
        if getattr(options, name) is not None:
            changes.append(f"train.{name}={getattr(options, name)}")
    if options.folds is not None:
        changes.append(f"data.folds={options.folds}")
    config = read_config(options.config, changes)
    out = options.out
    if out is None:
        out = options.config if options.config.is_dir() else Path("runs") / options.config.stem
    if config.is_cross_validation:
        from symgnn.report._folds import print_folds, write_folds_report
        from symgnn.train._cross_validation import train_folds

        metrics = train_folds(config, out, resume=options.resume, console=console)
        if metrics is not None:
            print_folds(console, metrics, read_json(out / "folds.json"))
            page = write_folds_report(out)
            console.print(f"report: {page}", soft_wrap=True, markup=False)
        return 0
    run = train(config, out, resume=options.resume, console=console)
    if run is not None:
        from symgnn.report._run_page import print_metrics, write_run_report

        print_metrics(console, finish(run), run.record)
        console.print(f"report: {write_run_report(out)}", soft_wrap=True, markup=False)
    return 0


def check_installed() -> None:
    """Raise an error of one line if a package is missing."""
    if find_spec("lightning_fabric") is None:
        raise ValueError("lightning_fabric: is not installed; pip install lightning-fabric")
