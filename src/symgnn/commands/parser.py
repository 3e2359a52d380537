"""The parser of the command line: every error is one line that names the nearest right word."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from symgnn._argument_checks import closest, suggestion


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the error in one line and exit with 2."""
        more = "" if message.endswith("?") else f"; see {self.prog} --help"
        self.exit(2, f"{self.prog}: {message}{more}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the nearest choice; argparse itself can from Python 3.14 on."""
        if action.choices is None or value in action.choices:
            return
        hint = suggestion(value, map(str, action.choices), cutoff=0.6)
        if action.option_strings:
            raise argparse.ArgumentError(None, f"{action.option_strings[0]}: is {value!r}; {hint}")
        what = str(action.metavar or action.dest).lower()
        raise argparse.ArgumentError(None, f"{value!r} is not a known {what}; {hint}")


def explain_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> NoReturn:
    """Say which words are not known, and for an option the nearest that is; exit with 2."""
    word = next((each for each in words if each.startswith("-")), words[0])
    options = [name for name in parser._option_string_actions if name.startswith("--")]
    near = closest(word.partition("=")[0], options, 0.6)
    if near is not None:
        parser.error(f"{word} is not an option; did you mean {near}?")
    what = "an option" if word.startswith("-") else "expected"
    parser.error(f"{word} is not {what}")
