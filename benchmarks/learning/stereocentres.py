"""Random molecules with one stereocentre, labelled R or S by RDKit."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem
from torch_geometric.data import Data

ELEMENTS = ("H", "C", "N", "O", "F", "S", "Cl", "Br")
BONDS = (1.0, 2.0, 3.0, 1.5)
SUBSTITUENTS = ("[H]", "F", "Cl", "Br", "O", "N", "S", "C", "OC", "C#N", "C(F)(F)F", "CO", "CC")


def graph_of(mol: Chem.Mol) -> Data:
    """Elements and atomic numbers, bonds both ways with their types, and a conformer."""
    number = torch.tensor([[atom.GetAtomicNum() / 10] for atom in mol.GetAtoms()])
    kinds = [ELEMENTS.index(atom.GetSymbol()) for atom in mol.GetAtoms()]
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()]
    types = torch.eye(len(BONDS))[[BONDS.index(b.GetBondTypeAsDouble()) for b in mol.GetBonds()]]
    one_way = torch.tensor(bonds).T
    pos = torch.tensor(mol.GetConformer().GetPositions(), dtype=torch.float32)
    return Data(
        pos=pos - pos.mean(0),
        x=torch.cat([torch.eye(len(ELEMENTS))[kinds], number], 1),
        edge_index=torch.cat([one_way, one_way.flip(0)], 1),
        edge_attr=torch.cat([types, types]),
    )


def embedded(smiles: str, seed: int = 1) -> Chem.Mol | None:
    """A molecule with hydrogens and a conformer; None where RDKit finds none."""
    RDLogger.DisableLog("rdApp.*")
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    return mol if AllChem.EmbedMolecule(mol, randomSeed=seed) == 0 else None


def molecule(ring: str, draw: random.Random) -> Data | None:
    """A random molecule on a ring; None where it has no stereocentre or no conformer."""
    three = draw.sample(SUBSTITUENTS, 3)
    hydrogen = "H" if "[H]" in three else ""
    rest = [each for each in three if each != "[H]"]
    smiles = f"[C{draw.choice(('@', '@@'))}{hydrogen}]({')('.join(rest)}){ring}"
    mol = embedded(smiles, draw.randrange(1, 10**6))
    if mol is None:
        return None
    Chem.AssignStereochemistryFrom3D(mol)
    labels = Chem.FindMolChiralCenters(mol, useLegacyImplementation=False)
    if len(labels) != 1 or labels[0][1] not in "RS":
        return None
    data = graph_of(mol)
    data.y, data.ring = torch.tensor([float(labels[0][1] == "R")]), ring
    return data


def stereocentres(count: int, rings: Sequence[str], seed: int) -> list[Data]:
    """Random molecules on rings, half of them R (y = 1) and half S (y = 0)."""
    draw, found = random.Random(seed), {0.0: [], 1.0: []}  # type: ignore[var-annotated]
    while any(len(each) < count // 2 for each in found.values()):
        data = molecule(draw.choice(rings), draw)
        if data is not None and len(found[float(data.y)]) < count // 2:
            found[float(data.y)].append(data)
    both = [*found[0.0], *found[1.0]]
    draw.shuffle(both)
    return both
