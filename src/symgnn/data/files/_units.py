"""Coordinates of atoms are in Angstrom: converted, or if that was not asked for, checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from symgnn._argument_checks import unknown_name
from symgnn.data.files._file_structure import FileStructure, require

#: In Angstrom.
UNITS = {"angstrom": 1.0, "bohr": 0.529177210903, "nm": 10.0, "pm": 0.01}
#: How far an atom is from its nearest, in sums of their covalent radii. Of the molecules of the G2
#: set all are from 0.77 to 1.25; in Bohr they would be from 1.46 on.
USUAL = (0.6, 1.35)


def to_angstrom(structures: Sequence[FileStructure], units: str | None) -> float:
    """Convert coordinates and velocities of atoms from `units`, and give the factor; without, see
    whether they can be Angstrom.
    """
    molecules = [structure for structure in structures if structure.z is not None]
    if not molecules:
        return 1.0
    if units is None:
        check_units(molecules)
    elif units not in UNITS:
        raise ValueError(unknown_name("units", units, UNITS, "a known length of atoms"))
    else:
        for structure in molecules:
            structure.pos = structure.pos * UNITS[units]
            for name in ("vel", "cell", "edge_shift"):
                if name in structure.extra:
                    structure.extra[name] = structure.extra[name] * UNITS[units]
        return UNITS[units]
    return 1.0


def check_units(molecules: Sequence[FileStructure]) -> None:
    """The nearest atoms are about their covalent radii apart."""
    require("ase", "molecules", "units of atoms")
    apart = [spacing(structure) for structure in molecules]
    unusual = [
        (structure, ratio)
        for structure, ratio in zip(molecules, apart, strict=True)
        if ratio is not None and not USUAL[0] <= ratio <= USUAL[1]
    ]
    if not unusual:
        return
    structure, ratio = unusual[0]
    near = min(UNITS, key=lambda unit: abs(math.log(max(ratio, 1e-9) * UNITS[unit])))
    more = f" (and {len(unusual) - 1} more)" if len(unusual) > 1 else ""
    fits = near != "angstrom" and USUAL[0] <= ratio * UNITS[near] <= USUAL[1]
    looks = f"look like {near}: pass units={near!r}" if fits else "look wrong: correct them"
    raise ValueError(
        f"units: {structure.where}{more}: nearest atoms are {ratio:.2g} times their covalent radii "
        f"apart; the coordinates {looks}, or units='angstrom' if they are right"
    )


def spacing(structure: FileStructure) -> float | None:
    """The median over atoms of the distance to the nearest, in sums of covalent radii."""
    from ase.data import covalent_radii

    z = structure.z
    alone = z is None or len(z) < (1 if structure.is_periodic else 2)
    if z is None or alone or z.min() < 1 or z.max() >= len(covalent_radii):
        return None
    points = structure.pos
    if structure.is_periodic:
        cell = np.reshape(structure.extra["cell"], (-1, points.shape[1]))
        pbc = np.broadcast_to(np.reshape(structure.extra.get("pbc", True), -1), len(cell))
        images = itertools.product(*(sorted(range(-1, 2), key=abs) if p else (0,) for p in pbc))
        points = np.concatenate([structure.pos + np.array(image) @ cell for image in images])
    distance, near = cKDTree(points).query(structure.pos, k=2)
    radii = covalent_radii[z]
    return float(np.median(distance[:, 1] / (radii + radii[near[:, 1] % len(z)])))
