"""Constant-energy dynamics of copper with filtered blocks trained on EMT.

    python benchmarks/atoms/configurations.py DIRECTORY   # the data
    python benchmarks/atoms/dynamics.py DIRECTORY

Protocol, fixed before any run that is reported:

- Potentials: combined-filtered and dgn-filtered, cutoff 5.5 A, by `symgnn.fit` with its defaults,
  10 epochs of the 800 configurations of `emt-train.xyz` (metals, alloys, a surface), seed 1.
- Few configurations: the same on 40 of them (every 20th), 100 epochs.
- Dynamics: as in `emt_copper.py`: 108 atoms, 600 K on the perfect crystal, velocity Verlet with
  2 fs for 10 ps, in float64. Criteria: the mean total energy of the last picosecond is within
  1 meV/atom of that of the first; the mean temperature after the first picosecond is between 250
  and 350 K, as half of the kinetic energy goes to the potential energy of a harmonic crystal.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ase.io
from emt_copper import drift

import symgnn
from symgnn.data import Splits, read

BLOCKS = ("combined-filtered", "dgn-filtered")
TARGETS = ["energy", "forces"]
CUTOFF = 5.5
#: Of each training, every how many configurations it has, and its epochs.
TRAININGS = {"800": (1, 10), "40": (20, 100)}


def learned(directory: Path, block: str, every: int, epochs: int) -> symgnn.Run:
    """A run on the configurations, measured on the test trajectories."""
    parts = {}
    for part in ("train", "validation", "test"):
        frames = ase.io.read(directory / f"emt-{part}.xyz", ":")
        frames = frames[::every] if part == "train" else frames
        parts[part] = read(frames, columns=TARGETS, level="potential", radius=CUTOFF, elements=[])
    test = parts["test"]
    about = {"read": test.options}
    rest = [list(parts[name]) for name in ("train", "validation", "test")]
    splits = Splits(*rest, test.task, 1.0, about)
    settings = {"epochs": epochs, "validate_every": epochs, "weights": "last"}
    model = {"block": block, "cutoff": CUTOFF}
    return symgnn.fit(splits, model, targets=TARGETS, progress=False, **settings)


def main(directory: Path) -> None:
    """Errors in meV/atom and meV/A, and dynamics, in `dynamics.json`."""
    file = directory / "dynamics.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for count, (every, epochs) in TRAININGS.items():
        for block in BLOCKS:
            name = f"{block}, {count} configurations"
            if name in results:
                continue
            run = learned(directory, block, every, epochs)
            errors = {key: run.metrics["test"][key]["mean"] for key in ("mae energy", "mae forces")}
            results[name] = {**errors, **drift(run)}
            sys.stdout.write(f"{name}: {results[name]}\n")
            sys.stdout.flush()
            file.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
