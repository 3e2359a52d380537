"""The layer of EGNN as first published (Satorras, Hoogeboom and Welling 2021), eqs. 3 to 6."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class E_GCL(nn.Module):  # noqa: N801
    """With its names and defaults, but that it sums the steps; nodes and messages are h wide."""

    attention, tanh, residual, coords_agg = False, False, True, "sum"

    def __init__(self, hidden: int) -> None:
        super().__init__()
        swish = nn.SiLU()
        self.edge_mlp = nn.Sequential(
            nn.Linear(2 * hidden + 1, hidden), swish, nn.Linear(hidden, hidden), swish
        )
        self.node_mlp = nn.Sequential(
            nn.Linear(2 * hidden, hidden), swish, nn.Linear(hidden, hidden)
        )
        self.coord_mlp = nn.Sequential(
            nn.Linear(hidden, hidden), swish, nn.Linear(hidden, 1, bias=False)
        )

    def forward(self, h: Tensor, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """`[N, h], [N, n] -> [N, h], [N, n]`; as elsewhere here, messages go from row to column."""
        col, row = edge_index
        ray = x[row] - x[col]
        length = ray.square().sum(1, keepdim=True)
        message = self.edge_mlp(torch.cat([h[row], h[col], length], 1))
        x = x.index_add(0, row, ray * self.coord_mlp(message))
        total = h.new_zeros(h.shape[0], message.shape[1]).index_add(0, row, message)
        return h + self.node_mlp(torch.cat([h, total], 1)), x
