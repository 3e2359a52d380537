"""Molecules by RDKit: SDF, and SMILES with a conformer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from symgnn._argument_checks import shown
from symgnn.data.files._csv_table import read_table
from symgnn.data.files._file_structure import FileStructure, How, Piece, Rows, require

END = "$$$$"
#: Atoms of a molecule, with its hydrogens, that RDKit finds a conformer of in minutes.
LARGEST = 1000
#: The columns of `edge_attr`.
BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")


class Smiles(str):
    """A SMILES string, to distinguish it from a file name: `read(Smiles("CCO"))`."""

    __slots__ = ()


def from_smiles(smiles: Smiles, how: How) -> FileStructure:
    """The molecule of a SMILES, which is also its name, with its hydrogens and one conformer."""
    require("rdkit", "molecules", f"the SMILES {str(smiles)!r}")
    text = str(smiles).strip()
    piece = Piece(Path(), f"the SMILES {text!r}", (text, text, {}, {}), len(text))
    try:
        (found,) = parse_smiles(piece, how)
    except ValueError as error:
        raise ValueError(f"{piece.place}: {str(error).removeprefix(f'{text}: ')}") from None
    found.where = piece.place
    found.rows = {}
    return found


def blocks(path: Path, how: How) -> Iterator[Piece]:
    """The entries of an SDF, as text; a .mol file has one."""
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read()
    texts = re.split(r"^\$\$\$\$.*\n?", text, flags=re.MULTILINE)
    texts = texts if texts[-1].strip() else texts[:-1]
    for index, text in enumerate(texts):
        yield Piece(path, f"entry {index}" if len(texts) > 1 else "", text, len(text))


def parse_block(piece: Piece, how: How) -> list[FileStructure]:
    """An entry of an SDF: its own coordinates, or with `conformers` new ones."""
    from rdkit import Chem
    from rdkit.rdBase import BlockLogs

    with BlockLogs():
        supplier = Chem.SDMolSupplier()
        supplier.SetData(piece.content + END + "\n", sanitize=False, removeHs=False)
        molecule = next(iter(supplier), None)
        if molecule is None:
            raise ValueError("RDKit cannot read it: it is not a mol block")
        _sanitize(molecule)
        if how.conformers:
            molecule = conformer(molecule, how.seed)
        elif not molecule.GetConformer().Is3D() and how.conformers is None:
            raise ValueError(
                "its coordinates are a drawing in 2 dimensions; pass conformers=True to have "
                "RDKit make 3-dimensional ones, or conformers=False to take them as they are"
            )
    values = molecule.GetPropsAsDict(autoConvertStrings=True)
    title = molecule.GetProp("_Name").strip() if molecule.HasProp("_Name") else ""
    number = piece.place.removeprefix("entry ")
    named = molecule.GetProp(how.id).strip() if molecule.HasProp(how.id) else title
    values.pop(how.id, None)
    found = _structure(molecule, piece, named, number, values)
    found.smiles = Chem.MolToSmiles(Chem.RemoveHs(molecule))
    return [found]


def lines(path: Path, how: How) -> Iterator[Piece]:
    """The lines of a .smi file: a SMILES, and after a blank perhaps a name."""
    with path.open(encoding="utf-8") as file:
        for row, line in enumerate(file, 1):
            smiles, _, name = line.strip().partition(" " if "\t" not in line else "\t")
            if smiles and not (row == 1 and smiles.lower() == "smiles"):
                yield Piece(path, f"row {row}", (smiles, name.strip(), {}, {}), len(line))


def smiles_rows(path: Path, how: How) -> Iterator[Piece]:
    """The rows of a CSV with a column `smiles`; the others are values of the molecules."""
    table = read_table(path)
    header = {name.lower(): name for name in table.columns}
    smiles = table.text(header["smiles"])
    names = table.text(how.id) if how.id in table.columns else [""] * len(smiles)
    others = [name for name in table.columns if name not in (header["smiles"], how.id)]
    for index, row in enumerate(table.cells):
        values = {name: row[table.columns[name]] for name in others}
        content = (smiles[index], names[index], values, table.units)
        yield Piece(path, f"row {table.rows[index]}", content, sum(map(len, row)))


def parse_smiles(piece: Piece, how: How) -> list[FileStructure]:
    """A molecule with its hydrogens, and one conformer."""
    from rdkit import Chem
    from rdkit.rdBase import BlockLogs

    smiles, name, values, units = piece.content
    with BlockLogs():
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None or not molecule.GetNumAtoms():
            raise ValueError(
                f"{shown(name) or 'it'}: RDKit cannot read the SMILES {shown(smiles)!r}"
            )
        try:
            _sanitize(molecule)
            molecule = conformer(molecule, how.seed)
        except ValueError as error:
            called = shown(smiles)
            called = f"{shown(name)} ({called})" if name not in ("", smiles) else called
            raise ValueError(f"{called}: {error}") from None
    found = _structure(molecule, piece, name, piece.place.removeprefix("row "), values)
    found.value_units, found.smiles = units, smiles
    found.extra["smiles"] = smiles
    number = piece.place.removeprefix("row ")
    if number.isdigit():
        found.rows["graph"] = Rows(piece.path, [int(number)])
    return [found]


def conformer(molecule: Any, seed: int) -> Any:
    """The molecule with all hydrogens and the coordinates of one conformer: ETKDG, then MMFF."""
    from rdkit.Chem import AddHs, GetMolFrags, rdDistGeom, rdForceFieldHelpers

    fragments = len(GetMolFrags(molecule))
    if fragments > 1:
        raise ValueError(
            f"it has {fragments} molecules, and RDKit cannot place them relative to each other; "
            "keep one of them"
        )
    molecule = AddHs(molecule)
    if molecule.GetNumAtoms() > LARGEST:
        raise ValueError(
            f"it has {molecule.GetNumAtoms():,} atoms, and conformers are made of up to {LARGEST:,}"
            "; give its coordinates in an SDF or XYZ file"
        )
    parameters: Any = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    if rdDistGeom.EmbedMolecule(molecule, parameters) != 0:
        parameters.useRandomCoords = True
        if rdDistGeom.EmbedMolecule(molecule, parameters) != 0:
            raise ValueError("RDKit finds no conformer")
    if rdForceFieldHelpers.MMFFHasAllMoleculeParams(molecule):
        rdForceFieldHelpers.MMFFOptimizeMolecule(molecule, maxIters=1000)
    return molecule


def _sanitize(molecule: Any) -> None:
    from rdkit import Chem

    problems = [problem.Message() for problem in Chem.DetectChemistryProblems(molecule)]
    try:
        Chem.SanitizeMol(molecule)
    except ValueError as error:
        reason = problems[0] if problems else str(error).partition("\n")[0]
        raise ValueError(f"RDKit rejects it: {reason}") from None


def _structure(
    molecule: Any, piece: Piece, name: str, number: str, values: dict[str, Any]
) -> FileStructure:
    stem = piece.path.stem
    single = not piece.place
    bonds = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), str(bond.GetBondType()))
        for bond in molecule.GetBonds()
    ]
    pairs = np.array([bond[:2] for bond in bonds], dtype=np.int64).reshape(-1, 2)
    kinds = np.array([[kind == bond[2] for kind in BONDS] for bond in bonds], dtype=np.float64)
    kinds = kinds.reshape(-1, len(BONDS))
    return FileStructure(
        name or (stem if single else f"{stem}-{number}"),
        piece.where,
        molecule.GetConformer().GetPositions(),
        z=np.array([atom.GetAtomicNum() for atom in molecule.GetAtoms()]),
        edges=np.concatenate([pairs, pairs[:, ::-1]]).T,
        joined="bonds",
        edge_attr=np.concatenate([kinds, kinds]),
        aliases=(stem, piece.path.name) if single else (),
        values={
            "graph": {key: np.array([value], dtype=object) for key, value in values.items()},
            "node": {},
            "edge": {},
        },
    )
