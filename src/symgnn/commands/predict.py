"""`symgnn predict`."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from symgnn.commands.evaluate import add_data


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    predict = commands.add_parser("predict", help="predict with a run, for files or a split")
    predict.add_argument("directory", metavar="run", type=Path, help="directory of the run")
    predict.add_argument(
        "files", nargs="*", help="files in a format of the training files, or SMILES of molecules"
    )
    predict.add_argument(
        "--split",
        choices=("train", "validation", "test"),
        help="predict this split of the run's dataset instead of files",
    )
    predict.add_argument("--out", type=Path, help="CSV file (default: predictions.csv of the run)")
    predict.add_argument(
        "--on-error",
        choices=("raise", "skip"),
        default="raise",
        help="stop at a file that cannot be read (raise, default), or skip it and print the reason",
    )
    add_data(predict)
    return predict


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.commands.train import check_installed

    check_installed()
    from symgnn.store import check_writable
    from symgnn.train._predictions import write_predictions
    from symgnn.train._run_loading import load

    if bool(options.files) == bool(options.split):
        raise ValueError("predict: give either files or --split, such as --split test")
    if options.data is not None and not options.split:
        raise ValueError("--data: applies to --split only; remove it")
    if options.on_error == "skip" and options.split:
        raise ValueError("--on-error: applies to files only; remove it, or remove --split")
    trained = load(options.directory)
    out = options.out or options.directory / "predictions.csv"
    check_writable(out)
    reading = {"on_error": "skip"} if options.on_error == "skip" else {}
    skipped: tuple[str, ...] = ()
    if options.split:
        graphs = getattr(trained.splits(options.data), options.split)
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "left out")  # said below
            graphs = trained.read(options.files, **reading)
        skipped = graphs.skipped
    rows = write_predictions(trained, out, graphs)
    console = Console()
    for reason in skipped:
        console.print(f"left out: {reason}", soft_wrap=True, markup=False, highlight=False)
    console.print(f"written: {out}, {rows} rows", soft_wrap=True, markup=False)
    return 0
