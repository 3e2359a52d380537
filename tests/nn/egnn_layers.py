"""EGNN's own layers with the constructors of both files that they are published in, written from
their formulas: `models/egnn_clean/egnn_clean.py` and `models/gcl.py`.
"""

from typing import Any

import torch
from torch import Tensor, nn


class _Layer(nn.Module):
    """What both have in common; `steps` is how a ray moves a node."""

    residual_name = "residual"

    def _make(
        self, inputs: int, outputs: int, hidden: int, edges: int, more: int, act: Any
    ) -> None:
        self.edge_mlp = nn.Sequential(
            nn.Linear(2 * inputs + 1 + edges, hidden), act, nn.Linear(hidden, hidden), act
        )
        self.node_mlp = nn.Sequential(
            nn.Linear(hidden + inputs + more, hidden), act, nn.Linear(hidden, outputs)
        )
        last = [nn.Tanh()] if self.tanh else []
        self.coord_mlp = nn.Sequential(
            nn.Linear(hidden, hidden), act, nn.Linear(hidden, 1, bias=False), *last
        )
        if self.attention:
            self.att_mlp = nn.Sequential(nn.Linear(hidden, 1), nn.Sigmoid())

    def ray(self, away: Tensor, length: Tensor) -> Tensor:
        return away

    def step(self, steps: Tensor, row: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def forward(self, h, edge_index, coord, edge_attr=None, vel=None, node_attr=None):  # type: ignore[no-untyped-def]
        row, col = edge_index
        away = coord[row] - coord[col]
        radial = away.square().sum(1, keepdim=True)
        given = [h[row], h[col], radial] + ([] if edge_attr is None else [edge_attr])
        message = self.edge_mlp(torch.cat(given, 1))
        if self.attention:
            message = message * self.att_mlp(message)
        steps = self.ray(away, radial.sqrt()) * self.coord_mlp(message)
        coord = coord + self.step(steps, row, len(coord))
        if vel is not None:
            coord = coord + self.coord_mlp_vel(h) * vel
        total = h.new_zeros(len(h), message.shape[1]).index_add(0, row, message)
        more = [] if node_attr is None else [node_attr]
        new = self.node_mlp(torch.cat([h, total, *more], 1))
        return (h + new if getattr(self, self.residual_name) else new), coord


def _sum(steps: Tensor, row: Tensor, count: int) -> Tensor:
    return steps.new_zeros(count, steps.shape[1]).index_add(0, row, steps)


def _mean(steps: Tensor, row: Tensor, count: int) -> Tensor:
    return _sum(steps, row, count) / torch.bincount(row, minlength=count).clamp(min=1)[:, None]


class CleanLayer(_Layer):
    """That of egnn_clean.py."""

    def __init__(
        self,
        input_nf: int,
        output_nf: int,
        hidden_nf: int,
        edges_in_d: int = 0,
        act_fn: nn.Module = nn.SiLU(),  # noqa: B008
        residual: bool = True,
        attention: bool = False,
        normalize: bool = False,
        coords_agg: str = "mean",
        tanh: bool = False,
    ) -> None:
        super().__init__()
        self.residual, self.attention, self.normalize = residual, attention, normalize
        self.coords_agg, self.tanh, self.epsilon = coords_agg, tanh, 1e-8
        self._make(input_nf, output_nf, hidden_nf, edges_in_d, 0, act_fn)

    def ray(self, away: Tensor, length: Tensor) -> Tensor:
        return away / (length.detach() + self.epsilon) if self.normalize else away

    def step(self, steps: Tensor, row: Tensor, count: int) -> Tensor:
        return (_mean if self.coords_agg == "mean" else _sum)(steps, row, count)


class RecurrentLayer(_Layer):
    """That of gcl.py: what a ray adds is always clamped, whatever `clamp` says."""

    residual_name = "recurrent"

    def __init__(
        self,
        input_nf: int,
        output_nf: int,
        hidden_nf: int,
        edges_in_d: int = 0,
        nodes_att_dim: int = 0,
        act_fn: nn.Module = nn.ReLU(),  # noqa: B008
        recurrent: bool = True,
        coords_weight: float = 1.0,
        attention: bool = False,
        clamp: bool = False,
        norm_diff: bool = False,
        tanh: bool = False,
    ) -> None:
        super().__init__()
        self.coords_weight, self.recurrent, self.attention = coords_weight, recurrent, attention
        self.norm_diff, self.tanh, self.clamp = norm_diff, tanh, clamp
        self._make(input_nf, output_nf, hidden_nf, edges_in_d, nodes_att_dim, act_fn)
        if tanh:
            self.coords_range = 3 * torch.ones(1)

    def ray(self, away: Tensor, length: Tensor) -> Tensor:
        return away / (length + 1) if self.norm_diff else away

    def step(self, steps: Tensor, row: Tensor, count: int) -> Tensor:
        return self.coords_weight * _mean(steps.clamp(-100, 100), row, count)


class VelocityLayer(RecurrentLayer):
    """The same with velocities."""

    def __init__(
        self,
        input_nf: int,
        output_nf: int,
        hidden_nf: int,
        edges_in_d: int = 0,
        nodes_att_dim: int = 0,
        act_fn: nn.Module = nn.ReLU(),  # noqa: B008
        recurrent: bool = True,
        coords_weight: float = 1.0,
        attention: bool = False,
        norm_diff: bool = False,
        tanh: bool = False,
    ) -> None:
        super().__init__(
            input_nf,
            output_nf,
            hidden_nf,
            edges_in_d,
            nodes_att_dim,
            act_fn,
            recurrent,
            coords_weight,
            attention,
            norm_diff=norm_diff,
            tanh=tanh,
        )
        self.coord_mlp_vel = nn.Sequential(
            nn.Linear(input_nf, hidden_nf), act_fn, nn.Linear(hidden_nf, 1)
        )


class CleanNetwork(nn.Module):
    """The network of egnn_clean.py."""

    def __init__(
        self,
        in_node_nf: int,
        hidden_nf: int,
        out_node_nf: int,
        in_edge_nf: int = 0,
        device: str = "cpu",
        act_fn: nn.Module = nn.SiLU(),  # noqa: B008
        n_layers: int = 4,
        residual: bool = True,
        attention: bool = False,
        normalize: bool = False,
        tanh: bool = False,
    ) -> None:
        super().__init__()
        self.hidden_nf, self.device, self.n_layers = hidden_nf, device, n_layers
        self.embedding_in = nn.Linear(in_node_nf, hidden_nf)
        self.embedding_out = nn.Linear(hidden_nf, out_node_nf)
        options = {"residual": residual, "attention": attention, "normalize": normalize}
        for k in range(n_layers):
            layer = CleanLayer(
                hidden_nf, hidden_nf, hidden_nf, in_edge_nf, act_fn, tanh=tanh, **options
            )
            self.add_module(f"gcl_{k}", layer)

    def forward(self, h, x, edges, edge_attr):  # type: ignore[no-untyped-def]
        h = self.embedding_in(h)
        for k in range(self.n_layers):
            h, x = self._modules[f"gcl_{k}"](h, edges, x, edge_attr)
        return self.embedding_out(h), x


# as they are called where they are published: by this they are known
CleanLayer.__name__ = RecurrentLayer.__name__ = "E_GCL"
VelocityLayer.__name__, CleanNetwork.__name__ = "E_GCL_vel", "EGNN"
