"""The networks of `symgnn bench learning`: ours, and the peers' own code, of one size.

All read the same: types and places of the atoms, in angstrom. Each has the edges that its code
would find: all pairs of atoms no further apart than its `reach`. They are found before training,
for ours and theirs, so no time goes into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool
from torch_geometric.nn.models import DimeNetPlusPlus, SchNet

from symgnn.bench._measure import MissingError
from symgnn.bench._peers_suite import on_graph
from symgnn.nn import Averages, build

#: The elements of QM9, as columns of `data.x`.
ELEMENTS = 5
#: The radial basis of ours.
RADIAL = 16
#: The width of our edges and angles; nodes are wider, as there are far fewer of them.
NARROW = 48


@dataclass(frozen=True)
class Learner:
    """A network that is trained.

    Args:
        make: `(averages of the training graphs) -> module`; the module maps a batch to `[G, 1]`.
        reach: Up to which distance atoms are joined, in angstrom.
        ours: Whether it is one of symgnn's.
    """

    make: Callable[[Averages], nn.Module]
    reach: float
    ours: bool = True


class OurNetwork(nn.Module):
    """A model of symgnn on a batch without its topology, which is made at each step."""

    def __init__(self, block: str, averages: Averages, **options: Any) -> None:
        super().__init__()
        self.model = build(block, node_features=ELEMENTS, averages=averages, **options)

    def forward(self, batch: Batch) -> Tensor:
        """`[G, 1]`."""
        batch.topology = self.model.topology(batch)
        out: Tensor = self.model(batch)
        return out


class PygSchNet(nn.Module):
    """PyG's SchNet with its defaults; the edges are those of the batch."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.edges: tuple[Tensor, Tensor] | None = None
        self.model = SchNet(interaction_graph=self._found, **options)

    def _found(self, pos: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        assert self.edges is not None
        return self.edges

    def forward(self, batch: Batch) -> Tensor:
        """`[G, 1]`."""
        source, target = batch.edge_index
        lengths = (batch.pos[source] - batch.pos[target]).norm(dim=-1)
        self.edges = batch.edge_index, lengths
        out: Tensor = self.model(batch.z, batch.pos, batch.batch)
        return out


class PygDimeNet(nn.Module):
    """PyG's DimeNet++, its edges those of the batch; its triplets are found at each step."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.model = DimeNetPlusPlus(**options)

    def forward(self, batch: Batch) -> Tensor:
        """`[G, 1]`."""
        with on_graph(batch):
            out: Tensor = self.model(batch.z, batch.pos, batch.batch)
        return out


class EgnnPytorch(nn.Module):
    """Layers of egnn-pytorch between an embedding and the read-out of EGNN's own code for QM9.

    As there, coordinates are not moved; if they are, the layers' sums over all pairs soon overflow.
    """

    def __init__(self, width: int, message: int, layers: int) -> None:
        super().__init__()
        try:
            from egnn_pytorch import EGNN_Sparse
        except ImportError:
            raise MissingError("egnn-pytorch is not installed; pip install egnn-pytorch") from None
        self.embedding = nn.Linear(ELEMENTS, width)
        self.layers = nn.ModuleList(
            EGNN_Sparse(width, m_dim=message, update_coors=False) for _ in range(layers)
        )
        self.of_atom = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.of_graph = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, batch: Batch) -> Tensor:
        """`[G, 1]`."""
        rows = torch.cat([batch.pos, self.embedding(batch.x)], 1)
        for layer in self.layers:
            rows = layer(rows, batch.edge_index)
        atoms = self.of_atom(rows[:, batch.pos.shape[1] :])
        out: Tensor = self.of_graph(global_add_pool(atoms, batch.batch, len(batch.y)))
        return out


def of_ours(block: str, reach: float, width: int, **options: Any) -> Learner:
    """A block, its nodes this wide, with a radial basis up to the reach if it reads distances."""
    widths = {"node": width, "edge": NARROW, "angle": NARROW, "graph": width}
    chosen: dict[str, Any] = {"hidden": widths, "mlp_hidden": widths, **options}
    chosen |= {"layers": 3, "graph_state": False}
    if not block.startswith("agn"):
        chosen |= {"radial": RADIAL, "cutoff": reach}
    return Learner(partial(_ours, block, **chosen), reach)


def _ours(block: str, averages: Averages, **options: Any) -> nn.Module:
    return OurNetwork(block, averages, **options)


def of_theirs(make: Callable[..., nn.Module], reach: float, **options: Any) -> Learner:
    """A peer's network."""
    return Learner(lambda averages: make(**options), reach, ours=False)


def networks(quick: bool = False) -> dict[str, Learner]:
    """All networks by name, of one size; quick: DimeNet++ with few basis functions, made sooner."""
    spherical, radial = (2, 2) if quick else (7, 6)
    return {
        "DGN": of_ours("dgn", 5.0, 208),
        "AGN": of_ours("agn", 2.0, 192),
        "Combined": of_ours("combined", 2.0, 192),
        "Combined-separable": of_ours("combined-separable", 5.0, 192, norm=True),
        "SchNet": of_theirs(PygSchNet, 10.0),
        "DimeNet++": of_theirs(
            PygDimeNet,
            2.0 if quick else 5.0,
            hidden_channels=64,
            out_channels=1,
            num_blocks=4,
            int_emb_size=32,
            basis_emb_size=8,
            out_emb_channels=128,
            num_spherical=spherical,
            num_radial=radial,
        ),
        "egnn-pytorch": of_theirs(EgnnPytorch, 10.0, width=88, message=16, layers=4),
    }
