"""Small crystals with energies, forces and stress of ASE's EMT."""

from __future__ import annotations

from functools import cache

import numpy as np
from ase import Atoms
from ase.build import bulk
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator


@cache
def emt_frames(count: int = 20) -> tuple[Atoms, ...]:
    """Distorted crystals of copper and gold."""
    random = np.random.default_rng(0)
    frames = []
    for number in range(count):
        atoms = bulk("Cu", a=3.7, cubic=True)
        atoms.symbols[random.choice(4, number % 3, replace=False)] = "Au"
        atoms.rattle(0.1, seed=number)
        atoms.calc = EMT()
        results = {
            "energy": atoms.get_potential_energy(),
            "forces": atoms.get_forces(),
            "stress": atoms.get_stress(),
        }
        atoms.calc = SinglePointCalculator(atoms, **results)
        frames.append(atoms)
    return tuple(frames)
