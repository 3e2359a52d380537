"""The peers as they are published, made comparable: graphs given, triplets in pure torch."""

import contextlib
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from symgnn.graphs import knn_graph, radius_graph


def molecules(dtype: torch.dtype = torch.float64, cutoff: float = 4.0) -> Batch:
    """Three clouds of atoms, with all edges up to the cutoff."""
    rng = torch.Generator().manual_seed(5)
    graphs = []
    for count in (5, 8, 1):
        pos = 1.5 * torch.randn(count, 3, generator=rng, dtype=torch.float64).to(dtype)
        z = torch.randint(1, 9, (count,), generator=rng)
        graphs.append(Data(pos=pos, z=z, edge_index=radius_graph(pos, cutoff)))
    return Batch.from_data_list(graphs)


def directed(batch: Batch) -> Batch:
    """The same with each node's three nearest only: not every edge has its reverse."""
    batch = batch.clone()
    batch.edge_index = knn_graph(batch.pos, 3, batch.batch)
    return batch


def triplets(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, ...]:
    """As PyG's, which needs an extension: all pairs of edges k -> j -> i with k != i."""
    row, col = edge_index
    ji, kj = (row[:, None] == col[None, :]).nonzero().T
    there = col[ji] != row[kj]
    ji, kj = ji[there], kj[there]
    return col, row, col[ji], row[ji], row[kj], kj, ji


@contextlib.contextmanager
def on_graph(edge_index: Tensor) -> Iterator[None]:
    """Inside, PyG's networks use these edges instead of building their own."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("schnet", "dimenet"):
            name = f"torch_geometric.nn.models.{module}.radius_graph"
            patch.setattr(name, lambda *_, **__: edge_index)
        patch.setattr("torch_geometric.nn.models.dimenet.triplets", triplets)
        yield


class E_GCL(nn.Module):  # noqa: N801
    """EGNN's own layer, written from its formulas with the names of its published code."""

    def __init__(
        self,
        nodes: int,
        hidden: int,
        edges: int = 0,
        *,
        residual: bool = True,
        attention: bool = False,
        normalize: bool = False,
        norm_diff: bool = False,
        coords_agg: str = "mean",
        tanh: bool = False,
        velocity: bool = False,
    ) -> None:
        super().__init__()
        self.residual, self.attention, self.normalize = residual, attention, normalize
        self.norm_diff, self.coords_agg, self.tanh = norm_diff, coords_agg, tanh
        act = nn.SiLU()
        self.edge_mlp = nn.Sequential(
            nn.Linear(2 * nodes + 1 + edges, hidden), act, nn.Linear(hidden, hidden), act
        )
        self.node_mlp = nn.Sequential(
            nn.Linear(hidden + nodes, hidden), act, nn.Linear(hidden, nodes)
        )
        last = [nn.Tanh()] if tanh else []
        self.coord_mlp = nn.Sequential(
            nn.Linear(hidden, hidden), act, nn.Linear(hidden, 1, bias=False), *last
        )
        if attention:
            self.att_mlp = nn.Sequential(nn.Linear(hidden, 1), nn.Sigmoid())
        if velocity:
            self.coord_mlp_vel = nn.Sequential(nn.Linear(nodes, hidden), act, nn.Linear(hidden, 1))

    def forward(self, h, edge_index, x, edge_attr=None, vel=None):  # type: ignore[no-untyped-def]
        row, col = edge_index
        ray = x[row] - x[col]
        radial = ray.square().sum(1, keepdim=True)
        if self.normalize:
            ray = ray / (radial.sqrt().detach() + 1e-8)
        if self.norm_diff:
            ray = ray / (radial.sqrt() + 1)
        given = [h[row], h[col], radial] + ([] if edge_attr is None else [edge_attr])
        message = self.edge_mlp(torch.cat(given, 1))
        if self.attention:
            message = message * self.att_mlp(message)
        step = torch.zeros_like(x).index_add(0, row, ray * self.coord_mlp(message))
        if self.coords_agg == "mean":
            step = step / torch.bincount(row, minlength=len(x)).clamp(min=1)[:, None]
        x = x + step
        if vel is not None:
            x = x + self.coord_mlp_vel(h) * vel
        total = h.new_zeros(len(h), message.shape[1]).index_add(0, row, message)
        new = self.node_mlp(torch.cat([h, total], 1))
        return (h + new if self.residual else new), x


class E_GCL_vel(E_GCL):  # noqa: N801
    """The layer with velocities."""

    def __init__(self, *sizes: int, **options) -> None:  # type: ignore[no-untyped-def]
        super().__init__(*sizes, velocity=True, **options)


class EGNN(nn.Module):
    """EGNN's own network."""

    def __init__(self, inputs: int, hidden: int, outputs: int, edges: int, n_layers: int) -> None:
        super().__init__()
        self.n_layers = n_layers
        self.embedding_in = nn.Linear(inputs, hidden)
        self.embedding_out = nn.Linear(hidden, outputs)
        for k in range(n_layers):
            self.add_module(f"gcl_{k}", E_GCL(hidden, hidden, edges, attention=True))

    def forward(self, h, x, edge_index, edge_attr):  # type: ignore[no-untyped-def]
        h = self.embedding_in(h)
        for k in range(self.n_layers):
            h, x = self._modules[f"gcl_{k}"](h, edge_index, x, edge_attr)
        return self.embedding_out(h), x
