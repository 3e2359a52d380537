"""The formulas of the oracle: graphs as lists, distances, angles, aggregations, MLPs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

Edge = tuple[int, int, int]  # source j, target i, row of edge_index
Angle = tuple[int, int, int]  # first ray j, vertex i, second ray k


# ------------------------------------------------------------------ the graph


class Values:
    """Vectors of one width by key; None for every key where there is no such value."""

    def __init__(self, of: Mapping | None = None, width: int = 0, stale: str = "") -> None:
        self.of, self.width, self.stale = of, width, stale

    @property
    def absent(self) -> bool:
        if self.stale:
            raise AssertionError(f"{self.stale} is read, but the model does not make it")
        return self.of is None

    def __getitem__(self, key: object) -> Tensor | None:
        return None if self.absent else self.of[key]


@dataclass
class Graph:
    """One graph: its nodes, its edges, and the features it came with."""

    nodes: list[int]
    edges: list[Edge]
    dimension: int
    x: dict[int, Tensor]  # coordinates
    v: Values = field(default_factory=Values)
    e: Values = field(default_factory=Values)
    a: Values = field(default_factory=Values)
    u: Values = field(default_factory=Values)
    near: dict[int, list[int]] = field(default_factory=dict)  # neighbours, once they are known

    def into(self, i: int) -> list[Edge]:
        """The edges that end at i."""
        return [edge for edge in self.edges if edge[1] == i]

    def between(self, j: int, i: int) -> list[Edge]:
        """The edges j -> i: none, one, or several that are parallel."""
        return [edge for edge in self.edges if edge[:2] == (j, i)]

    def neighbours(self, i: int) -> list[int]:
        """N_i^u: the in- and out-neighbours of i, each once; a self-loop makes none."""
        if i not in self.near:
            others = [j for j in self.nodes if j != i]
            self.near[i] = [j for j in others if self.between(j, i) or self.between(i, j)]
        return self.near[i]

    def angles_at(self, i: int) -> list[Angle]:
        """The angles with vertex i, as ordered pairs of different neighbours."""
        near = self.neighbours(i)
        return [(j, i, k) for j in near for k in near if j != k]

    def angles(self) -> list[Angle]:
        """A, all of them."""
        return [angle for i in self.nodes for angle in self.angles_at(i)]


def graphs_of(data: Data, angle_index: Tensor | None = None) -> list[Graph]:
    """The graphs of a `Data` or `Batch`, nodes and edges named by their rows in it.

    `angle_index [3, A]` says which angle each row of `data.angle_attr` belongs to.
    """
    batch = data.batch.tolist() if data.batch is not None else [0] * data.pos.shape[0]
    count = data.num_graphs if hasattr(data, "ptr") else max(batch, default=0) + 1
    edges = [(j, i, row) for row, (j, i) in enumerate(data.edge_index.t().tolist())]
    angle_attr, u = getattr(data, "angle_attr", None), getattr(data, "u", None)
    graphs = []
    for g in range(count):
        nodes = [i for i, of in enumerate(batch) if of == g]
        mine = [edge for edge in edges if batch[edge[1]] == g]
        graph = Graph(nodes, mine, data.pos.shape[1], {i: data.pos[i] for i in nodes})
        if data.x is not None:
            graph.v = Values({i: data.x[i] for i in nodes}, data.x.shape[1])
        if data.edge_attr is not None:
            attr = data.edge_attr
            graph.e = Values({edge: attr[edge[2]] for edge in graph.edges}, attr.shape[1])
        if angle_attr is not None:
            assert angle_index is not None
            rows = {tuple(angle): row for row, angle in enumerate(angle_index.t().tolist())}
            given = {angle: angle_attr[rows[angle]] for angle in graph.angles()}
            graph.a = Values(given, angle_attr.shape[1])
        if u is not None:
            graph.u = Values({(): u[g]}, u.shape[1])
        graphs.append(graph)
    return graphs


# ------------------------------------------------------------------ measures of coordinates


def dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


def norm(x: Tensor) -> Tensor:
    """|x|; that of the zero vector is 0, with gradient 0."""
    return dot(x, x).sqrt() if bool((x != 0).any()) else 0.0 * x.sum()


def distance2(x: Tensor, y: Tensor) -> Tensor:
    """|x - y|^2 as a vector of one number, to be concatenated."""
    return dot(x - y, x - y).reshape(1)


def theta(x_j: Tensor, x_i: Tensor, x_k: Tensor) -> Tensor:
    """The angle at x_i, from its cosine (a, b) and its sine |a ^ b|, both times |a| |b|.

    |a ^ b|^2 is the sum of the squared minors a_r b_c - a_c b_r. On a line there are none.
    """
    a, b = x_j - x_i, x_k - x_i
    if not bool((a != 0).any() and (b != 0).any()):
        return 0.0 * a.sum().reshape(1)
    n = a.shape[0]
    minors = [a[r] * b[c] - a[c] * b[r] for r in range(n) for c in range(r + 1, n)]
    sine = norm(torch.stack(minors)) if minors else torch.zeros_like(a[0])
    return torch.atan2(sine, dot(a, b)).reshape(1)


def separation(x_j: Tensor, x_i: Tensor, x_k: Tensor) -> Tensor | None:
    """s_jik = |x_j - x_k| / (|x_i - x_j| |x_i - x_k|); None where a ray has no length."""
    a, b = norm(x_i - x_j), norm(x_i - x_k)
    return norm(x_j - x_k) / (a * b) if a > 0 and b > 0 else None


def rotation(turns: Tensor, n: int) -> Tensor:
    """exp(S), S having `turns` above the diagonal, row by row, and negated below.

    By the power series of exp(S / 2^k), squared k times: exact to rounding also for long turns.
    """
    rows = [[torch.zeros((), dtype=turns.dtype) for _ in range(n)] for _ in range(n)]
    numbers = iter(turns)
    for r in range(n):
        for c in range(r + 1, n):
            rows[r][c] = next(numbers)
            rows[c][r] = -rows[r][c]
    skew = torch.stack([torch.stack(row) for row in rows])
    squarings = max(0, math.ceil(math.log2(1 + skew.abs().sum().item())))
    total = term = torch.eye(n, dtype=turns.dtype)
    for power in range(1, 25):
        term = term @ skew / (power * 2**squarings)
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return total


# ------------------------------------------------------------------ rho and phi


def rho(how: str, values: list[Tensor], width: int) -> Tensor:
    """Sum, mean or maximum, entry by entry; of nothing, 0."""
    if not values:
        return torch.zeros(width, dtype=torch.float64)
    if how == "max":
        numbers = [value.tolist() for value in values]
        winner = [max(range(len(values)), key=lambda r: numbers[r][c]) for c in range(width)]
        return torch.stack([values[r][c] for c, r in enumerate(winner)])
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total / len(values) if how == "mean" else total


def swish(y: Tensor) -> Tensor:
    return y * torch.sigmoid(y)


def mlp(phi: nn.Module, parts: Iterable[Tensor | None]) -> Tensor:
    """An ordinary MLP with swish on the concatenation of the parts that are there."""
    there = [part for part in parts if part is not None]
    y = torch.cat(there) if there else torch.zeros(0, dtype=torch.float64)
    for number, linear in enumerate(phi.linears):
        y = linear.weight @ (swish(y) if number else y) + linear.bias
    return y


# ------------------------------------------------------------------ the state and the blocks
