"""The parser of the command line: every error is one line that names the nearest right word."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


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
        hint = nearest(str(value), map(str, action.choices))
        if action.option_strings:
            raise argparse.ArgumentError(None, f"{action.option_strings[0]}: is {value!r}; {hint}")
        what = str(action.metavar or action.dest).lower()
        raise argparse.ArgumentError(None, f"{value!r} is not a known {what}; {hint}")


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint on a wrong word: the nearest right one, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(word, names, 1)
    return f"did you mean {near[0]}?" if near else f"choose from {', '.join(names)}"


def explain_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> NoReturn:
    """Say which words are not known, and for an option the nearest that is; exit with 2."""
    word = next((each for each in words if each.startswith("-")), words[0])
    options = [name for name in parser._option_string_actions if name.startswith("--")]
    near = difflib.get_close_matches(word.partition("=")[0], options, 1)
    if near:
        parser.error(f"{word} is not an option; did you mean {near[0]}?")
    what = "an option" if word.startswith("-") else "expected"
    parser.error(f"{word} is not {what}")
