"""Checks of arguments that every package shares: names, counts, rates, positive numbers.

Each error is one line: the argument, the value that was given, and what is allowed. Nothing here
imports torch or numpy, because the command line uses it before either is needed.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

V = TypeVar("V")
#: How many names an error lists at most.
LISTED = 40


def closest(word: object, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that is most similar to a word, upper and lower case being the same.

    Args:
        word: The word that is not known.
        known: The names to choose from.
        cutoff: The least similarity, from 0 to 1.

    Returns:
        The name, or None if none is similar enough.

    Example:
        >>> closest("distnace", ["angle", "distance"])
        'distance'
    """
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(word).lower(), by_lower, 1, cutoff)
    return by_lower[near[0]] if near else None


def suggestion(
    word: object, known: Iterable[str], *, cutoff: float = 0.5, listed: bool = False
) -> str:
    """The end of an error on an unknown name: the closest known one, or all of them.

    Args:
        word: The word that is not known.
        known: The names to choose from.
        cutoff: The least similarity of a name that is suggested.
        listed: Whether to list all names also where one is suggested.

    Example:
        >>> suggestion("maen", ["mean", "sum"])
        "did you mean 'mean'?"
        >>> suggestion("maen", ["mean", "sum"], listed=True)
        "did you mean 'mean'? Choose from mean, sum"
        >>> suggestion("product", ["mean", "sum"])
        'choose from mean, sum'
    """
    names = list(known)
    near = closest(word, names, cutoff)
    if near is not None and not listed:
        return f"did you mean {near!r}?"
    every = ", ".join(map(shown, names[:LISTED])) + (", ..." if len(names) > LISTED else "")
    choose = f"choose from {every}" if names else "there are none"
    return choose if near is None else f"did you mean {near!r}? {choose[0].upper()}{choose[1:]}"


def shown(value: object) -> str:
    """A value as an error shows it: a long one by its beginning and its end."""
    text = str(value)
    return text if len(text) <= 100 else f"{text[:60]} ... {text[-30:]}"


def unknown_name(name: str, given: object, known: Iterable[str], what: str) -> str:
    """The error on a name that is not known, with the closest one and all that there are.

    Args:
        name: The argument.
        given: Its value.
        known: The values that are allowed.
        what: What the value should be, such as "a column of a.csv".

    Example:
        >>> unknown_name("units", "angstrm", ["angstrom", "bohr"], "a known unit")
        "units: 'angstrm' is not a known unit; did you mean 'angstrom'? Choose from angstrom, bohr"
    """
    value = repr(shown(given)) if isinstance(given, str) else shown(repr(given))
    return f"{name}: {value} is not {what}; {suggestion(given, known, listed=True)}"


def named(name: str, given: object, table: Mapping[str, V]) -> V:
    """The entry of a table whose keys are lower case, upper case being allowed.

    Raises:
        ValueError: If there is no such entry; the error names the closest one.
    """
    if isinstance(given, str) and given.lower() in table:
        return table[given.lower()]
    raise ValueError(unknown_name(name, given, table, "known"))


def check_count(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`.

    Example:
        >>> check_count("layers", 0)
        Traceback (most recent call last):
        ValueError: layers: is 0; give a whole number of at least 1
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: is {value!r}; give a whole number of at least {least}")
    return int(value)


def check_rate(name: str, value: Any) -> float:
    """A number from 0 to below 1."""
    if not _is_real(value) or not 0 <= value < 1:
        raise ValueError(f"{name}: is {value!r}; give a rate from 0 to below 1")
    return float(value)


def check_positive(name: str, value: Any, hint: str = "") -> float:
    """A finite number above 0.

    Example:
        >>> check_positive("scale", -1.0, "1.0 to change nothing")
        Traceback (most recent call last):
        ValueError: scale: is -1.0; give a positive number, 1.0 to change nothing
    """
    if not _is_real(value) or not 0 < value < math.inf:
        raise ValueError(f"{name}: is {value!r}; give a positive number{hint and ', ' + hint}")
    return float(value)


def check_finite(name: str, value: Any) -> float:
    """A finite number."""
    if not _is_real(value) or not math.isfinite(value):
        raise ValueError(f"{name}: is {value!r}; give a finite number")
    return float(value)


def check_at_least(name: str, value: Any, least: float, hint: str = "") -> float:
    """A finite number of at least `least`."""
    if not _is_real(value) or not least <= value < math.inf:
        raise ValueError(
            f"{name}: is {value!r}; give a finite number of at least {least:g}"
            f"{hint and ', ' + hint}"
        )
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_flag(name: str, value: bool) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: is {value!r}; give True or False")
    return value
