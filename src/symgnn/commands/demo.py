"""`symgnn demo`."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    return commands.add_parser(
        "demo", help="build each block, apply it to the five Platonic solids, measure its symmetry"
    )


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from symgnn import symmetry_demo

    return 0 if symmetry_demo.run() else 1
