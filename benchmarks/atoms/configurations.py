"""Configurations of atoms to learn from, by molecular dynamics: metals by EMT, molecules by GFN2.

    python benchmarks/atoms/configurations.py DIRECTORY

writes `emt-PART.xyz` and `gfn2-PART.xyz`, extended XYZ with energies and forces; the parts are train
(800 configurations), validation (100) and test (100). Each part has trajectories of its own, of
other temperatures and seeds: nothing of the test trajectories is seen by a training.

- EMT (ASE's): bulk copper and gold (16 atoms), three alloys Cu_k Au_(16-k) with atoms at random
  places, and the surface Cu(111) (12 atoms, three layers, periodic along two directions).
- GFN2-xTB (tblite): ethanol, acetic acid, acetamide and benzene.

Langevin dynamics; metals in steps of 5 fs, every 10th kept; molecules in steps of 0.5 fs, every
20th kept; 200 steps pass before the first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import ase.io
import numpy as np
from ase import Atoms, units
from ase.build import bulk, fcc111, molecule
from ase.calculators.singlepoint import SinglePointCalculator
from ase.md.langevin import Langevin
from ase.md.velocitydistribution import thermalize_momenta

PARTS = ("train", "validation", "test")
#: Of each part, the temperatures of its trajectories and the frames of all trajectories together.
METALS = {"train": ((300, 900), 800), "validation": ((700,), 100), "test": ((500,), 100)}
MOLECULES = {"train": ((300, 700), 800), "validation": ((600,), 100), "test": ((500,), 100)}
#: Steps before the first frame.
SETTLING = 200


def alloy(copper: int) -> Atoms:
    """16 atoms, so many of them copper, at random places of a lattice between both."""
    share = copper / 16
    atoms = bulk("Au", a=3.61 * share + 4.08 * (1 - share), cubic=True) * (2, 2, 1)
    places = np.random.default_rng(copper).permutation(16)[:copper]
    atoms.symbols[places] = "Cu"
    return atoms


def metals() -> dict[str, Atoms]:
    """The metals at the start."""
    slab = fcc111("Cu", (2, 2, 3), a=3.61, vacuum=6.0)
    return {
        "Cu": alloy(16),
        "Au": alloy(0),
        **{f"Cu{k}Au{16 - k}": alloy(k) for k in (12, 8, 4)},
        "Cu(111)": slab,
    }


def molecules() -> dict[str, Atoms]:
    """The molecules at the start."""
    names = {"ethanol": "CH3CH2OH", "acetic acid": "CH3COOH", "acetamide": "CH3CONH2"}
    return {name: molecule(formula) for name, formula in {**names, "benzene": "C6H6"}.items()}


def trajectory(
    atoms: Atoms, temperature: float, frames: int, step: float, every: int, seed: int
) -> list[Atoms]:
    """Frames of Langevin dynamics of atoms with a calculator."""
    random = np.random.default_rng(seed)
    thermalize_momenta(atoms, temperature_K=temperature, rng=random)
    md = Langevin(
        atoms,
        step * units.fs,
        temperature_K=temperature,
        friction=0.02 / units.fs,
        fixcm=False,
        rng=random,
    )
    md.run(SETTLING)
    found = []
    for _ in range(frames):
        md.run(every)
        frame = atoms.copy()
        energy, forces = atoms.get_potential_energy(), atoms.get_forces()
        frame.calc = SinglePointCalculator(frame, energy=energy, forces=forces)
        found.append(frame)
    return found


def emt() -> object:
    """ASE's EMT, as in ASE."""
    from ase.calculators.emt import EMT

    return EMT()


def gfn2() -> object:
    """GFN2-xTB of tblite."""
    from tblite.ase import TBLite

    return TBLite(method="GFN2-xTB", verbosity=0)


def write(
    directory: Path,
    name: str,
    starts: dict[str, Atoms],
    make: Callable[[], object],
    plan: dict[str, tuple[tuple[int, ...], int]],
    step: float,
    every: int,
) -> None:
    """The files of one kind of atoms, those that are not there yet."""
    for number, part in enumerate(PARTS):
        file = directory / f"{name}-{part}.xyz"
        if file.exists():
            continue
        temperatures, frames = plan[part]
        runs = [(atoms, t) for atoms in starts.values() for t in temperatures]
        found: list[Atoms] = []
        for k, (start, temperature) in enumerate(runs):
            atoms = start.copy()
            atoms.calc = make()
            count = frames // len(runs) + (k < frames % len(runs))
            found += trajectory(atoms, temperature, count, step, every, 100 * number + k)
            sys.stdout.write(f"{file.name}: {len(found)} of {frames}\n")
        ase.io.write(file, found)


def main(directory: Path) -> None:
    """Write all files."""
    directory.mkdir(parents=True, exist_ok=True)
    write(directory, "emt", metals(), emt, METALS, 5.0, 10)
    write(directory, "gfn2", molecules(), gfn2, MOLECULES, 0.5, 20)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
