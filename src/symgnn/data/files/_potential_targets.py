"""Energies, forces and stress of atoms as the targets of one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symgnn._argument_checks import unknown_name
from symgnn.data._task import Task
from symgnn.data.files._file_structure import FileStructure
from symgnn.data.files._graph_list import Troubles

#: The columns of each target, and their unit.
COLUMNS = {
    "energy": (("energy",), "eV/atom"),
    "forces": (("force_x", "force_y", "force_z"), "eV/A"),
    "stress": (tuple(f"stress_{c}" for c in ("xx", "yy", "zz", "yz", "xz", "xy")), "eV/A^3"),
}


def potential_task(targets: Sequence[str]) -> Task:
    """The task of a potential, whose first target is the energy.

    Args:
        targets: "energy", "forces" and "stress", or some of them.
    """
    for name in targets:
        if name not in COLUMNS:
            raise ValueError(unknown_name("targets", name, COLUMNS, "a target of a potential"))
    if "energy" not in targets:
        raise ValueError("targets: have no 'energy'; forces and stress are its derivatives, add it")
    chosen = [name for name in COLUMNS if name in targets]
    names = tuple(column for name in chosen for column in COLUMNS[name][0])
    units = tuple(COLUMNS[name][1] for name in chosen for _ in COLUMNS[name][0])
    return Task("potential", "regression", names, units)


def potential_targets(
    structures: Sequence[FileStructure],
    columns: Sequence[str] | None,
    missing: str,
    troubles: Troubles,
) -> tuple[list[np.ndarray | None], Task]:
    """`y [N, columns]` of each structure, None for those to leave out, and the task.

    The first row has the energy per atom and the stress; below, these are NaN.
    """
    columns = tuple(columns or ("energy", "forces"))
    task = potential_task(columns)
    found: list[np.ndarray | None] = []
    for structure in structures:
        if structure.z is None or structure.pos.shape[1] != 3:
            raise ValueError(f"{structure.where}: has no atoms; potentials are of atoms in 3-d")
        try:
            found.append(_rows(structure, columns, missing == "mask"))
        except ValueError as error:
            troubles.add(f"{structure.where}: {error}")
            found.append(None)
    return found, task


def _rows(structure: FileStructure, columns: Sequence[str], masked: bool) -> np.ndarray:
    count = len(structure.pos)
    parts = []
    for name in COLUMNS:
        if name not in columns:
            continue
        width = len(COLUMNS[name][0])
        rows = np.full((count, width), np.nan)
        given = _value(structure, name, count)
        if given is None and (structure.unused or not masked):
            raise ValueError(_said_missing(name, structure))
        if given is not None:
            if not np.isfinite(given).all():
                raise ValueError(f"{name}: has a number that is not finite; correct it")
            if name == "forces":
                rows[:] = given
            else:
                rows[0] = given / count if name == "energy" else given
        parts.append(rows)
    return np.concatenate(parts, axis=1)


def _said_missing(name: str, structure: FileStructure) -> str:
    """The error on a missing target, with values of the structure that may be meant."""
    if structure.unused:
        return f"{name}: is missing; {structure.unused}"
    values = structure.values["node" if name == "forces" else "graph"]
    near = [repr(key) for key in values if name.rstrip("s") in key.lower()]
    there = f" ({', '.join(near)} is not read)" if near else ""
    fix = f"rename one to {name!r}" if near else "add it"
    return f"{name}: is missing{there}; {fix}, remove it from the targets, or pass missing='mask'"


def _value(structure: FileStructure, name: str, count: int) -> np.ndarray | None:
    """The energy `[1]`, forces `[N, 3]` or stress `[6]` of a structure."""
    given: Any = structure.values["node" if name == "forces" else "graph"].get(name)
    if given is None:
        return None
    try:
        array = np.asarray(given, dtype=np.float64)
    except ValueError:
        raise ValueError(f"{name}: is {np.asarray(given).ravel()[0]!s}; give a number") from None
    if name == "stress" and array.size == 9:
        matrix = array.reshape(3, 3)
        array = ((matrix + matrix.T) / 2)[[0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]]
    shape = {"energy": (1,), "forces": (count, 3), "stress": (6,)}[name]
    if array.size != np.prod(shape):
        raise ValueError(f"{name}: has shape {list(array.shape)}; give {list(shape)}")
    return array.reshape(shape)
