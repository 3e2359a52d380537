"""`symgnn predict`."""

from __future__ import annotations

import argparse
from pathlib import Path

from symgnn.commands.evaluate import add_data


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    predict = commands.add_parser("predict", help="predict with a run, for files or a split")
    predict.add_argument("directory", metavar="run", type=Path, help="what symgnn train wrote")
    predict.add_argument("files", nargs="*", type=Path, help="files as the run was trained on")
    predict.add_argument(
        "--split", choices=("train", "validation", "test"), help="graphs of the run's dataset"
    )
    predict.add_argument("--out", type=Path, help="the CSV (default: predictions.csv of the run)")
    add_data(predict)
    return predict


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.commands.train import check_installed

    check_installed()
    from symgnn.train.predictions import write_predictions
    from symgnn.train.trained import load

    if bool(options.files) == bool(options.split):
        raise ValueError("predict: give either files or --split, such as --split test")
    if options.data is not None and not options.split:
        raise ValueError("--data: is for --split; files are given by themselves")
    trained = load(options.directory)
    out = options.out or options.directory / "predictions.csv"
    rows = write_predictions(trained, out, options.files, options.split, options.data)
    Console().print(f"written: {out}, {rows} rows", soft_wrap=True, markup=False)
    return 0
