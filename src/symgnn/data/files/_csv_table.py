"""CSV files, with messages that name file, row and column."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from symgnn._argument_checks import shown, unknown_name

DELIMITERS = ",;\t"


@dataclass(frozen=True)
class CsvTable:
    """Rows of text under named columns; rows are counted as a spreadsheet does, the header is 1."""

    path: Path
    columns: dict[str, int]  # where each is
    units: dict[str, str]
    cells: list[list[str]]
    rows: list[int] = field(repr=False)

    def where(self, index: int, column: str = "", called: str = "") -> str:
        """The name of a cell or a row in a message; `called` names the subject of the row."""
        place = f"{self.path}, row {self.rows[index]}"
        place += f", column {column!r}" if column else ""
        return f"{place} ({called})" if called else place

    def text(self, column: str, option: str = "columns") -> list[str]:
        """The cells of a column; `option` is the one that named it."""
        if column not in self.columns:
            raise ValueError(
                unknown_name(option, column, self.columns, f"a column of {self.path.name}")
            )
        at = self.columns[column]
        return [row[at] for row in self.cells]

    def values(self, column: str) -> np.ndarray:
        """The cells of a column: numbers if all are, otherwise text."""
        cells = self.text(column)
        return as_numbers(cells) if all(map(is_number, cells)) else np.array(cells, dtype=object)


def _lines(path: Path) -> Iterator[list[str]]:
    """The rows of a CSV; columns are separated by commas, semicolons or tabs."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            delimiter = max(DELIMITERS, key=file.readline().count)
            file.seek(0)
            for line in csv.reader(file, delimiter=delimiter):
                yield [cell.strip() for cell in line]
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not text in UTF-8; save it as CSV (UTF-8)") from None
    except csv.Error as error:
        raise ValueError(f"{path}: is not a CSV ({error})") from None


def header_of(path: Path) -> list[str]:
    """The names of the columns of a CSV."""
    return [_name_and_unit(cell)[0] for cell in next(_lines(path), [])]


def read_table(path: Path) -> CsvTable:
    """A CSV with a header."""
    lines = list(_lines(path))
    if not lines or not any(lines[0]):
        raise ValueError(f"{path}: has no header; its first row has to name the columns")
    header = [_name_and_unit(cell) for cell in lines[0]]
    columns: dict[str, int] = {}
    for at, (name, _) in enumerate(header):
        if name in columns:
            raise ValueError(f"{path}: has two columns {name!r}; rename one of them")
        if name:
            columns[name] = at
    rows = [index for index, line in enumerate(lines[1:], 2) if any(line)]
    cells = [lines[row - 1] for row in rows]
    for row, line in zip(rows, cells, strict=True):
        if len(line) != len(header):
            raise ValueError(
                f"{path}, row {row}: has {len(line)} cells, but the header has {len(header)}; "
                "give it one for each column"
            )
    return CsvTable(path, columns, dict(header), cells, rows)


def _name_and_unit(cell: str) -> tuple[str, str]:
    """The header "gap [eV]" is the column gap, in eV."""
    match = re.fullmatch(r"(.*\S)\s*\[(.*)\]", cell)
    return (match[1], match[2].strip()) if match else (cell, "")


def is_number(cell: object) -> bool:
    """Whether it can be read as a number, not necessarily a finite one."""
    try:
        if isinstance(cell, str) and "_" in cell:  # which Python reads over
            return False
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def is_missing(cell: object) -> bool:
    """Whether a cell has no value: it is empty, None or NaN."""
    if isinstance(cell, str):
        return cell.strip().lower() in ("", "nan")
    return cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell))


def as_numbers(
    cells: Sequence[object] | np.ndarray, where: Callable[[int], str] = str
) -> np.ndarray:
    """Finite numbers, in float64; `where` says what to call the cell with an index."""
    array = np.asarray(cells)
    if array.dtype.kind in "fiub" and np.isfinite(array).all():
        return array.astype(np.float64)
    for index, cell in enumerate(array.reshape(-1)):
        if not is_number(cell):
            said = f"{shown(cell)!r} is not a number" if str(cell).strip() else "is empty"
            raise ValueError(f"{where(index)}: {said}; give a number")
        if not math.isfinite(float(cell)):
            raise ValueError(f"{where(index)}: is {cell}; give a finite number")
    return array.astype(np.float64)
