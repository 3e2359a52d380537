"""`symgnn evaluate`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    evaluate = commands.add_parser("evaluate", help="evaluate a run on the graphs of its dataset")
    evaluate.add_argument("directory", metavar="run", type=Path, help="directory of the run")
    evaluate.add_argument(
        "--split",
        action="append",
        choices=("train", "validation", "test"),
        help="split to evaluate; may be given several times (default test)",
    )
    evaluate.add_argument("--out", type=Path, help="JSON file (default: metrics.json of the run)")
    add_data(evaluate)
    return evaluate


def add_data(command: argparse.ArgumentParser) -> None:
    """Where the files of a run are now."""
    command.add_argument(
        "--data", type=Path, help="new place of the training files, if they have moved"
    )


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.commands.train import check_installed

    check_installed()
    from symgnn.report._run_page import print_metrics
    from symgnn.store import check_writable
    from symgnn.train._run_loading import load
    from symgnn.train._run_metrics import evaluate
    from symgnn.train._write_metrics import write_metrics

    out = options.out or options.directory / "metrics.json"
    trained = load(options.directory)
    check_writable(out)
    splits = trained.splits(options.data)
    found = evaluate(trained, splits, options.split or ["test"])
    remark = write_metrics(out, found)
    console = Console()
    if remark:
        console.print(remark, soft_wrap=True, markup=False)
    print_metrics(console, found, trained.record)
    console.print(f"written: {out}", soft_wrap=True, markup=False)
    return 0
