"""The command `symgnn`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from symgnn import __version__
from symgnn.commands import COMMANDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code."""
    parser = argparse.ArgumentParser(
        prog="symgnn", description="Graph networks with exactly the symmetry that your data has."
    )
    parser.add_argument("--version", action="version", version=f"symgnn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands).set_defaults(run=command.run)
    options, rest = parser.parse_known_args(arguments)
    if any("=" not in word or word.startswith("-") for word in rest) or "changes" not in options:
        options = parser.parse_args(arguments)  # says what is wrong
    else:  # changes that stand behind options
        options.changes += rest
    try:
        return options.run(options)
    except (ValueError, OSError) as error:
        print(f"symgnn: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        how = "" if getattr(options, "resume", True) else " with --resume"
        print(f"symgnn: stopped; the same command{how} goes on where it was", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
