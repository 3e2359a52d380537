"""Energies of elements: as a table, and by least squares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from symgnn._argument_checks import check_finite
from symgnn.nn.node_types import ATOMS


def energy_table(references: Mapping[Any, float] | None) -> Tensor:
    """The energy of each atomic number `[119]` in float64, 0 where none is given."""
    table = torch.zeros(ATOMS, dtype=torch.float64)
    if not isinstance(references, Mapping | None):
        raise ValueError(
            f"references: is a {type(references).__name__}; give energies by element, such as "
            "{'H': -13.6}"
        )
    for element, energy in (references or {}).items():
        table[_number(element)] = check_finite(f"references.{element}", energy)
    return table


def _number(element: Any) -> int:
    """An atomic number, by itself or by its symbol."""
    if isinstance(element, str):
        try:
            from ase.data import atomic_numbers
        except ImportError:
            raise ValueError(
                f"references: {element!r} needs ase; install symgnn[atoms], or give atomic numbers"
            ) from None
        if element not in atomic_numbers:
            raise ValueError(f"references: {element!r} is not an element")
        return int(atomic_numbers[element])
    if isinstance(element, bool) or not isinstance(element, int) or not 0 <= element < ATOMS:
        raise ValueError(f"references: {element!r} is not an atomic number or a symbol")
    return element


def reference_energies(
    numbers: Sequence[Sequence[int] | Tensor], energies: Sequence[float]
) -> dict[int, float]:
    """The energy of each element, by least squares: `E ~ sum_i reference(z_i)`.

    Args:
        numbers: The atomic numbers of each structure.
        energies: The energy of each structure.

    Returns:
        The energy by atomic number. Where compositions do not tell elements apart, as in one
        compound alone, it is the solution of least norm.

    Example:
        >>> found = symgnn.nn.reference_energies([[1, 1], [1, 1, 8]], [-30.0, -110.0])
        >>> round(found[1], 6), round(found[8], 6)
        (-15.0, -80.0)
    """
    if len(numbers) != len(energies) or not len(numbers):
        raise ValueError(
            f"energies: there are {len(energies)} for {len(numbers)} structures; give one each"
        )
    rows = [np.asarray(each, dtype=np.int64) for each in numbers]
    elements = sorted({int(z) for row in rows for z in np.unique(row)})
    counts = np.array([[(row == z).sum() for z in elements] for row in rows], dtype=np.float64)
    wanted = np.asarray(energies, dtype=np.float64)
    if not np.isfinite(wanted).all():
        raise ValueError("energies: hold a number that is not finite; leave that structure out")
    found, *_ = np.linalg.lstsq(counts, wanted, rcond=None)
    return {z: float(energy) for z, energy in zip(elements, found, strict=True)}
