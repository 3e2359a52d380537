"""Random networks that are symmetric by construction, of many kinds, sizes and output types."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

ACTIVATIONS = (nn.SiLU, nn.Tanh, nn.GELU, nn.ReLU, nn.Softplus, nn.ELU)


@dataclass
class Drawn:
    """A model, data for it, and the groups that it has by construction."""

    model: Callable
    data: Data
    groups: list[str]
    vectors: tuple[str, ...] = ()


class Network(nn.Module):
    """Scalars and vectors on nodes, with choices drawn by a generator."""

    def __init__(self, rng: random.Random, n: int, chiral: bool) -> None:
        super().__init__()
        w = self.width = rng.choice((4, 6, 8))
        self.n, self.chiral = n, chiral and n == 3
        self.cutoff = rng.choice((0.0, 3.0, 6.0))
        self.basis = rng.choice((1, 4))
        self.pool = rng.choice(("sum", "mean", "max"))
        self.output = rng.choice(("energy", "node", "vector", "moved", "tensor", "both", "edge"))
        self.offset = rng.choice((0.0, 0.0, 100.0, -8000.0))
        self.scale = rng.choice((1.0, 1.0, 1e-4, 1e4))
        self.attends = rng.random() < 0.3
        self.norm = rng.choice((nn.Identity(), nn.LayerNorm(w)))
        act = rng.choice(ACTIVATIONS)
        self.embed = nn.Embedding(10, w)
        layers = range(rng.choice((1, 2, 3)))
        wide = 2 * w + self.basis
        self.messages = nn.ModuleList(
            [nn.Sequential(nn.Linear(wide, w), act(), nn.Linear(w, w)) for _ in layers]
        )
        self.gates = nn.ModuleList([nn.Linear(w, 2 * w) for _ in layers])
        self.mixes = nn.ModuleList([nn.Linear(w, w, bias=False) for _ in layers])
        self.updates = nn.ModuleList([nn.Sequential(nn.Linear(2 * w, w), act()) for _ in layers])
        self.drop = nn.Dropout(rng.choice((0.0, 0.3)))
        self.head, self.pull = nn.Linear(w, 1), nn.Linear(w, 1, bias=False)

    def edges(self, pos: Tensor, edge_index: Tensor | None = None) -> Tensor:
        if edge_index is not None:
            return edge_index
        near = ~torch.eye(len(pos), dtype=torch.bool)
        if self.cutoff:
            near &= torch.cdist(pos, pos, compute_mode="donot_use_mm_for_euclid_dist") < self.cutoff
        return near.nonzero().T

    def radial(self, d: Tensor) -> Tensor:
        if self.basis == 1:
            return d / 3
        centres = torch.linspace(0, 4, self.basis).to(d)
        return torch.exp(-((d - centres) ** 2))

    def forward(
        self, z: Tensor, pos: Tensor, vel: Tensor, edge_index: Tensor | None = None
    ) -> dict[str, Tensor]:
        source, target = self.edges(pos, edge_index)
        rays = pos[source] - pos[target]
        d = rays.square().sum(1, keepdim=True).sqrt()
        smooth = torch.ones_like(d)
        if self.cutoff:
            smooth = 0.5 * (torch.cos(torch.pi * d / self.cutoff) + 1)
        h = self.embed(z)
        v = vel[:, :, None].expand(-1, -1, self.width) * 0.1
        layers = zip(self.messages, self.gates, self.mixes, self.updates, strict=True)
        for message, gate, mix, update in layers:
            m = message(torch.cat([h[source], h[target], self.radial(d)], 1)) * smooth
            if self.attends:
                weight = torch.exp(m[:, :1].clamp(max=5)) * smooth
                total = weight.new_zeros(len(h), 1).index_add(0, target, weight)
                m = m * weight / (total[target] + 1e-3)
            a, b = gate(m).chunk(2, 1)
            sent = a[:, None] * v[source] + b[:, None] * (rays / d)[:, :, None]
            v = mix(v.index_add(0, target, 0.2 * sent * smooth[:, :, None]))
            if self.chiral:
                v = v + 0.1 * torch.linalg.cross(v, v.roll(1, 2), dim=1)
            h = self.norm(h.index_add(0, target, 0.2 * m))
            length = (v.square().sum(1) + 1e-2).sqrt()
            h = h + self.drop(update(torch.cat([h, length], 1)))
        return self.outputs(h, v, pos, source, target, m)

    def outputs(self, h, v, pos, source, target, m) -> dict[str, Tensor]:
        each = self.head(h)
        energy = {"sum": each.sum(0), "mean": each.mean(0), "max": each.amax(0)}[self.pool]
        energy = self.scale * energy + self.offset
        vector = self.scale * self.pull(v).squeeze(2)
        if self.output == "energy":
            return {"energy": energy}
        if self.output == "node":
            return {"charges": self.scale * h[:, :3]}
        if self.output == "vector":
            return {"push": vector}
        if self.output == "moved":
            return {"moved": pos + self.pull(v).squeeze(2)}
        if self.output == "tensor":
            return {"tensor": torch.einsum("niw,njw->nij", v, v)}
        if self.output == "edge":
            return {"edge": m[:, :2]} if not self.cutoff else {"node": each.squeeze(1)}
        return {"energy": energy, "push": vector}


def drawn(seed: int) -> Drawn:
    """The random model number `seed`, in 2 to 4 dimensions, with random parameters and data."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    n = rng.choice((2, 3, 3, 3, 4))
    chiral = rng.random() < 0.2
    model = Network(rng, n, chiral)
    for parameter in model.parameters():
        parameter.data *= rng.choice((0.5, 1.0, 1.5))
    nodes = rng.randint(4, 12)
    spread = rng.choice((0.8, 1.2, 2.0))
    pos = spread * torch.randn(nodes, n) + rng.choice((0.0, 1.0, 10.0))
    data = Data(pos=pos, z=torch.randint(1, 9, (nodes,)), vel=torch.randn(nodes, n))
    if not model.cutoff:
        data.edge_index = model.edges(pos)
    group = f"SE({n})" if model.chiral else f"E({n})"
    return Drawn(model, data, [group, "permutations"], ("vel",))
