"""A sound network with scalars and vectors, and forty faults planted into copies of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

WIDTH = 8


def everyone(pos: Tensor) -> Tensor:
    return (~torch.eye(len(pos), dtype=torch.bool)).nonzero().T


class Search(nn.Module):
    def forward(self, pos: Tensor) -> Tensor:
        return everyone(pos)


class Rays(nn.Module):
    def forward(self, pos: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        rays = pos[edge_index[0]] - pos[edge_index[1]]
        length = rays.square().sum(1, keepdim=True).sqrt()
        return rays / length, length


class Gather(nn.Module):
    def forward(self, values: Tensor, target: Tensor, count: int) -> Tensor:
        return values.new_zeros(count, *values.shape[1:]).index_add(0, target, values)


class Length(nn.Module):
    def forward(self, v: Tensor) -> Tensor:
        return (v.square().sum(1) + 1e-3).sqrt()


class Layer(nn.Module):
    """Messages of distances, gated sums of vectors; `h` is `[N, w]`, `v` is `[N, 3, w]`."""

    def __init__(self, w: int = WIDTH) -> None:
        super().__init__()
        self.rays, self.gather, self.length = Rays(), Gather(), Length()
        self.message = nn.Sequential(nn.Linear(2 * w + 1, w), nn.SiLU())
        self.split = nn.Linear(w, 2 * w)
        self.mix = nn.Linear(w, w, bias=False)
        self.norm = nn.LayerNorm(w)
        self.update = nn.Linear(2 * w, w)

    def forward(self, h: Tensor, v: Tensor, pos: Tensor, edge_index: Tensor):
        source, target = edge_index
        unit, length = self.rays(pos, edge_index)
        m = self.message(torch.cat([h[source], h[target], length], 1))
        a, b = self.split(m).chunk(2, 1)
        sent = a[:, None] * v[source] + b[:, None] * unit[:, :, None]
        v = self.mix(v + 0.3 * self.gather(sent, target, len(h)))
        h = self.norm(h + 0.3 * self.gather(m, target, len(h)))
        return h + self.update(torch.cat([h, self.length(v)], 1)).tanh(), v


class Sound(nn.Module):
    """An energy and a vector for each node."""

    def __init__(self) -> None:
        super().__init__()
        self.search = Search()
        self.embed = nn.Embedding(10, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.head = nn.Linear(WIDTH, 1)
        self.pull = nn.Linear(WIDTH, 1, bias=False)

    def between(self, h: Tensor, v: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        return h, v

    def forward(self, z: Tensor, pos: Tensor) -> dict[str, Tensor]:
        edges, h = self.search(pos), self.embed(z)
        v = h.new_zeros(len(h), 3, WIDTH)
        for k, layer in enumerate(self.layers):
            h, v = layer(h, v, pos, edges)
            if k == 0:
                h, v = self.between(h, v, pos)
        return {"energy": self.head(h).sum(0), "push": self.pull(v).squeeze(2)}


class Do(nn.Module):
    """A submodule made of a function."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class After(nn.Module):
    """A fault behind what was there."""

    def __init__(self, inner: nn.Module, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.inner, self.function = inner, function

    def forward(self, *args):
        return self.function(self.inner(*args), *args)


class Ordered(nn.Module):
    """A recurrent layer over the nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(2 * WIDTH, WIDTH)

    def forward(self, h: Tensor) -> Tensor:
        return self.gru(h)[0]


def axis(pos: Tensor, *values: float) -> Tensor:
    return pos.new_tensor(values)


def capped(pos: Tensor, most: int, above: int = 0) -> Tensor:
    near = ~torch.eye(len(pos), dtype=torch.bool)
    if len(pos) > above:
        near &= near.cumsum(1) <= most
    return near.nonzero().T.flip(0)


def signed(v: Tensor) -> Tensor:
    return torch.linalg.det(v[:, :, :3])[:, None]


def last_one(values: Tensor, target: Tensor, count: int) -> Tensor:
    out = values.new_zeros(count, *values.shape[1:])
    out[target] = values  # the last of those with the same target
    return out


def quadrupole(v: Tensor) -> Tensor:
    """Of degree 2, with one of its five components scaled."""
    x, y, z = v[:, 0], v[:, 1], v[:, 2]
    five = [2 * x * y, 2 * y * z, (2 * z * z - x * x - y * y) / 3**0.5, 2 * x * z, x * x - y * y]
    five[3] = 1.5 * five[3]
    return torch.stack(five).square().sum(0)


def at_pole(pair: tuple[Tensor, Tensor], pos: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Where the first ray points to within 12 degrees of z, 1 % of the sphere, it is longer."""
    unit, length = pair
    return unit, torch.where(unit[0, 2] > 0.98, 1.2 * length, length)


def after_rays(change: Callable[..., tuple[Tensor, Tensor]]) -> Callable[[], nn.Module]:
    return lambda: After(Rays(), change)


def linear(bias: bool) -> nn.Module:
    return nn.Linear(WIDTH, WIDTH, bias=bias)


def mixed(change: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    return lambda: After(linear(False), lambda v, _: change(v))


@dataclass(frozen=True)
class Fault:
    """A fault: the submodule it replaces, what with, and the kinds that it breaks."""

    name: str
    at: str
    make: Callable[[], nn.Module]
    kinds: str
    module: str | None = None  # where it has to be located; None: at `at`

    @property
    def where(self) -> str:
        return self.at if self.module is None else self.module


P, T, R, M = "permutation", "translation", "rotation", "reflection"
TRM = f"{T} {R} {M}"
RM = f"{R} {M}"

FAULTS = [
    # vectors
    Fault("bias on vectors", "layers.1.mix", lambda: linear(True), RM),
    Fault(
        "LayerNorm of components",
        "layers.1.mix",
        mixed(lambda v: (v - v.mean(1, True)) / (v.std(1, keepdim=True) + 1)),
        RM,
    ),
    Fault("SiLU of components", "layers.1.mix", mixed(nn.functional.silu), RM),
    Fault("tanh of components", "layers.0.mix", mixed(torch.tanh), RM),
    Fault(
        "a component dropped", "layers.1.mix", mixed(lambda v: v * axis(v, 1, 1, 0)[:, None]), RM
    ),
    Fault("an axis scaled", "layers.0.mix", mixed(lambda v: v * axis(v, 1, 1, 0.9)[:, None]), RM),
    Fault("clipped components", "layers.1.mix", mixed(lambda v: v.clamp(-0.2, 0.2)), RM),
    Fault(
        "a fixed direction", "layers.1.mix", mixed(lambda v: v + axis(v, 0, 0, 0.3)[:, None]), RM
    ),
    Fault("softmax of components", "layers.1.mix", mixed(lambda v: v * v.softmax(1)), RM),
    Fault(
        "a cross product",
        "layers.1.mix",
        mixed(lambda v: v + torch.linalg.cross(v, v.roll(1, 2), dim=1)),
        M,
    ),
    Fault("abs of components", "layers.1.mix", mixed(torch.abs), RM),
    Fault("rounded to a grid", "layers.1.mix", mixed(lambda v: (8 * v).round() / 8), RM),
    Fault("half precision", "layers.1.mix", mixed(lambda v: v.half().to(v.dtype)), RM),
    # lengths
    Fault("sum of absolute values", "layers.1.length", lambda: Do(lambda v: v.abs().sum(1)), RM),
    Fault("largest component", "layers.1.length", lambda: Do(lambda v: v.abs().amax(1)), RM),
    Fault(
        "length in a plane", "layers.1.length", lambda: Do(lambda v: v[:, :2].square().sum(1)), RM
    ),
    Fault("mean over components", "layers.1.length", lambda: Do(lambda v: v.mean(1)), RM),
    Fault(
        "a signed volume",
        "layers.1.length",
        lambda: After(Length(), lambda s, v: s + 3 * signed(v)),
        M,
    ),
    Fault(
        "half an outer product",
        "layers.1.length",
        lambda: Do(
            lambda v: (
                torch.einsum("niw,njw->nijw", v, v).movedim(3, 1).triu().square().sum((2, 3)).sqrt()
            )
        ),
        RM,
    ),
    Fault("a component of degree 2", "layers.1.length", lambda: Do(quadrupole), RM),
    # rays
    Fault(
        "divided by components",
        "layers.1.rays",
        after_rays(lambda p, pos, e: (p[0] / (1 + p[0].abs()), p[1])),
        RM,
    ),
    Fault(
        "distance in a plane",
        "layers.1.rays",
        after_rays(lambda p, pos, e: (p[0], p[1] * p[0][:, :2].norm(dim=1, keepdim=True))),
        RM,
    ),
    Fault(
        "distance from the origin",
        "layers.0.rays",
        after_rays(lambda p, pos, e: (p[0], p[1] + 0.2 * pos.norm(dim=1, keepdim=True)[e[0]])),
        T,
    ),
    Fault(
        "absolute height",
        "layers.0.rays",
        after_rays(lambda p, pos, e: (p[0], p[1] + 0.2 * pos[e[0], 2:])),
        TRM,
    ),
    Fault(
        "a box of its own", "layers.0.rays", lambda: Do(lambda pos, e: Rays()(pos % 5.0, e)), TRM
    ),
    Fault(
        "coordinates on a grid",
        "layers.1.rays",
        lambda: Do(lambda pos, e: Rays()((4 * pos).round() / 4, e)),
        TRM,
    ),
    Fault(
        "distance in float16",
        "layers.1.rays",
        lambda: Do(lambda pos, e: Rays()(pos.half().to(pos.dtype), e)),
        TRM,
    ),
    Fault("a pole", "layers.0.rays", after_rays(at_pole), R),
    # coordinates among the features
    Fault("a leak into the embedding", "embed", lambda: Do(None), TRM),
    Fault("a leak between layers", "between", lambda: Do(None), TRM, ""),
    Fault("a direction between layers", "between", lambda: Do(None), RM, ""),
    # the order of nodes and edges
    Fault(
        "the number of a node",
        "embed",
        lambda: After(
            nn.Embedding(10, WIDTH), lambda h, z: h + torch.arange(len(z)).to(h)[:, None] / 9
        ),
        P,
    ),
    Fault("a cap on neighbours", "search", lambda: Do(lambda pos: capped(pos, 3)), P),
    Fault("a cap above twelve nodes", "search", lambda: Do(lambda pos: capped(pos, 5, 12)), P),
    Fault(
        "neighbours in the sequence",
        "search",
        lambda: Do(
            lambda pos: (
                (
                    torch.cdist(
                        torch.arange(len(pos)).to(pos)[:, None],
                        torch.arange(len(pos)).to(pos)[:, None],
                    )
                    .round()
                    .sub(2)
                    .abs()
                    < 2
                )
                .nonzero()
                .T
            )
        ),
        P,
    ),
    Fault("the last message wins", "layers.1.gather", lambda: Do(last_one), P),
    Fault("relative to the first node", "layers.1.norm", lambda: Do(lambda h: h - h[:1]), P),
    Fault(
        "weighted by the order",
        "layers.1.norm",
        lambda: Do(lambda h: h * torch.linspace(0.5, 1, len(h)).to(h)[:, None]),
        P,
    ),
    Fault("a recurrent layer", "layers.1.update", Ordered, P),
    Fault("a sum along the sequence", "layers.0.norm", lambda: Do(lambda h: h.cumsum(0)), P),
]


class LeakyEmbedding(Sound):
    """Coordinates are added where only z should be read."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, WIDTH)

    def forward(self, z: Tensor, pos: Tensor) -> dict[str, Tensor]:
        table, given = self.embed, torch.cat([z[:, None].to(pos), pos], 1)
        edges, h = self.search(pos), table(given)
        v = h.new_zeros(len(h), 3, WIDTH)
        for layer in self.layers:
            h, v = layer(h, v, pos, edges)
        return {"energy": self.head(h).sum(0), "push": self.pull(v).squeeze(2)}


class LeakBetween(Sound):
    def between(self, h: Tensor, v: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        return h + 0.3 * pos[:, :1], v


class DirectionBetween(Sound):
    def between(self, h: Tensor, v: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        return h + v[:, 2], v


SPECIAL = {
    "a leak into the embedding": LeakyEmbedding,
    "a leak between layers": LeakBetween,
    "a direction between layers": DirectionBetween,
}


def planted(fault: Fault, seed: int = 0) -> nn.Module:
    """A network with the fault, and random parameters."""
    torch.manual_seed(seed)
    if fault.name in SPECIAL:
        return SPECIAL[fault.name]()
    model = Sound()
    parent, _, name = fault.at.rpartition(".")
    setattr(model.get_submodule(parent), name, fault.make())
    return model


def cloud(nodes: int = 9, seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    pos = 1.2 * torch.randn(nodes, 3, generator=generator) + 0.5
    return Data(pos=pos, z=torch.randint(1, 9, (nodes,), generator=generator))
