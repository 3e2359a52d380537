"""Features of nodes and edges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from symgnn._argument_checks import unknown_name
from symgnn.data.files._csv_table import as_numbers
from symgnn.data.files._file_structure import FileStructure, require


def elements_of(structures: Iterable[FileStructure]) -> list[str]:
    """The elements that occur where no `x` was given, by atomic number."""
    numbers: set[int] = set()
    for structure in structures:
        if structure.z is not None and structure.x is None:
            numbers.update(structure.z.tolist())
    if not numbers:
        return []
    require("ase", "molecules", "elements")
    from ase.data import chemical_symbols

    if not 0 < min(numbers) <= max(numbers) < len(chemical_symbols):
        bad = next(n for n in sorted(numbers) if not 0 < n < len(chemical_symbols))
        raise ValueError(f"z: holds {bad}, which is not an atomic number; pass elements=...")
    return [chemical_symbols[number] for number in sorted(numbers)]


def node_features(
    structure: FileStructure, elements: Sequence[str], names: Sequence[str]
) -> np.ndarray | None:
    """`x [N, F]`: that of the file; a column for each element; the values with these names."""
    parts = [] if structure.x is None else [as_columns(structure.x)]
    if structure.z is not None and structure.x is None and elements:
        parts.append(one_hot(structure, elements))
    parts += [chosen(structure, "node", name, "features") for name in names]
    return np.concatenate(parts, axis=1) if parts else None


def one_hot(structure: FileStructure, elements: Sequence[str]) -> np.ndarray:
    """`[N, F]`, a column for each element."""
    from ase.data import atomic_numbers, chemical_symbols

    assert structure.z is not None
    unknown = [element for element in elements if element not in atomic_numbers]
    if unknown:
        raise ValueError(
            f"elements: {unknown[0]!r} is not the symbol of an element; give symbols, such as C, Na"
        )
    columns = structure.z[:, None] == np.array([atomic_numbers[e] for e in elements])[None]
    missing = np.flatnonzero(~columns.any(axis=1))
    if len(missing):
        symbol = chemical_symbols[structure.z[missing[0]]]
        raise ValueError(
            f"{structure.where}: atom {missing[0]} is {symbol}, which is not among elements="
            f"{list(elements)}"
        )
    return columns.astype(np.float64)


def chosen(structure: FileStructure, level: str, name: str, option: str) -> np.ndarray:
    """The values of nodes or edges with this name, as columns `[N, w]` of numbers."""
    values = structure.values[level]
    if name not in values:
        what = f"a value that {structure.where} has for each {level}"
        raise ValueError(unknown_name(option, name, values, what))
    array = values[name]
    width = max(1, array[:1].size)
    try:
        numbers = as_numbers(array, lambda index: structure.place(level, index // width, name))
    except ValueError as error:
        raise ValueError(f"{error}, or choose other columns with {option}") from None
    return as_columns(numbers)


def as_columns(array: np.ndarray) -> np.ndarray:
    """`[N, w]` of `[N, ...]`, also where N is 0."""
    return array.reshape(len(array), math.prod(array.shape[1:]))
