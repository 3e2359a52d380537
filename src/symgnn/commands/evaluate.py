"""`symgnn evaluate`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    evaluate = commands.add_parser("evaluate", help="measure a run on the graphs of its dataset")
    evaluate.add_argument("directory", metavar="run", type=Path, help="what symgnn train wrote")
    evaluate.add_argument(
        "--split",
        action="append",
        choices=("train", "validation", "test"),
        help="may be given several times (default test)",
    )
    evaluate.add_argument("--out", type=Path, help="a JSON file (default: metrics.json of the run)")
    return evaluate


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.commands.train import check_installed

    check_installed()
    from symgnn.report.run import metrics_table
    from symgnn.store import read_json, write_json
    from symgnn.train import datasets
    from symgnn.train.trained import evaluate, load

    trained = load(options.directory)
    splits = datasets.load(trained.config.data)
    found = evaluate(trained, splits, options.split or ["test"])
    out = options.out or options.directory / "metrics.json"
    write_json(out, {**(read_json(out) or {}), **found})
    console = Console()
    console.print(metrics_table(found, trained.record["task"]))
    console.print(f"written: {out}", soft_wrap=True, markup=False)
    return 0
