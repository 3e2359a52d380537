"""A sound network of plain PyTorch, and the same with one fault each, as users plant them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data


def molecule(nodes: int = 9, seed: int = 0, dtype: torch.dtype = torch.float32) -> Data:
    """A cloud of atoms about as dense as a molecule, all joined, with features."""
    generator = torch.Generator().manual_seed(seed)
    pos = 1.2 * torch.randn(nodes, 3, generator=generator) + 0.5
    edges = (~torch.eye(nodes, dtype=torch.bool)).nonzero().T.contiguous()
    z = torch.randint(1, 9, (nodes,), generator=generator)
    return Data(
        pos=pos.to(dtype),
        x=torch.randn(nodes, 4, generator=generator).to(dtype),
        z=z,
        edge_index=edges,
    )


class Layer(nn.Module):
    """Messages of distances move features and coordinates, as in EGNN."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU())
        self.update = nn.Linear(2 * width, width)
        self.pull = nn.Linear(width, 1)

    def distances(self, rays: Tensor) -> Tensor:
        return rays.square().sum(1, keepdim=True)

    def forward(self, h: Tensor, pos: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        source, target = edge_index
        rays = pos[source] - pos[target]
        m = self.message(torch.cat([h[source], h[target], self.distances(rays)], 1))
        pos = pos.index_add(0, target, 0.1 * rays * self.pull(m))
        total = torch.zeros_like(h).index_add(0, target, m)
        return h + self.update(torch.cat([h, total], 1)), pos


class Net(nn.Module):
    """Gives an energy and moved coordinates."""

    layer: type[nn.Module] = Layer
    extra = 0  # more columns that the first layer reads

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Linear(4 + self.extra, width)
        self.layers = nn.ModuleList([self.layer(width) for _ in range(3)])
        self.head = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def features(self, data: Data) -> Tensor:
        return data.x

    def edges(self, data: Data) -> Tensor:
        return data.edge_index

    def coordinates(self, pos: Tensor, k: int) -> Tensor:
        return pos

    def forward(self, data: Data) -> dict[str, Tensor]:
        h, pos, edge_index = self.embed(self.features(data)), data.pos, self.edges(data)
        for k, layer in enumerate(self.layers):
            h, pos = layer(h, self.coordinates(pos, k), edge_index)
        return {"energy": self.head(h).sum(0), "moved": pos}


class NormedCoordinates(Net):
    """A LayerNorm on the coordinates, before the second layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def coordinates(self, pos: Tensor, k: int) -> Tensor:
        return self.norm(pos) if k == 1 else pos


class Leak(Net):
    """Absolute positions among the node features."""

    extra = 3

    def features(self, data: Data) -> Tensor:
        return torch.cat([data.x, data.pos], 1)


def capped_graph(pos: Tensor, radius: float, most: int) -> Tensor:
    """As the usual compiled search does it: the first neighbours found, up to a number."""
    near = (torch.cdist(pos, pos) < radius) & ~torch.eye(len(pos), dtype=torch.bool)
    near &= near.cumsum(1) <= most
    return near.nonzero().T.flip(0)


class Capped(Net):
    """A radius graph with a cap on the neighbours, made in the forward."""

    def edges(self, data: Data) -> Tensor:
        return capped_graph(data.pos, 4.0, 3)


class RadiusGraph(nn.Module):
    """The same as a submodule."""

    def forward(self, pos: Tensor) -> Tensor:
        return capped_graph(pos, 4.0, 3)


class CappedModule(Net):
    """A radius graph with a cap, made by a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.search = RadiusGraph()

    def edges(self, data: Data) -> Tensor:
        return self.search(data.pos)


class DroppingLayer(Layer):
    """Dropout that eval mode does not turn off."""

    def forward(self, h: Tensor, pos: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        h, pos = super().forward(h, pos, edge_index)
        return nn.functional.dropout(h, 0.2), pos


class Dropping(Net):
    """Dropout left on in the second layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers[1] = DroppingLayer(16)


class HalfDistance(nn.Module):
    """A distance in float16."""

    def forward(self, rays: Tensor) -> Tensor:
        return rays.half().square().sum(1, keepdim=True).to(rays.dtype)


class HalfLayer(Layer):
    """A layer that measures in float16."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.measure = HalfDistance()

    def distances(self, rays: Tensor) -> Tensor:
        return self.measure(rays)


class HalfMeasure(Net):
    """float16 on what turns, in the second layer: rotations hold only roughly."""

    def __init__(self) -> None:
        super().__init__()
        self.layers[1] = HalfLayer(16)


class HalfLinear(nn.Linear):
    """A linear layer in float16."""

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.weight.half().float(), self.bias.float()
        return nn.functional.linear(x.half().float(), weight, bias).half().to(x.dtype)


class HalfFeatures(Net):
    """float16 on what stays, in the second layer: no symmetry breaks, digits are lost."""

    def __init__(self) -> None:
        super().__init__()
        self.layers[1].update = HalfLinear(32, 16)


class EdgeVectors(Net):
    """Compares the edge vectors in `edge_attr` with those of the coordinates."""

    extra = 1

    def features(self, data: Data) -> Tensor:
        source, target = data.edge_index
        rays = data.pos[target] - data.pos[source]
        along = (rays * data.edge_attr).sum(1)
        return torch.cat(
            [data.x, along.new_zeros(len(data.pos)).index_add(0, target, along)[:, None]], 1
        )


class Handedness(nn.Module):
    """The signed volume that each node spans with its first three neighbours."""

    def forward(self, pos: Tensor) -> Tensor:
        distances = torch.cdist(pos, pos)
        near = distances.argsort(1)[:, 1:4]
        return torch.linalg.det(pos[near] - pos[:, None]).unsqueeze(1)


class Chiral(Net):
    """Reads a feature that changes its sign in a mirror."""

    extra = 1

    def __init__(self) -> None:
        super().__init__()
        self.hand = Handedness()

    def features(self, data: Data) -> Tensor:
        return torch.cat([data.x, self.hand(data.pos)], 1)
