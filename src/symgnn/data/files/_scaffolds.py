"""Bemis-Murcko scaffolds: the rings of a molecule and what joins them."""

from __future__ import annotations

from collections.abc import Sequence

from torch_geometric.data import Data

from symgnn.data.files._file_structure import require
from symgnn.data.files._metadata import Metadata, column_of


def scaffolds_of(graphs: Sequence[Data], metadata: Metadata) -> list[str]:
    """The scaffold of each molecule as SMILES without stereochemistry; "" where it has no ring.

    Molecules come from SMILES or SDF files, or graphs have an attribute `smiles`.
    """
    require("rdkit", "molecules", "by: scaffold")
    try:
        smiles = column_of(graphs, metadata, "smiles")
    except ValueError:
        raise ValueError(
            "by: scaffold needs molecules with bonds; read SMILES or SDF files, or give each graph "
            "an attribute smiles"
        ) from None
    return [scaffold(text) for text in smiles]


def scaffold(smiles: str) -> str:
    """The Bemis-Murcko scaffold of a molecule.

    >>> scaffold("CCc1ccccc1")
    'c1ccccc1'
    """
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold
    from rdkit.rdBase import BlockLogs

    with BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"by: scaffold: RDKit cannot read the SMILES {smiles!r}")
    return MurckoScaffold.MurckoScaffoldSmiles(mol=molecule, includeChirality=False)
