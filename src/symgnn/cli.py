"""The command `symgnn`.

Building the parser imports neither torch nor numpy: `symgnn --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from symgnn import __version__
from symgnn.commands import COMMANDS
from symgnn.commands.parser import Parser, explain_unknown
from symgnn.warning_lines import warnings_as_lines


def make_parser() -> Parser:
    """The parser of `symgnn`, with a sub-parser for each command."""
    parser = Parser(
        prog="symgnn",
        description="Graph neural networks with a symmetry that you choose, derived and measured.",
    )
    parser.add_argument("--version", action="version", version=f"symgnn {__version__}")
    parser.set_defaults(run=None, parser=parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        sub = command.add(commands)
        sub.set_defaults(run=command.run, parser=sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code.

    Args:
        arguments: the words after `symgnn`; those of this process if left out, in which case
            warnings are printed as lines of the command.

    Returns:
        0; 1 where something that was checked does not hold; 2 for an error of the user; 130 if it
        was interrupted.
    """
    if arguments is None:
        warnings_as_lines()
    options, rest = make_parser().parse_known_args(arguments)
    if rest and ("changes" not in options or not all(map(_is_change, rest))):
        explain_unknown(options.parser, rest)
    if rest:  # changes that stand behind options
        options.changes = [*options.changes, *rest]
    if options.run is None or getattr(options, "action", "") is None:
        options.parser.print_help()
        return 0
    try:
        return options.run(options)
    except (ValueError, OSError) as error:
        print(f"symgnn: {error}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        said = " ".join(str(error).split())[:200] or "MemoryError"
        hint = "give smaller graphs or batches, or make angles in parts with model.chunk"
        print(f"symgnn: there is not enough memory ({said}); {hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        how = "" if getattr(options, "resume", True) else " with --resume"
        print(f"symgnn: stopped; the same command{how} goes on where it was", file=sys.stderr)
        return 130


def _is_change(word: str) -> bool:
    """Whether it is of the form key=value, such as model.hidden=64."""
    return "=" in word and not word.startswith("-")


def _is_out_of_memory(error: Exception) -> bool:
    """Of Python, or of torch on the CPU or a GPU."""
    words = ("allocate memory", "out of memory")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


if __name__ == "__main__":
    sys.exit(main())
