"""The bonds of molecules whose atoms have coordinates.

Where a SMILES string lists the heavy atoms as the coordinates do, the bonds are its own; else they
are RDKit's, from the geometry. Hydrogens, which SMILES leaves out, belong to the nearest heavy
atom.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

BOND_TYPES = ("single", "double", "triple", "aromatic")
#: What `Bonds.atoms` says of each atom, as RDKit finds it.
ATOM_KINDS = ("aromatic", "sp", "sp2", "sp3")
_HYBRIDS = ("SP", "SP2", "SP3")

#: Covalent radii in angstrom (Cordero et al. 2008) by atomic number: H, C, N, O, F.
_RADII = np.full(10, np.nan)
_RADII[[1, 6, 7, 8, 9]] = 0.31, 0.76, 0.71, 0.66, 0.57
# In all of QM9, bonds are shorter than the first multiple of the sum of the radii and other pairs
# of heavy atoms longer than the second, but for the molecules whose SMILES is that of another one.
_BONDED, _APART = 1.25, 1.1
_LONGEST_TO_HYDROGEN = 1.3  # angstrom


class Origin(IntEnum):
    """Where the bonds of a molecule are from."""

    SMILES = 0
    GEOMETRY = 1
    CONNECTIVITY = 2  # from geometry, but RDKit found no bond orders that fit: all are single


@dataclass(frozen=True)
class Bonds:
    """Bonds of one molecule: pairs of atoms `[B, 2]` and the index of each type `[B]`.

    `atoms` `[N, 4]` is 1 where an atom is of a kind of `ATOM_KINDS`; all 0 of `CONNECTIVITY`.
    """

    pairs: np.ndarray
    types: np.ndarray
    atoms: np.ndarray
    origin: Origin


def find_bonds(pos: np.ndarray, z: np.ndarray, smiles: str = "") -> Bonds:
    """The bonds of a neutral molecule with coordinates `[N, 3]` in angstrom and elements `[N]`."""
    found = _from_smiles(pos, z, smiles) if smiles else None
    return found or _from_geometry(pos, z)


def rdkit() -> Any:
    """RDKit's chemistry, quiet."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise ValueError("rdkit is not installed; pip install symgnn[molecules]") from None
    rdBase.DisableLog("rdApp.*")
    return Chem


def _from_smiles(pos: np.ndarray, z: np.ndarray, smiles: str) -> Bonds | None:
    """The bonds of the string; None where its atoms are not those at these coordinates."""
    molecule = rdkit().MolFromSmiles(smiles)
    heavy, hydrogen = np.flatnonzero(z > 1), np.flatnonzero(z == 1)
    atoms = [] if molecule is None else list(molecule.GetAtoms())
    if not len(heavy) or [atom.GetAtomicNum() for atom in atoms] != z[heavy].tolist():
        return None
    length = np.linalg.norm(pos[:, None] - pos[heavy][None], axis=2)  # [N, heavy]
    owner = length[hydrogen].argmin(axis=1)
    attached = np.bincount(owner, minlength=len(heavy))
    if attached.tolist() != [atom.GetTotalNumHs() for atom in atoms]:
        return None
    bonds = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _type(bond)) for bond in molecule.GetBonds()
    ]
    first, second, types = np.array(bonds, dtype=np.int64).reshape(-1, 3).T
    relative = length[heavy] / (_RADII[z[heavy]][:, None] + _RADII[z[heavy]])
    bonded = np.eye(len(heavy), dtype=bool)
    bonded[first, second] = bonded[second, first] = True
    if (
        (relative[bonded] > _BONDED).any()
        or (relative[~bonded] < _APART).any()
        or (length[hydrogen].min(axis=1) > _LONGEST_TO_HYDROGEN).any()
    ):
        return None
    pairs = np.concatenate(
        [heavy[np.stack([first, second], 1)], np.stack([heavy[owner], hydrogen], 1)]
    )
    kinds = np.zeros((len(z), len(ATOM_KINDS)), dtype=np.uint8)
    kinds[heavy] = _kinds(molecule)
    return Bonds(pairs, np.concatenate([types, np.zeros_like(hydrogen)]), kinds, Origin.SMILES)


def _from_geometry(pos: np.ndarray, z: np.ndarray) -> Bonds:
    """RDKit's bonds; without bond orders if RDKit finds none."""
    chem = rdkit()
    from rdkit.Chem import rdDetermineBonds

    molecule = chem.RWMol()
    for number in z.tolist():
        molecule.AddAtom(chem.Atom(number))
    conformer = chem.Conformer(len(z))
    conformer.SetPositions(np.ascontiguousarray(pos, dtype=np.float64))
    molecule.AddConformer(conformer)
    rdDetermineBonds.DetermineConnectivity(molecule)
    origin = Origin.GEOMETRY
    connected = chem.Mol(molecule)
    try:
        rdDetermineBonds.DetermineBondOrders(molecule, charge=0, maxIterations=1000)
        chem.SanitizeMol(molecule)
    except (ValueError, RuntimeError):
        molecule, origin = connected, Origin.CONNECTIVITY
    bonds = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _type(bond)) for bond in molecule.GetBonds()
    ]
    table = np.array(bonds, dtype=np.int64).reshape(-1, 3)
    return Bonds(table[:, :2], table[:, 2], _kinds(molecule), origin)


def _kinds(molecule: Any) -> np.ndarray:
    """Which atoms are aromatic, sp, sp2 and sp3: `[N, 4]`."""
    return np.array(
        [
            [atom.GetIsAromatic(), *(str(atom.GetHybridization()) == s for s in _HYBRIDS)]
            for atom in molecule.GetAtoms()
        ],
        dtype=np.uint8,
    ).reshape(-1, len(ATOM_KINDS))


def _type(bond: Any) -> int:
    return BOND_TYPES.index(str(bond.GetBondType()).lower())
