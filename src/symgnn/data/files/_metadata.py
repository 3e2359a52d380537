"""Metadata of graphs, by which `splits` and `folds` can divide them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from symgnn._argument_checks import unknown_name
from symgnn.data.files._file_structure import FileStructure
from symgnn.data.files._target_types import label_of

#: Of each graph, the text of a column; None where it has none.
Metadata = dict[str, list[str | None]]


def metadata_of(structures: Sequence[FileStructure]) -> Metadata:
    """By name: `name`, the SMILES, columns of the table of targets, values of the files.

    A value of nodes, such as a column of `nodes.csv`, counts where it is the same for all nodes of
    each graph.
    """
    each = [_of_structure(structure) for structure in structures]
    names = dict.fromkeys(name for found in each for name in found)
    return {name: [found.get(name) for found in each] for name in names}


def _of_structure(structure: FileStructure) -> dict[str, str | None]:
    found: dict[str, str | None] = {"name": structure.name}
    for level in ("node", "graph"):
        for name, array in structure.values[level].items():
            flat = np.asarray(array).reshape(-1)
            if flat.size and (
                flat.size == 1 or (level == "node" and bool((flat == flat[0]).all()))
            ):
                found[name] = label_of(flat[0])
    found |= structure.metadata
    if structure.smiles:
        found["smiles"] = structure.smiles
    return found


def column_of(graphs: Sequence[Data], metadata: Metadata, column: str) -> list[str]:
    """The text of a column for each graph: from the files, or an attribute of the graphs."""
    if column in metadata:
        values = list(metadata[column])
    else:
        values = [_attribute(graph, column) for graph in graphs]
        if all(value is None for value in values):
            known = list(metadata) or sorted(set().union(*(graph.keys() for graph in graphs)))
            raise ValueError(
                unknown_name("column", column, known, "a column, or one value of each graph")
            )
    for index, value in enumerate(values):
        if not value or value.lower() == "nan":
            raise ValueError(
                f"column: {called(graphs[index], index)} has no {column!r}, or several; give it one"
            )
    return [value for value in values if value is not None]


def _attribute(graph: Data, name: str) -> str | None:
    value: Any = getattr(graph, name, None)
    if isinstance(value, Tensor):
        value = value.reshape(-1).tolist()
    if isinstance(value, list | tuple | np.ndarray):
        value = value[0] if len(value) == 1 else None
    return None if value is None else label_of(value)


def called(graph: Data, index: int) -> str:
    """The name of a graph in a message."""
    name = getattr(graph, "name", None)
    return f"graph {index} ({name})" if name else f"graph {index}"
