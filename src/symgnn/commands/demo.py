"""`symgnn demo`."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    return commands.add_parser(
        "demo", help="build each block, apply it to the five solids, measure its symmetry"
    )


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from symgnn import demo

    return 0 if demo.run() else 1
