"""Potentials of symgnn and of peers, as modules that give the energy of each graph of a batch.

All read the same batch: `pos [N, 3]`, `z [N]`, `edge_index [2, E]` (source, target), `batch [N]` and,
in cells, `edge_shift [E, 3]`. None searches neighbours: the edges are those of the cutoff, found
before, as are, for ours, the numbers of the neighbours of each atom (`ray_ranks`, as in `symgnn.fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from symgnn.nn import Potential, averages, build
from symgnn.train._potential_config import for_potential

#: The width, layers and radial functions of peers: those of schnetpack, but half as wide.
WIDTH, LAYERS, RADIAL = 64, 3, 20


class Ours(nn.Module):
    """A block as `symgnn.fit(atoms, block, targets=[...])` builds it."""

    ranks = True

    def __init__(self, block: str, cutoff: float, graphs: Sequence[Data], **options: Any) -> None:
        super().__init__()
        given = {"block": block, "cutoff": cutoff, **options}
        _, model = for_potential({}, given, ["energy", "forces"], reads=False)
        del model["block"]
        network = build(block, task="node", **model).network
        known = averages(graphs, network)
        self.model = Potential(build(block, task="node", averages=known, **model)).model

    def forward(self, batch: Batch) -> Tensor:
        """Of each atom `[N]`."""
        topology = self.model.topology(batch)
        rows: Tensor = self.model(pos=batch.pos, topology=topology, z=batch.z)
        return rows.squeeze(-1)


def rays(batch: Batch) -> Tensor:
    """From the target of each edge to its source `[E, 3]`."""
    source, target = batch.edge_index
    away = batch.pos[source] - batch.pos[target]
    return away if batch.get("edge_shift") is None else away + batch.edge_shift


def schnetpack() -> Any:
    """schnetpack; with recent versions of PyTorch it lacks a name that PyTorch had."""
    import torch.utils.data.dataloader as loader

    if not hasattr(loader, "T_co"):
        loader.T_co = TypeVar("T_co", covariant=True)
    import schnetpack as spk
    import schnetpack.representation

    return spk


class SchNetPack(nn.Module):
    """A representation of schnetpack (SchNet, PaiNN), and its Atomwise read-out."""

    def __init__(self, name: str, cutoff: float, radial: int = RADIAL) -> None:
        super().__init__()
        spk = schnetpack()
        self.representation = getattr(spk.representation, name)(
            n_atom_basis=WIDTH,
            n_interactions=LAYERS,
            radial_basis=spk.nn.GaussianRBF(n_rbf=radial, cutoff=cutoff),
            cutoff_fn=spk.nn.CosineCutoff(cutoff),
        )
        self.of_atom = spk.nn.build_mlp(n_in=WIDTH, n_out=1, n_layers=2)

    def forward(self, batch: Batch) -> Tensor:
        """Of each atom `[N]`."""
        source, target = batch.edge_index
        given = {
            "_atomic_numbers": batch.z,
            "_Rij": rays(batch),
            "_idx_i": target,
            "_idx_j": source,
        }
        rows: Tensor = self.of_atom(self.representation(given)["scalar_representation"])
        return rows.squeeze(-1)


class EgnnPytorch(nn.Module):
    """Layers of egnn-pytorch, without moving coordinates, and a sum over atoms.

    Its layers read differences of coordinates, without shifts of cells: it is for molecules, and for
    cells an image of each atom stands for every edge that crosses a wall.

    Args:
        cutoff: In Angstrom.
        radial: How many Gaussians of the distance edges have as attributes, times a cosine that
            is 0 at the cutoff; with none, its layers read the squared distance alone.
        options: Those of its layers.
    """

    def __init__(self, cutoff: float, radial: int = 0, **options: Any) -> None:
        super().__init__()
        self.cutoff, self.radial = cutoff, radial
        from egnn_pytorch import EGNN_Sparse

        self.embedding = nn.Embedding(100, WIDTH)
        self.layers = nn.ModuleList(
            EGNN_Sparse(WIDTH, update_coors=False, edge_attr_dim=radial, **options)
            for _ in range(LAYERS)
        )
        self.of_atom = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

    def forward(self, batch: Batch) -> Tensor:
        """Of each atom `[N]`."""
        rows, n = self.embedding(batch.z), batch.pos.shape[0]
        index = batch.edge_index
        source, shift = index[0], batch.get("edge_shift")
        if shift is not None:
            crossing = (shift != 0).any(1)
            images = source[crossing]
            moved = batch.pos[images] + shift[crossing]
            pos = torch.cat([batch.pos, moved])
            source = source.clone()
            source[crossing] = n + torch.arange(len(images))
        else:
            images, pos = source[:0], batch.pos
        joined = torch.stack([source, index[1]])
        attributes = self.gaussians(rays(batch).norm(dim=1)) if self.radial else None
        for layer in self.layers:
            both = torch.cat([rows, rows[images]])
            rows = layer(torch.cat([pos, both], 1), joined, edge_attr=attributes)[:n, 3:]
        out: Tensor = self.of_atom(rows)
        return out.squeeze(-1)

    def gaussians(self, d: Tensor) -> Tensor:
        """The attributes of edges of the length `d [E]`, `[E, radial]`."""
        width = self.cutoff / (self.radial - 1)
        away = d.unsqueeze(1) / width - torch.arange(self.radial)
        fading = 0.5 * (1 + torch.cos(torch.pi * d / self.cutoff)).unsqueeze(1)
        return torch.exp(-0.5 * away.square()) * fading


#: (cutoff, training graphs) -> module.
Make = Callable[[float, Sequence[Data]], nn.Module]
OURS: dict[str, Make] = {
    "DGN": lambda cutoff, graphs: Ours("dgn", cutoff, graphs),
    "DGN-filtered": lambda cutoff, graphs: Ours("dgn-filtered", cutoff, graphs),
    "Combined-separable": lambda cutoff, graphs: Ours("combined-separable", cutoff, graphs),
    "Combined-filtered": lambda cutoff, graphs: Ours("combined-filtered", cutoff, graphs),
}
PEERS: dict[str, Make] = {
    "PaiNN (schnetpack)": lambda cutoff, graphs: SchNetPack("PaiNN", cutoff),
    "SchNet (schnetpack)": lambda cutoff, graphs: SchNetPack("SchNet", cutoff),
    "PaiNN, 8 functions": lambda cutoff, graphs: SchNetPack("PaiNN", cutoff, 8),
    "SchNet, 8 functions": lambda cutoff, graphs: SchNetPack("SchNet", cutoff, 8),
    "EGNN (egnn-pytorch)": lambda cutoff, graphs: EgnnPytorch(cutoff),
}
