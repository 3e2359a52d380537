"""`symgnn export`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    export = commands.add_parser(
        "export", help="export a trained network as a program that runs without symgnn"
    )
    export.add_argument("directory", metavar="run", type=Path, help="directory of the run")
    export.add_argument("out", type=Path, help="file of the program, such as model.pt2")
    export.add_argument(
        "--seed", type=int, help="seed whose network is exported (default: the first)"
    )
    export.add_argument(
        "--aoti",
        action="store_true",
        help="compile the program with AOTInductor, which needs a C++ compiler",
    )
    return export


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.commands.train import check_installed

    check_installed()
    from symgnn.train._run_loading import load

    written = load(options.directory).export(options.out, seed=options.seed, aoti=options.aoti)
    Console().print(f"written: {written}", soft_wrap=True, markup=False)
    return 0
