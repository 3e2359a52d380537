"""`symgnn export`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    export = commands.add_parser("export", help="a trained network as a file that needs no symgnn")
    export.add_argument("directory", metavar="run", type=Path, help="what symgnn train wrote")
    export.add_argument("out", type=Path, help="the program, such as model.pt2")
    export.add_argument("--seed", type=int, help="which initialisation (default: the first)")
    export.add_argument(
        "--aoti", action="store_true", help="compiled by AOTInductor; needs a C++ compiler"
    )
    return export


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.commands.train import check_installed

    check_installed()
    from symgnn.train._trained_run import load

    written = load(options.directory).export(options.out, seed=options.seed, aoti=options.aoti)
    Console().print(f"written: {written}", soft_wrap=True, markup=False)
    return 0
