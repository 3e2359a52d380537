"""Elements, or types of nodes, that a network was trained on: of others it knows nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable


def check_known(what: str, numbers: Iterable[int], known: Iterable[int], fix: str = "") -> None:
    """Atoms have no element that was not in the training set.

    Args:
        what: Where the atoms are, as the error begins.
        numbers: Their atomic numbers.
        known: Those of the training set.
        fix: What to do, if there is more to say.
    """
    there = {int(z) for z in known}
    strange = {int(z) for z in numbers} - there
    if strange:
        raise ValueError(
            f"{what} have {_symbols(strange)}; the potential was trained on {_symbols(there)} "
            f"alone{fix}"
        )


def warn_of_types(types: Iterable[int], known: Iterable[int]) -> None:
    """Warn of types of nodes that were not in the training set, whose embedding is as it was drawn.

    Args:
        types: Those of a graph.
        known: Those of the training set.
    """
    strange = sorted({int(each) for each in types} - {*known})
    if strange:
        warnings.warn(
            f"z: a graph has nodes of type {', '.join(map(str, strange))}, which no training graph "
            "had; nothing was learned about them, so do not rely on what is predicted",
            stacklevel=2,
        )


def _symbols(numbers: Iterable[int]) -> str:
    try:
        from ase.data import chemical_symbols
    except ImportError:
        return ", ".join(f"Z={z}" for z in sorted(numbers))
    return ", ".join(chemical_symbols[z] for z in sorted(numbers))
