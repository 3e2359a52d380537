"""The command `symgnn`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from symgnn import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code."""
    parser = argparse.ArgumentParser(
        prog="symgnn", description="Graph networks with exactly the symmetry that your data has."
    )
    parser.add_argument("--version", action="version", version=f"symgnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser(
        "demo", help="build each block, apply it to the five solids, measure its symmetry"
    )
    parser.parse_args(arguments)

    from symgnn import demo

    return 0 if demo.run() else 1


if __name__ == "__main__":
    sys.exit(main())
