"""Potentials of every block, and structures to try them on."""

from __future__ import annotations

import torch
from ase import Atoms
from ase.build import bulk, molecule
from torch import Tensor
from torch_geometric.data import Data

from symgnn.graphs import periodic_graph
from symgnn.nn import ARCHITECTURES, Potential, build
from symgnn.nn.envelopes import reads_angles
from symgnn.nn.filtered import FILTERED
from symgnn.nn.variants import SEPARABLE

CUTOFF = 3.2
#: All blocks that translations and rotations keep.
BLOCKS = [name for name in (*ARCHITECTURES, *SEPARABLE, *FILTERED) if name != "gn"]
#: Those that divide by the longest edge, whose choice is not smooth.
SCALED = ("sdgn", "sdgn-filtered")
#: Those whose messages can fade out.
SMOOTH = [name for name in BLOCKS if name not in (*SCALED, "cgn", "cgn-separable")]


def potential(block: str, **options: object) -> Potential:
    torch.manual_seed(0)
    settings: dict = {"hidden": 6, "layers": 2, "node_types": "atoms", "graph_state": False}
    if block in SMOOTH:
        settings |= {"envelope": True, "cutoff": CUTOFF}
    spec = {**ARCHITECTURES, **SEPARABLE, **FILTERED}.get(block)
    if spec is not None and reads_angles(spec):
        settings["cosines"] = True
    reads_lengths = spec is not None and "d2" in map(repr, spec.edge)
    if reads_lengths and block in SMOOTH:
        settings["radial"] = 4
    settings |= options
    model = build(block, task="node", **settings).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return Potential(model, references={"Cu": -3.0, "H": -13.6}, scale=0.7)


def graph(atoms: Atoms, cutoff: float = CUTOFF) -> Data:
    pos = torch.tensor(atoms.positions)
    cell = torch.tensor(atoms.cell.array)
    index, shift = periodic_graph(pos, cell, cutoff, torch.tensor(atoms.pbc))
    z = torch.tensor(atoms.numbers)
    return Data(pos=pos, edge_index=index, edge_shift=shift, z=z, cell=cell[None])


def rattled(atoms: Atoms, seed: int = 1) -> Atoms:
    atoms.rattle(0.1, seed=seed)
    return atoms


def strained_cell() -> Atoms:
    """Two atoms in a skew cell that is smaller than the cutoff."""
    atoms = Atoms("CuAu", [[0.1, 0.0, 0.2], [1.2, 1.4, 1.3]], pbc=True)
    atoms.cell = [[2.6, 0.1, 0.0], [0.3, 2.7, 0.2], [0.0, -0.2, 2.5]]
    return atoms


#: Structures by name: molecules, an atom alone, a perfect crystal whose images are opposite and in
#: shells, a cell that is smaller than the cutoff, a layer.
STRUCTURES = {
    "H2": lambda: molecule("H2"),
    "water": lambda: rattled(molecule("H2O")),
    "isolated": lambda: Atoms("HCu", [[0, 0, 0], [0, 0, 50.0]]),
    "one atom": lambda: bulk("Cu"),
    "crystal": lambda: bulk("Cu", cubic=True),
    "small cell": strained_cell,
    "layer": lambda: rattled(Atoms("Cu3", [[0, 0, 0], [1.9, 0, 0.3], [0, 2.1, 0.1]],
                                   cell=[4.0, 4.1, 9.0], pbc=(True, True, False))),
}  # fmt: skip


def slopes(energy, at: Tensor, h: float = 1e-4) -> Tensor:  # type: ignore[no-untyped-def]
    """The derivative by differences of fourth order, `[...] -> [...]`."""
    found = torch.zeros_like(at)
    for k in range(at.numel()):
        step = torch.zeros_like(at).flatten()
        step[k] = h
        step = step.view_as(at)
        near = energy(at + step) - energy(at - step)
        far = energy(at + 2 * step) - energy(at - 2 * step)
        found.view(-1)[k] = (8 * near - far) / (12 * h)
    return found
