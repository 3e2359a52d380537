"""Numbers of atoms that a file declares in its header, compared with the lines that it has.

ASE takes memory for as many atoms as a header promises, looks for that many lines, and leaves out
what comes after them. A damaged header would therefore take hours, or lose atoms, so it is checked
first; the work is bounded by the size of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

Words = Sequence[str]
#: Lines of a header, and characters of a line, that are looked at.
LINES, WIDTH = 200, 400


class DeclaredBlock(NamedTuple):
    """So many lines of atoms, from a line on, which is counted from 0."""

    atoms: int
    first: int


def check_declared(path: Path) -> None:
    """Refuse a file of atoms that has more or fewer of them than it says.

    Formats that do not say how many they have are not looked at.
    """
    if path.suffix.lower() not in FORMATS:
        return
    find, is_atom = FORMATS[path.suffix.lower()]
    with path.open(encoding="utf-8", errors="replace") as file:
        header = [line[:WIDTH].split() for line in islice(file, LINES)]
        for count, first in find(header):
            file.seek(0)
            there = 0
            for line in islice(file, first, None):
                there += is_atom(line[:WIDTH].split())
                if there > count or not is_atom(line[:WIDTH].split()):
                    break
            if there != count:
                more = "at least " if there > count else ""
                raise ValueError(
                    f"its header says {count:,} atoms, but there are {more}{there:,}; it is cut "
                    "off or damaged, replace it"
                )


def _count(lines: Sequence[Words], number: int) -> int | None:
    """The whole number with which a line begins; None where it does not."""
    words = lines[number] if number < len(lines) else ()
    return int(words[0]) if words and re.fullmatch(r"-?\d+", words[0]) else None


def _block(lines: Sequence[Words], number: int, first: int) -> list[DeclaredBlock]:
    count = _count(lines, number)
    return [] if count is None else [DeclaredBlock(count, first)]


def _gen(lines: Sequence[Words]) -> list[DeclaredBlock]:
    return _block(lines, 0, 2)


def _gro(lines: Sequence[Words]) -> list[DeclaredBlock]:
    return _block(lines, 1, 2)


def _cube(lines: Sequence[Words]) -> list[DeclaredBlock]:
    # a negative number says that more numbers follow the atoms
    return [DeclaredBlock(abs(count), first) for count, first in _block(lines, 2, 6)]


def _poscar(lines: Sequence[Words]) -> list[DeclaredBlock]:
    """After five lines, perhaps the elements; then how many atoms there are of each."""
    number = 5 if _count(lines, 5) is not None else 6
    if _count(lines, number) is None:
        return []
    counts = re.match(r"(?:-?\d+\s+)*", " ".join(lines[number]) + " ")
    selective = (
        number + 1 < len(lines) and lines[number + 1][:1] and lines[number + 1][0][0] in "sS"
    )
    assert counts is not None
    return [DeclaredBlock(sum(map(int, counts[0].split())), number + (3 if selective else 2))]


def _xsf(lines: Sequence[Words]) -> list[DeclaredBlock]:
    """Blocks after the word PRIMCOORD, as far as they begin in the header."""
    starts = [n for n, words in enumerate(lines) if words and words[0].upper() == "PRIMCOORD"]
    return [block for start in starts for block in _block(lines, start + 1, start + 2)]


def _is_number(word: str) -> bool:
    return re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?", word) is not None


def _numbers(words: Words, first: int, last: int) -> bool:
    return len(words) >= last and all(map(_is_number, words[first:last]))


#: By the ending of the file: where the atoms are, and whether a line is one of them.
FORMATS: dict[
    str, tuple[Callable[[Sequence[Words]], list[DeclaredBlock]], Callable[[Words], bool]]
] = {
    ".gen": (_gen, lambda words: _numbers(words, 0, 5)),
    ".gro": (_gro, lambda words: bool(words) and not _is_number(words[0])),
    ".cube": (_cube, lambda words: len(words) == 5 and words[0].isdigit()),
    ".xsf": (_xsf, lambda words: _numbers(words, 1, 4)),
    **dict.fromkeys(
        (".vasp", ".poscar", ".contcar"), (_poscar, lambda words: _numbers(words, 0, 3))
    ),
}
