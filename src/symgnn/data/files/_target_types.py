"""Targets of files become numbers or classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symgnn.data._task import Task
from symgnn.data.files._csv_table import as_numbers, is_missing, is_number
from symgnn.data.files._graph_list import Troubles
from symgnn.data.files._vector_targets import Column


class Cells(NamedTuple):
    """The targets of a structure as they were found, `[rows, C]`."""

    values: np.ndarray
    where: Callable[[int, int], str]  # what to call a cell


class Found(NamedTuple):
    """The targets of all structures; None for those that have none."""

    cells: list[Cells | None]
    level: str
    names: list[str]
    units: list[str]
    columns: list[Column]  # as they were asked for


def kind_of(found: Found, given: bool) -> str:
    """Text is a class; so are whole numbers if they are `given`, as the y of a PyG graph."""
    if given and _whole(found):
        return "classification"
    text = []
    for column, name in enumerate(found.names):
        cells = [
            cell
            for mine in found.cells
            if mine is not None
            for cell in mine.values[:, column]
            if not is_missing(cell)
        ]
        if cells and not any(map(is_number, cells)):
            if all(looks_like_number(str(cell)) for cell in cells):
                raise ValueError(
                    f"columns: {name} has {str(cells[0])!r}, which looks like a number but is not "
                    "written as one; write numbers as 1234.5, with the unit in the header, "
                    f"{name} [eV]; or pass kind='classification'"
                )
            text.append(name)
    if text and len(found.names) > 1:
        rest = [name for name in found.names if name not in text]
        raise ValueError(
            f"columns: {', '.join(text)} is text; name one class, such as columns=[{text[0]!r}], "
            f"or numbers only{f', such as columns={rest}' if rest else ''}"
        )
    return "classification" if text else "regression"


def looks_like_number(text: str) -> bool:
    """With a decimal comma, thousands set apart, a unit, a sign of its own, or an uncertainty."""
    match = _NUMBER.fullmatch(text.strip())
    return match is not None and bool(re.search(r"[<>~≈≤≥±%−–.,'’()]|\d\s\d", text))


_NUMBER = re.compile(
    r"[<>~≈≤≥]*\s*[-+−–]?\s*\d+(?:[.,'’\s]\d+)*(?:[eE][-+−]?\d+)?"
    r"\s*(?:%|(?:±|\+/-|\().*|[^\W\d_]\S*)?"
)


def _whole(found: Found) -> bool:
    cells = [cell for mine in found.cells if mine is not None for cell in mine.values.flat]
    return len(found.names) == 1 and all(isinstance(cell, int) for cell in cells)


#: The fix for a missing label.
_MASK = "or pass missing='mask' (in YAML data.missing: mask) to train without this label"


def numbers_of(cells: Cells, troubles: Troubles, masked: bool = False) -> np.ndarray | None:
    """`[rows, C]` in float64; where it is `masked`, a missing number is NaN."""
    width = cells.values.shape[1]
    flat = cells.values.reshape(-1)

    def where(index: int) -> str:
        return cells.where(index // width, index % width)

    lacking = np.array([is_missing(cell) for cell in flat], dtype=bool)
    if lacking.any() and not masked:
        first = int(lacking.argmax())
        said = f"is {flat[first]}" if str(flat[first]).strip() else "is empty"
        troubles.add(f"{where(first)}: {said}; give a number, {_MASK}")
        return None
    try:
        found = as_numbers(np.where(lacking, 0.0, flat), where)
    except ValueError as error:
        troubles.add(str(error))
        return None
    found[lacking] = np.nan
    return found.reshape(-1, width)


def classes_of(
    found: Found, troubles: Troubles, masked: bool = False
) -> tuple[list[np.ndarray | None], Task]:
    """Whole numbers `[rows]`, and the classes they stand for; -1 is missing, if `masked`."""
    if len(found.names) > 1:
        raise ValueError(
            f"columns: {', '.join(found.names)} are {len(found.names)} columns; a classification "
            "has one"
        )
    labels: list[list[str] | None] = []
    for cells in found.cells:
        mine = None
        if cells is not None:
            column = cells.values[:, 0]
            mine = ["" if is_missing(cell) else label_of(cell) for cell in column]
            if "" in mine and not masked:
                first = mine.index("")
                said = f"is {column[first]}" if str(column[first]).strip() else "is empty"
                troubles.add(f"{cells.where(first, 0)}: {said}; give a class, {_MASK}")
                mine = None
        labels.append(mine)
    known = {label for mine in labels if mine is not None for label in mine if label}
    order = sorted(known, key=lambda label: (float(label) if is_number(label) else 0.0, label))
    if len(order) < 2:
        raise ValueError(
            f"columns: {found.names[0]} has only the classes {order}; a classification needs 2"
        )
    number = {"": -1, **{label: index for index, label in enumerate(order)}}
    ys = [None if mine is None else np.array([number[label] for label in mine]) for mine in labels]
    task = Task(found.level, "classification", tuple(found.names), classes=tuple(order))  # type: ignore[arg-type]
    return ys, task


def label_of(cell: object) -> str:
    """The number 2.0 is the class 2; text is as it is, 007 is not 7."""
    text = str(cell).strip()
    whole = re.fullmatch(r"([-+]?(?:0|[1-9]\d*))\.0*", text)
    return whole[1] if whole else text
