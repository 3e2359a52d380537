"""A potential for copper learned from ASE's EMT: learning curve, and energy kept in dynamics.

    python benchmarks/atoms/emt_copper.py DIRECTORY

Protocol, fixed before any run that is reported:

- Data: five trajectories of 32 atoms (2 x 2 x 2 cubic cells, periodic), 200 configurations each, by
  Langevin dynamics with EMT in steps of 5 fs, every 10th step kept after 100 steps, at 300, 600 and
  900 K (training, lattice constants 3.61, 3.66 and 3.56 A), 700 K (validation, 3.63 A) and 500 K
  (test, 3.60 A). The test trajectory is seen by no training.
- Potential: combined-separable, hidden 32, 2 layers, cutoff 4.5 A, energy and forces with weights 1
  and 10, Adam with a cosine schedule from 5e-3, batches of 4, 900 steps whatever the number of
  configurations; one seed, float32.
- Learning curve: 30, 150 and 600 training configurations, evenly from the three trajectories. The
  error is that of the test trajectory. Criterion: it falls from each number to the next.
- Dynamics: the potential of 600 configurations, 108 atoms (3 x 3 x 3 cubic cells, 3.61 A), momenta
  of 600 K on the perfect crystal, which settles near 300 K, velocity Verlet with 2 fs for 10 ps, in
  float64. Drift: mean total energy of the last picosecond less that of the first, per atom.
  Criterion: below 1 meV/atom.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import ase.io
import numpy as np
from ase import Atoms, units
from ase.build import bulk
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator
from ase.md.langevin import Langevin
from ase.md.velocitydistribution import thermalize_momenta
from ase.md.verlet import VelocityVerlet

import symgnn
from symgnn.data import Splits, read

TRAJECTORIES = {
    "train-300": (300, 3.61),
    "train-600": (600, 3.66),
    "train-900": (900, 3.56),
    "validation": (700, 3.63),
    "test": (500, 3.60),
}
FRAMES, EVERY, STEPS, BATCH = 200, 10, 900, 4
COUNTS = (30, 150, 600)
MODEL = {"block": "combined-separable", "hidden": 32, "layers": 2, "cutoff": 4.5}
TARGETS = {"targets": ["energy", "forces"], "target_weights": {"forces": 10.0}}


def trajectory(temperature: float, lattice: float, seed: int) -> list[Atoms]:
    """Configurations of Langevin dynamics with EMT."""
    random = np.random.default_rng(seed)
    atoms = bulk("Cu", a=lattice, cubic=True) * (2, 2, 2)
    atoms.calc = EMT()
    thermalize_momenta(atoms, temperature_K=temperature, rng=random)
    md = Langevin(
        atoms, 5 * units.fs, temperature_K=temperature, friction=0.02 / units.fs, rng=random
    )
    md.run(100)
    frames = []
    for _ in range(FRAMES):
        md.run(EVERY)
        frame = atoms.copy()
        frame.calc = SinglePointCalculator(
            frame, energy=atoms.get_potential_energy(), forces=atoms.get_forces()
        )
        frames.append(frame)
    return frames


def graphs_of(frames: list[Atoms]) -> symgnn.data.Graphs:
    """Frames as graphs with energy and forces."""
    columns = TARGETS["targets"]
    return read(frames, columns=columns, level="potential", radius=4.5, elements=[])


def learned(parts: dict[str, symgnn.data.Graphs], count: int) -> tuple[symgnn.Run, dict]:
    """A run on so many configurations, and its errors on the test trajectory."""
    each = count // 3
    train = [
        graph
        for name, graphs in parts.items()
        if name.startswith("train")
        for graph in graphs[:: FRAMES // each][:each]
    ]
    test = parts["test"]
    about = {"read": test.options}
    splits = Splits(train, list(parts["validation"])[::10], list(test), test.task, 1.0, about)
    epochs = -(-STEPS * BATCH // len(train))
    began = time.process_time()
    run = symgnn.fit(
        splits,
        MODEL,
        epochs=epochs,
        validate_every=epochs,
        batch_size=BATCH,
        learning_rate=5e-3,
        schedule="cosine",
        weights="last",
        progress=False,
        **TARGETS,
    )
    names = ("mae energy", "mae forces", "rmse forces")
    errors = {name: run.metrics["test"][name]["mean"] for name in names}
    baseline = run.metrics["test"]["mae forces"]["baseline"]
    seconds = time.process_time() - began
    found = {"configurations": len(train), **errors, "baseline": baseline, "seconds": seconds}
    return run, found


def drift(run: symgnn.Run) -> dict:
    """The change of the total energy over 10 ps of 108 atoms, in meV/atom."""
    atoms = bulk("Cu", a=3.61, cubic=True) * (3, 3, 3)
    atoms.calc = run.calculator(precision="64")
    random = np.random.default_rng(0)
    thermalize_momenta(atoms, temperature_K=600, exact_temperature=True, rng=random)
    energies, temperatures = [], []
    md = VelocityVerlet(atoms, 2 * units.fs)
    began = time.process_time()
    for _ in range(5000):
        md.run(1)
        energies.append(1000 * atoms.get_total_energy() / len(atoms))
        temperatures.append(atoms.get_temperature())
    return {
        "drift": float(np.mean(energies[-500:]) - np.mean(energies[:500])),
        "largest": float(np.ptp(energies)),
        "temperature": float(np.mean(temperatures[500:])),
        "searches": atoms.calc.neighbours.searches,
        "seconds per step": (time.process_time() - began) / 5000,
    }


def main(directory: Path) -> None:
    """Run all of it; errors in meV/atom and meV/A, in `results.json`."""
    directory.mkdir(parents=True, exist_ok=True)
    parts = {}
    for seed, (name, (temperature, lattice)) in enumerate(TRAJECTORIES.items()):
        file = directory / f"{name}.xyz"
        if not file.exists():
            ase.io.write(file, trajectory(temperature, lattice, seed))
        parts[name] = graphs_of(ase.io.read(file, ":"))
    results: dict = {"curve": []}
    for count in COUNTS:
        run, found = learned(parts, count)
        results["curve"].append(found)
        sys.stdout.write(f"{found}\n")
        (directory / "results.json").write_text(json.dumps(results, indent=1))
    results["dynamics"] = drift(run)
    sys.stdout.write(f"{results['dynamics']}\n")
    (directory / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
