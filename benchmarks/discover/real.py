"""What discover says of real data.

    python benchmarks/discover/real.py FOLDER CACHE docs/results/discover/real [NAME ...]

FOLDER has the folders qm9 and mnist with the files that `symgnn.data.load` takes as `source`.

Protocol. One run of `symgnn.discover(graphs, minutes=10, seed=0)` on each of: QM9 (homo, mu and
r2, 600 molecules, bonds), MNIST (300 superpixel graphs), TSP (generated problems of 20 to 30
nodes, edges in or out of the tour, 200 problems), charged particles (400 systems), polytopes in
three dimensions (40 copies of each under orthogonal maps), G2 of ASE (edges up to 1.8 angstrom,
experimental enthalpy of formation). There is no criterion: the verdicts are recorded as they come
out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

import symgnn
from symgnn.graphs import RadiusGraph


def qm9(target: str) -> Callable[[Path, Path], Any]:
    """Molecules of QM9 with one target."""

    def load(folder: Path, cache: Path) -> Any:
        given = {"source": folder / "qm9", "root": cache, "targets": [target]}
        return symgnn.data.load("qm9", **given, limit=(600, 1, 1), validation=1)

    return load


def mnist(folder: Path, cache: Path) -> Any:
    """Digits."""
    return symgnn.data.load("mnist", source=folder / "mnist", root=cache, limit=(300, 1, 1))


def tsp(folder: Path, cache: Path) -> Any:
    """Tours."""
    given = {"source": "generated", "nodes": (20, 30), "limit": (200, 1, 1)}
    return symgnn.data.load("tsp", root=cache, **given)


def nbody(folder: Path, cache: Path) -> Any:
    """Charged particles."""
    return symgnn.data.load("nbody", root=cache, limit=(400, 1, 1))


def polytopes(folder: Path, cache: Path) -> Any:
    """Solids."""
    return symgnn.data.load("polytopes-3d", copies=40)


def g2(folder: Path, cache: Path) -> Any:
    """Small molecules with experimental enthalpies of formation."""
    from ase.collections import g2 as molecules
    from ase.data.g2 import data as known

    found = []
    for name in molecules.names:
        atoms = molecules[name]
        value = known.get(name, {}).get("enthalpy")
        if len(atoms) < 2 or value is None:
            continue
        graph = Data(
            pos=torch.tensor(atoms.positions),
            z=torch.tensor(atoms.numbers),
            y=torch.tensor([[float(value)]]),
        )
        graph = RadiusGraph(1.8)(graph)
        if graph.edge_index.shape[1]:
            found.append(graph)
    return found


SETS: dict[str, Callable[[Path, Path], Any]] = {
    "polytopes": polytopes,
    "qm9-homo": qm9("homo"),
    "qm9-mu": qm9("mu"),
    "qm9-r2": qm9("r2"),
    "mnist": mnist,
    "nbody": nbody,
    "g2": g2,
    "tsp": tsp,
}


def main(folder: Path, cache: Path, out: Path, names: list[str]) -> None:
    """One after the other."""
    torch.set_num_threads(1)
    for name in names or SETS:
        given = SETS[name](folder, cache)
        level = "graph" if isinstance(given, list) else None
        report = symgnn.discover(given, minutes=10, level=level, progress=False)
        report.save(out / f"{name}.json")
        print(f"{name}: {report.seconds:.0f} s\n{report}\n", flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), sys.argv[4:])
