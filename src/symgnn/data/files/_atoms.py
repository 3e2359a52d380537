"""Atoms: XYZ and extended XYZ frame by frame, and every other file that ASE reads."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from symgnn.data.files._declared import check_declared
from symgnn.data.files._file_structure import FileStructure, How, Piece
from symgnn.graphs.periodic import check_cell

#: Endings that are taken from a folder. Other files that ASE reads are named one by one.
SUFFIXES = (
    ".cif", ".pdb", ".traj", ".vasp", ".poscar", ".contcar", ".gen", ".xsf", ".cube", ".gro",
)  # fmt: skip


#: Positions of atoms that differ by less, in Angstrom, are the same.
SAME = 1e-5
#: Results of a calculation for each atom; all others are of the whole structure.
OF_ATOMS = ("forces", "charges", "magmoms", "energies", "stresses", "dipoles")


def frames(path: Path, how: How) -> Iterator[Piece]:
    """The frames of an XYZ file, as text."""
    texts: list[str] = []
    problem = None
    with path.open(encoding="utf-8-sig") as file:
        try:
            for text in _frames(file, path):
                texts.append(text)
        except ValueError as error:
            problem = error
    for index, text in enumerate(texts):
        place = f"frame {index}" if len(texts) > 1 or problem else ""
        yield Piece(path, place, text, len(text))
    if problem is not None:  # after the frames before it, which are good
        raise problem


def _frames(file: io.TextIOBase, path: Path) -> Iterator[str]:
    index = 0
    for line in file:
        if not line.strip():
            continue
        if not re.fullmatch(r"\d{1,18}", line.strip(), re.ASCII):
            raise ValueError(
                f"{path}, frame {index}: begins with {line.strip()[:40]!r}; "
                "it has to begin with its number of atoms"
            )
        count = int(line)
        # no more lines than there are, whatever the count says
        lines = [line, *islice(file, min(count, sys.maxsize - 1) + 1)]
        if len(lines) < count + 2:
            raise ValueError(
                f"{path}, frame {index}: is cut off, or its number of atoms is wrong: it has "
                f"{max(len(lines) - 2, 0):,} atoms, expected {count:,}"
            )
        _check_columns(lines, f"{path}, frame {index}")
        yield "".join(lines)
        index += 1


def _check_columns(lines: list[str], where: str) -> None:
    """The comment of an extended XYZ frame declares as many columns as its first atom has."""
    declared = re.search(r"Properties=\"?([^\s\"]+)", lines[1])
    if declared is None or len(lines) < 3:
        return
    said = sum(int(count[:18]) for count in re.findall(r":[A-Za-z]:(\d+)", declared[1], re.ASCII))
    there = len(lines[2].split())
    if said != there:
        raise ValueError(
            f"{where}: Properties says {said:,} columns, but its first atom has {there}; correct it"
        )


def parse_frame(piece: Piece, how: How) -> list[FileStructure]:
    """A frame of an XYZ file."""
    import ase.io

    try:
        atoms = ase.io.read(io.StringIO(piece.content), format="extxyz")
    except KeyError as error:
        raise ValueError(f"{error} is not an element") from None
    return [_structure(atoms, piece, how, piece.place.removeprefix("frame "))]


def _said(frame: Any, id: str) -> str | None:
    """The value of a key in the comment of a frame, as it is written: 001 is not 1."""
    if not isinstance(frame, str):
        return None
    comment = frame.split("\n", 2)[1] if frame.count("\n") > 1 else ""
    found = re.search(rf"(?:^|\s){re.escape(id)}=(?:\"([^\"]*)\"|'([^']*)'|(\S+))", comment)
    return next((text for text in found.groups() if text), None) if found else None


def parse_file(piece: Piece, how: How) -> list[FileStructure]:
    """All structures of a file, by ASE."""
    import ase.io

    check_declared(piece.path)
    found = ase.io.read(piece.path, index=":")
    if not found:
        raise ValueError("has no structures")
    several = len(found) > 1
    return [
        _structure(atoms, piece, how, str(index) if several else "")
        for index, atoms in enumerate(found)
    ]


def is_atoms(given: Any) -> bool:
    """Whether it is an `ase.Atoms`; ASE is not imported for that."""
    return any(
        base.__name__ == "Atoms" and base.__module__ == "ase.atoms" for base in type(given).__mro__
    )


def from_atoms(atoms: Any, name: str, where: str, how: How) -> FileStructure:
    """The structure of an `ase.Atoms`; its name is the value `how.id` of its info, else `name`."""
    if not len(atoms):
        raise ValueError(f"{where}: has no atoms")
    try:
        found = _structure(atoms, Piece(Path(name), "", None, 0), how, "")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    found.where, found.aliases = f"{where} ({found.name})", ()
    return found


def _structure(atoms: Any, piece: Piece, how: How, frame: str) -> FileStructure:
    """An `ase.Atoms`; `frame` is its number, if its file has several."""
    if atoms.pbc.any() and how.cell == "refuse":
        axes = ", ".join(axis for axis, periodic in zip("abc", atoms.pbc, strict=True) if periodic)
        raise ValueError(
            f"pbc: the structure is periodic along {axes}; pass cell='keep' for edges across the "
            "boundary of the cell, or cell='drop' to ignore the cell"
        )
    stem = piece.path.stem
    unused = _why_unused(atoms)
    results = atoms.calc.results if atoms.calc is not None and not unused else {}
    graph, node = {}, {}
    for name, value in {**atoms.info, **results}.items():
        array = np.asarray(value)
        if name in OF_ATOMS and name in results:
            node[name] = array
        elif array.ndim <= 1 and array.dtype.kind in "fiuU":
            graph[name] = array.reshape(-1)
    for name, array in atoms.arrays.items():
        if name not in ("numbers", "positions"):
            node[name] = array
    named = _said(piece.content, how.id) or atoms.info.get(how.id)
    if named is None or isinstance(named, bool):
        named = f"{stem}-{frame}" if frame else stem
    extra = {}
    if atoms.pbc.any() and how.cell == "keep":
        check_cell(atoms.cell.array, atoms.pbc, 3)
        extra = {"cell": atoms.cell.array[None].copy(), "pbc": atoms.pbc[None].copy()}
    return FileStructure(
        str(named),
        piece.where if piece.place or not frame else f"{piece.path}, frame {frame}",
        atoms.positions,
        z=atoms.numbers,
        aliases=() if frame else (stem, piece.path.name),
        values={"graph": graph, "node": node, "edge": {}},
        extra=extra,
        unused=unused,
    )


def _why_unused(atoms: Any) -> str:
    """Why the results of a calculator are not those of the atoms; "" if they are.

    A translation, and vectors of a periodic cell, change neither energy nor forces.
    """
    calc = atoms.calc
    if calc is None:
        return ""
    if not calc.results:
        return "its calculator has no results yet, so call get_forces() or get_stress() first"
    then: Any = getattr(calc, "atoms", None)
    if not is_atoms(then):
        return ""
    pbc = atoms.pbc
    same = (
        np.array_equal(then.numbers, atoms.numbers)
        and np.array_equal(then.pbc, pbc)
        and np.allclose(then.cell.array[pbc], atoms.cell.array[pbc], rtol=0, atol=SAME)
    )
    if same:
        moved = atoms.positions - then.positions
        moved -= moved[:1]
        if pbc.any() and atoms.cell.rank >= pbc.sum():
            cell = atoms.cell.complete()
            moved -= (np.round(cell.scaled_positions(moved)) * pbc) @ cell.array
        same = bool((np.abs(moved) <= SAME).all())
    return "" if same else "its calculator has results of another structure, so compute them anew"
