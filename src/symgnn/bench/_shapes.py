"""Graphs like those of the paper's datasets, drawn from seeded generators: nothing is downloaded.

Superpixels of MNIST (70 nodes, 8 nearest) and CIFAR-10 (118 nodes), problems of travelling salesmen
(50 to 500 nodes, 25 nearest), molecules on their bonds (about 18 atoms) and the regular polytopes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Batch, Data

from symgnn.data import polytopes
from symgnn.graphs import KNNGraph, radius_graph


@dataclass(frozen=True)
class Shape:
    """Graphs of a kind; `make(quick)` gives them, a few small ones if quick."""

    name: str
    make: Callable[[bool], list[Data]]
    paper: str  # the dataset that they are like, as the paper's tables call it

    def batch(self, quick: bool = False) -> Batch:
        """All of them."""
        return Batch.from_data_list(self.make(quick))


def superpixels(count: int = 128, nodes: int = 70, features: int = 1) -> list[Data]:
    """Points of a square, each joined to its 8 nearest, with colours `x`."""
    rng = torch.Generator().manual_seed(0)
    return [
        KNNGraph(k=8)(
            Data(
                pos=torch.rand(nodes, 2, generator=rng),
                x=torch.rand(nodes, features, generator=rng),
            )
        )
        for _ in range(count)
    ]


def tours(count: int = 8, nodes: tuple[int, int] = (50, 500)) -> list[Data]:
    """Points of a square, each joined to its 25 nearest; sizes evenly between the two."""
    rng = torch.Generator().manual_seed(0)
    sizes = torch.linspace(*nodes, count).round().int().tolist()
    return [KNNGraph(k=25)(Data(pos=torch.rand(size, 2, generator=rng))) for size in sizes]


def molecules(count: int = 512) -> list[Data]:
    """Trees of 9 heavy atoms, half with a ring, and 9 hydrogens; edges are bonds, both ways.

    With the features of `symgnn.data`'s QM9: 5 of an atom, 4 of a bond.
    """
    rng = np.random.default_rng(0)
    return [_molecule(rng) for _ in range(count)]


def _molecule(rng: np.random.Generator, heavy: int = 9, hydrogens: int = 9) -> Data:
    degree, pos, bonds = np.zeros(heavy + hydrogens, dtype=int), [np.zeros(3)], []
    for atom in range(1, heavy + hydrogens):
        most, last = (3, atom) if atom < heavy else (4, heavy)
        other = int(rng.choice(np.flatnonzero(degree[:last] < most)))
        step = rng.normal(size=3)
        pos.append(pos[other] + step / np.linalg.norm(step))
        bonds.append((other, atom))
        degree[[other, atom]] += 1
    ends = np.flatnonzero(degree[:heavy] < 4).tolist()
    apart = [(a, b) for a in ends for b in ends if a < b and (a, b) not in bonds]
    if apart and rng.random() < 0.5:
        bonds.append(apart[rng.integers(len(apart))])
    one_way = torch.tensor(bonds).T
    edge_index = torch.cat([one_way, one_way.flip(0)], 1)
    return Data(
        pos=torch.tensor(np.array(pos), dtype=torch.float32),
        x=torch.eye(5)[torch.from_numpy(rng.integers(5, size=len(pos)))],
        edge_index=edge_index,
        edge_attr=torch.eye(4)[torch.from_numpy(rng.integers(4, size=edge_index.shape[1]))],
    )


def clouds(count: int = 64, atoms: int = 18, cutoff: float = 5.0) -> list[Data]:
    """Atoms at molecular density with types `z`, joined up to the cutoff."""
    rng = torch.Generator().manual_seed(0)
    graphs = []
    for _ in range(count):
        pos = 6.0 * torch.rand(atoms, 3, generator=rng)
        z = torch.randint(1, 10, (atoms,), generator=rng)
        graphs.append(Data(pos=pos, z=z, edge_index=radius_graph(pos, cutoff)))
    return graphs


def neighbours(nodes: int, dimension: int) -> Data:
    """One graph: points of a cube, each joined to its 8 nearest."""
    rng = torch.Generator().manual_seed(0)
    return KNNGraph(k=8)(Data(pos=torch.rand(nodes, dimension, generator=rng)))


def _polytopes(dimension: int) -> Shape:
    name = f"polytopes n={dimension}"
    return Shape(name, lambda quick: polytopes(dimension)[: 3 if quick else None], name)


SUPERPIXELS = Shape(
    "superpixels", lambda quick: superpixels(3, 15) if quick else superpixels(), "MNIST"
)
COLOURED = Shape(
    "superpixels in colour",
    lambda quick: superpixels(2, 15, 3) if quick else superpixels(128, 118, 3),
    "CIFAR10",
)
TOURS = Shape("tours", lambda quick: tours(2, (26, 30)) if quick else tours(), "TSP")
MOLECULES = Shape("molecules", lambda quick: molecules(8 if quick else 512), "QM9")
CLOUDS = Shape(
    "atoms up to 5 units apart",
    lambda quick: clouds(2, 8) if quick else clouds(),
    "QM9",
)
POLYTOPES = {dimension: _polytopes(dimension) for dimension in (3, 4, 5)}
#: Those that most suites use.
SHAPES = (SUPERPIXELS, TOURS, MOLECULES, POLYTOPES[4])
