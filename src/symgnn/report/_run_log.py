"""The log of a run, `log.csv`: a row for each validation and seed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from symgnn.store import write_whole

Row = dict[str, float]


def read_log(path: Path) -> list[Row]:
    """The complete rows of a `log.csv`."""
    if not path.exists():
        return []
    head, *lines = _complete_lines(path) or [""]
    for line in lines:
        _epoch(line, path)
    rows = csv.DictReader([head, *lines])
    return [{name: float(value) for name, value in row.items()} for row in rows]


def keep_rows(path: Path, epoch: int) -> None:
    """Only the rows up to this epoch, of a file that may end in the middle of one."""
    if path.exists():
        head, *lines = _complete_lines(path) or [""]
        kept = [line for line in lines if _epoch(line, path) <= epoch]
        write_whole(path, "".join([head, *kept]).encode() if kept else b"")


def append_rows(path: Path, rows: list[Row]) -> None:
    """Add rows, with a head if the file is new."""
    new = not path.exists() or not path.stat().st_size
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(as_csv(rows, head=new))


def as_csv(rows: list[Row], head: bool = True) -> str:
    """Rows of a log as text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    if head:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _epoch(line: str, path: Path) -> int:
    first = line.partition(",")[0]
    if not first.isdigit():
        raise ValueError(
            f"{path}: {line.strip()[:40]!r} is no row of the log; restore or delete the file"
        )
    return int(first)


def _complete_lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [line for line in file if line.endswith("\n")]
