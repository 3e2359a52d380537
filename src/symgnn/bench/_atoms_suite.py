"""Potentials in periodic cells: forces against energies, and training on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch_geometric.data import Data

from symgnn.bench._dynamics import PAIRS, of_dynamics
from symgnn.bench._measure import Rounds, medians, paired
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import training_step
from symgnn.bench._suite import Suite, SuitePart
from symgnn.graphs import periodic_graph
from symgnn.nn import Potential, build
from symgnn.train._potential_config import for_potential

FINDING = (
    "Forces are one backward pass through the same operations, by coordinates alone. Training on "
    "them is one more backward pass, through both. Neighbours within the skin are taken out at "
    "every step, by schnetpack and here."
)
#: As many as 4.5 A of copper: 42 neighbours.
CUTOFF, LATTICE = 4.5, 3.61
FORCES, TRAINING = 3.0, 3.0
#: Cubic cells along each side, of four atoms each.
CELLS = {
    "dgn": 6,
    "dgn-filtered": 6,
    "combined-filtered": 6,
    "combined-separable": 6,
    "combined": 3,
}


def crystal(cells: int) -> Data:
    """Copper with thermal displacements, `4 cells^3` atoms."""
    random = torch.Generator().manual_seed(0)
    corners = torch.cartesian_prod(*[torch.arange(cells)] * 3).float()
    basis = torch.tensor([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    pos = (corners[:, None] + basis).reshape(-1, 3) * LATTICE
    pos = pos + 0.1 * torch.randn(pos.shape, generator=random)
    cell = LATTICE * cells * torch.eye(3)
    index, shift = periodic_graph(pos, cell, CUTOFF)
    z = torch.full((len(pos),), 29)
    return Data(pos=pos, edge_index=index, edge_shift=shift, z=z, cell=cell[None])


def potential(block: str) -> Potential:
    """Two layers of 32 numbers, as trained by default."""
    torch.manual_seed(0)
    given = {"block": block, "cutoff": CUTOFF}
    _, options = for_potential({}, given, ["energy", "forces"], reads=False)
    return Potential(build(options.pop("block"), task="node", **options))


def of_block(block: str, cells: int, rounds: Rounds) -> Iterator[SpeedClaim]:
    """Forces over the energy, and a step of training on forces over one on energies."""
    model, data = potential(block), crystal(cells)
    data.topology = model.topology(data)
    name = f"{block}, {data.num_nodes:,} atoms"
    note = f"{data.num_edges:,} edges"
    fixed = potential(block).requires_grad_(False).eval()

    def predict(forces: bool) -> None:
        with torch.no_grad():
            fixed(data, forces=forces)

    times = rounds.alternate({"energy": partial(predict, False), "forces": partial(predict, True)})
    yield SpeedClaim(
        name,
        "energy and forces over energy",
        paired(times["forces"], times["energy"]),
        FORCES,
        seconds=medians(times, "forces", "energy"),
        note=note,
    )
    runs: dict[str, Callable[[], None]] = {}
    for what in ("energy", "forces"):
        trained = potential(block).train()
        runs[what] = training_step(partial(_loss, trained, data, what), trained.parameters())
    times = rounds.alternate(runs)
    yield SpeedClaim(
        name,
        "training step on forces over one on energies",
        paired(times["forces"], times["energy"]),
        TRAINING,
        seconds=medians(times, "forces", "energy"),
        note=note,
    )


def _loss(model: Potential, data: Data, what: str) -> torch.Tensor:
    found = model(data, forces=what == "forces")
    loss = found.energy.square().mean()
    return loss if found.forces is None else loss + found.forces.square().mean()


def parts(quick: bool) -> list[SuitePart]:
    """Each block."""
    found = [
        SuitePart(
            f"{block}, {4 * n**3:,} atoms",
            partial(of_block, block, n),
        )
        for block, cells in CELLS.items()
        for n in [2 if quick else cells]
    ]
    sides = (2, 2, 2) if quick else (10, 5, 5)
    for block, peer in PAIRS.items():
        shape = f"{block} and {peer}, {4 * math.prod(sides):,} atoms"
        found.append(SuitePart(shape, partial(of_dynamics, block, sides)))
    return found


SUITE = Suite("atoms", FINDING, parts)
