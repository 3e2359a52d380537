"""Molecules with one stereocentre each, labelled R or S by RDKit, on different ring scaffolds."""

from __future__ import annotations

import random

import torch
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem
from torch_geometric.data import Data

ELEMENTS = ("H", "C", "N", "O", "F", "S", "Cl", "Br")
SUBSTITUENTS = ("[H]", "F", "Cl", "Br", "O", "N", "S", "C", "OC", "C#N", "C(F)(F)F", "CO", "CC")
#: Rings that are bound to the centre, at a carbon next to carbons: those to learn from, and others.
TRAINING = ("c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCOC1", "C1CC1")
HELD_OUT = ("c1ccsc1", "C1CCCC1", "c1ccc2ccccc2c1", "C1CCNCC1", "c1ccoc1")


def graph_of(mol: Chem.Mol) -> Data:
    """Atoms with element and atomic number, bonds as edges both ways, and a conformer."""
    number = torch.tensor([[atom.GetAtomicNum() / 10] for atom in mol.GetAtoms()])
    kinds = [ELEMENTS.index(atom.GetSymbol()) for atom in mol.GetAtoms()]
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()]
    one_way = torch.tensor(bonds).T
    pos = torch.tensor(mol.GetConformer().GetPositions(), dtype=torch.float32)
    return Data(
        pos=pos - pos.mean(0),
        x=torch.cat([torch.eye(len(ELEMENTS))[kinds], number], 1),
        edge_index=torch.cat([one_way, one_way.flip(0)], 1),
    )


def embedded(smiles: str, seed: int = 1) -> Chem.Mol | None:
    """A molecule with hydrogens and a conformer; None where RDKit finds none."""
    RDLogger.DisableLog("rdApp.*")
    mol = Chem.MolFromSmiles(smiles)
    mol = None if mol is None else Chem.AddHs(mol)
    if mol is None or AllChem.EmbedMolecule(mol, randomSeed=seed) != 0:
        return None
    return mol


def stereocentres(count: int, scaffolds: tuple[str, ...], seed: int) -> list[Data]:
    """Random molecules with one stereocentre on one of the scaffolds; y is 1 for R, 0 for S."""
    draw = random.Random(seed)
    found: list[Data] = []
    while len(found) < count:
        ring = draw.choice(scaffolds)
        three = draw.sample(SUBSTITUENTS, 3)
        hand = draw.choice(("@", "@@"))
        first = "[H]" if "[H]" in three else ""
        rest = [each for each in three if each != "[H]"]
        centre = f"[C{hand}{'H' if first else ''}]"
        smiles = f"{rest[0]}{centre}({')('.join(rest[1:])}){ring}"
        if rest[0] in ("OC", "C#N", "C(F)(F)F", "CO", "CC"):
            smiles = f"{centre}({')('.join(rest)}){ring}"
        mol = embedded(smiles, draw.randrange(1, 10**6))
        if mol is None:
            continue
        Chem.AssignStereochemistryFrom3D(mol)
        labels = Chem.FindMolChiralCenters(mol, useLegacyImplementation=False)
        if len(labels) == 1 and labels[0][1] in "RS":
            data = graph_of(mol)
            data.y = torch.tensor([int(labels[0][1] == "R")])
            found.append(data)
    return found
