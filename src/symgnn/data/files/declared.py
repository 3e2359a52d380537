"""Counts that a file declares in its header, compared with what it has.

Libraries allocate memory for as many atoms or vertices as a header promises, and look for that
many lines. A damaged header would make them run for hours, so it is checked first: a file has at
least one line for each atom.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

CHUNK = 1 << 20
#: Lines of a header that are looked at, and bytes of each.
LINES, WIDTH = 64, 4096


def check_declared(path: Path) -> None:
    """Refuse a file of atoms that says it has more of them than it has lines.

    Formats without counts are not looked at.
    """
    counts = COUNTS.get(path.suffix.lower())
    if counts is None:
        return
    with path.open("rb") as file:
        said = max(counts(list(_header(file))), default=0)
        if said > 0:
            file.seek(0)
            there = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(CHUNK), b"")) + 1
            check_count(said, there, "atoms or values", "lines")


def check_count(said: int, there: int, what: str, units: str) -> None:
    """Refuse a count that is more than what is there."""
    if said > there:
        raise ValueError(
            f"is cut off, or its header is damaged: it says {said:,} {what} and has {there:,} "
            f"{units}; replace it"
        )


def _header(file: BinaryIO) -> Iterator[list[str]]:
    """The first lines, as words."""
    for _ in range(LINES):
        line = file.readline(WIDTH)
        if not line:
            return
        yield line.decode(errors="replace").split()


def _integers(words: Sequence[str]) -> list[int]:
    """The whole numbers that stand at the beginning."""
    found = []
    for word in words:
        if not re.fullmatch(r"[-+]?\d{1,30}", word):
            break
        found.append(abs(int(word)))
    return found


def _first(lines: Sequence[Sequence[str]], number: int) -> list[int]:
    return _integers(lines[number][:1]) if number < len(lines) else []


def _gen(lines: Sequence[Sequence[str]]) -> list[int]:
    return _first(lines, 0)


def _gro(lines: Sequence[Sequence[str]]) -> list[int]:
    return _first(lines, 1)


def _cube(lines: Sequence[Sequence[str]]) -> list[int]:
    # each line has up to six values of the grid; its size along an axis is at most their number
    axes = [count // 6 for row in range(3, 6) for count in _first(lines, row)]
    return [*_first(lines, 2), *axes]


def _poscar(lines: Sequence[Sequence[str]]) -> list[int]:
    # after five lines, perhaps the elements, then how many atoms there are of each
    return [sum(_integers(line)) for line in islice(lines, 5, 7)]


def _xsf(lines: Sequence[Sequence[str]]) -> list[int]:
    found = []
    for number, line in enumerate(lines):
        if line and line[0].upper() == "PRIMCOORD":
            found += _first(lines, number + 1)
        elif line and line[0].upper() == "ANIMSTEPS":
            found += _integers(line[1:2])
    return found


#: By the ending of the file: the counts in its first lines.
COUNTS: dict[str, Callable[[Sequence[Sequence[str]]], list[int]]] = {
    ".gen": _gen,
    ".gro": _gro,
    ".cube": _cube,
    ".vasp": _poscar,
    ".poscar": _poscar,
    ".contcar": _poscar,
    ".xsf": _xsf,
}
