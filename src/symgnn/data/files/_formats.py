"""Which files there are, and who reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from symgnn.data.files import _arrays as arrays
from symgnn.data.files import _atoms as atoms
from symgnn.data.files import _meshes as meshes
from symgnn.data.files import _molecules as molecules
from symgnn.data.files import _points as points
from symgnn.data.files._csv_table import header_of
from symgnn.data.files._file_structure import How, Reader, require, whole

_RDKIT = ("rdkit", "molecules")
ASE = Reader(whole, atoms.parse_file, "ase", "molecules")
XYZ = Reader(atoms.frames, atoms.parse_frame, "ase", "molecules")
SDF = Reader(molecules.blocks, molecules.parse_block, *_RDKIT)
SMI = Reader(molecules.lines, molecules.parse_smiles, *_RDKIT)
SMILES = Reader(molecules.smiles_rows, molecules.parse_smiles, *_RDKIT)
MESH = Reader(whole, meshes.parse, "trimesh", "mesh")
POINTS = Reader(whole, points.parse)

#: By the ending of the file; of a CSV, the header decides.
READERS = {
    ".xyz": XYZ,
    ".extxyz": XYZ,
    ".sdf": SDF,
    ".mol": SDF,
    ".smi": SMI,
    ".npz": Reader(whole, arrays.parse_npz),
    ".pt": Reader(whole, arrays.parse_pt),
    **dict.fromkeys(meshes.SUFFIXES, MESH),
    **dict.fromkeys(atoms.SUFFIXES, ASE),
}
TABLES = (".csv", ".tsv")


class File(NamedTuple):
    """A file, who reads it, and the folder that was asked for, if it was found in one."""

    path: Path
    reader: Reader
    folder: Path | None = None


def find(
    paths: Sequence[str | os.PathLike[str]], how: How, leave: Sequence[Path] = ()
) -> list[File]:
    """The files of folders, patterns and paths, sorted in each; `leave` are not for reading."""
    left = {path.resolve() for path in leave}
    found: dict[Path, File] = {}
    for given in paths:
        path = Path(given).expanduser()
        if path.is_dir():
            files = _of_folder(path, how, left)
        elif path.exists():
            files = [_file(path, how)]
        else:
            matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
            files = [_file(match, how) for match in matches if match.resolve() not in left]
            if not files:
                raise ValueError(f"path: there is no {path}; give a file, a folder or a pattern")
        found |= {file.path: file for file in files if file.path not in found}
    for file in found.values():
        require(file.reader.package, file.reader.extra, file.path)
    return list(found.values())


def files_of(files: Sequence[File]) -> list[Path]:
    """All that is read, with the edges beside files of nodes."""
    found = []
    for file in files:
        beside = points.edges_beside(file.path) if file.reader is POINTS else None
        found += [file.path] if beside is None else [file.path, beside]
    return found


def _of_folder(folder: Path, how: How, left: set[Path]) -> list[File]:
    """All files below a folder that can be read, hidden ones left out."""
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    ]
    found = [
        File(path, reader, folder)
        for path in paths
        if path.resolve() not in left and (reader := _reader(path, how)) is not None
    ]
    if not found:
        endings = sorted({path.suffix or path.name for path in paths})
        has = f"only files {', '.join(endings[:6])}" if endings else "no files"
        raise ValueError(
            f"path: the folder {folder} has {has}; structures are {', '.join(READERS)}, "
            "or CSV files with columns x, y or smiles"
        )
    return found


def _file(path: Path, how: How) -> File:
    """A file that was named: if nobody else reads it, ASE may."""
    reader = _reader(path, how)
    if reader is None and path.suffix.lower() in TABLES:
        needed = ", ".join(how.positions) or "x, y, ... or smiles"
        raise ValueError(f"{path}: has no structures; its header needs columns {needed}")
    return File(path, reader or ASE)


def _reader(path: Path, how: How) -> Reader | None:
    suffix = path.suffix.lower()
    if suffix not in TABLES:
        return READERS.get(suffix)
    if path.stem.endswith("edges"):
        return None
    header = header_of(path)
    if "smiles" in map(str.lower, header):
        return SMILES
    return POINTS if set(how.positions or points.POSITIONS[:1]) <= set(header) else None
