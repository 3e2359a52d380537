"""Energy and forces of a large crystal of copper: time and memory of the calculator.

    python benchmarks/atoms/large.py dgn-filtered 30

takes a cube of 30 x 30 x 30 cells of 4 atoms, 108,000, rattled, and a network as `symgnn.fit` builds it
(cutoff 5.5 A), untrained. It prints the processor time of a step with the search for neighbours
and of one without, and the peak memory of the process before and after, one thread. `--chunk N`
limits the edges and angles in memory.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import torch
from ase.build import bulk

from symgnn.nn import Potential, build
from symgnn.train import keep_memory
from symgnn.train._calculator import calculator_of
from symgnn.train._potential_config import CUTOFF, for_potential


def peak() -> float:
    """The peak memory of the process, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(block: str, cells: int, chunk: int | None) -> None:
    """Two steps."""
    torch.set_num_threads(1)
    keep_memory()
    _, model = for_potential({}, {"block": block}, ["energy", "forces"], reads=False)
    del model["block"]
    torch.manual_seed(0)
    network = build(block, task="node", outputs=1, chunk=chunk, **model)
    atoms = bulk("Cu", cubic=True) * (cells, cells, cells)
    atoms.rattle(0.05, seed=0)
    atoms.calc = calculator_of([Potential(network)], cutoff=CUTOFF, elements=[29])
    before = peak()
    for name in ("with the search", "without"):
        began = time.process_time()
        forces = atoms.get_forces()
        used = time.process_time() - began
        sys.stdout.write(
            f"{block}, {len(atoms)} atoms, {name}: {used:.1f} s, {1e6 * used / len(atoms):.0f} "
            f"us per atom, {before:.2f} to {peak():.2f} GB, largest force {abs(forces).max():.3g}\n"
        )
        atoms.rattle(0.01, seed=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("block")
    parser.add_argument("cells", type=int)
    parser.add_argument("--chunk", type=int)
    given = parser.parse_args()
    main(given.block, given.cells, given.chunk)
