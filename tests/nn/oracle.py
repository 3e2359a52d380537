"""The paper's equations as they are printed: one node, one edge, one angle at a time.

This is what the fast code is compared with, so it shares none of its mathematics: no batches, no
buckets, no scatter, no linear map moved through a sum. Values are float64 vectors in dictionaries:
of nodes by i, of edges by (j, i, row) for the edge j -> i in that row of `edge_index` (parallel
edges differ in the row), of angles by (j, i, k) with the vertex i in the middle. Only the weights
come from the model. Autograd through these loops gives the gradients.

A value whose update the model left out, because nobody reads it, is *stale*: reading it here is an
error, so an update that was left out by mistake cannot go unnoticed.
"""

from __future__ import annotations

import copy
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


@dataclass
class State:
    """The values of one graph at one moment, and how they are aggregated."""

    graph: Graph
    x: Values
    v: Values
    e: Values
    a: Values
    u: Values
    how: Mapping[str, str]
    separations: dict[Angle, Tensor | None] = field(default_factory=dict)
    mean_separation: dict[int, Tensor | float] = field(default_factory=dict)

    def reduced(self, movement: str, values: Values, keys: Iterable) -> Tensor | None:
        """rho of the values with these keys; None if there are no such values at all."""
        if values.absent:
            return None
        return rho(self.how.get(movement, "sum"), [values[key] for key in keys], values.width)

    def d2(self, j: int, i: int) -> Tensor:
        return distance2(self.x[i], self.x[j])

    def theta(self, j: int, i: int, k: int) -> Tensor:
        return theta(self.x[j], self.x[i], self.x[k])

    def kappa(self, j: int, i: int, k: int) -> Tensor:
        """s_jik by its mean over the ordered pairs at i."""
        mine, mean = self.separations[j, i, k], self.mean_separation[i]
        if mine is None or not mean > 0:
            return torch.zeros(1, dtype=torch.float64)
        return (mine / mean).reshape(1)

    def separate(self) -> None:
        """s of all angles and its mean at each vertex, at the current coordinates."""
        for i in self.graph.nodes:
            at = {a: separation(*(self.x[p] for p in a)) for a in self.graph.angles_at(i)}
            defined = [s for s in at.values() if s is not None]
            self.separations |= at
            self.mean_separation[i] = sum(defined) / max(len(defined), 1)

    # the reductions that most blocks read

    def e_to_v(self, i: int) -> Tensor | None:
        return self.reduced("e->v", self.e, self.graph.into(i))

    def a_to_v(self, i: int) -> Tensor | None:
        return self.reduced("a->v", self.a, self.graph.angles_at(i))

    def v_to_u(self) -> Tensor | None:
        return self.reduced("v->u", self.v, self.graph.nodes)

    def e_to_u(self) -> Tensor | None:
        return self.reduced("e->u", self.e, self.graph.edges)

    def a_to_u(self) -> Tensor | None:
        return self.reduced("a->u", self.a, self.graph.angles())


class GN:
    """Eq. (gnn)."""

    reads_positions = True

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.v[j], s.v[i], s.e[j, i, row], s.u[()]

    def node(self, s: State, i: int) -> tuple:
        return s.v[i], s.e_to_v(i), s.u[()]

    def graph(self, s: State) -> tuple:
        return s.v_to_u(), s.e_to_u(), s.u[()]


class DGN:
    """Eq. (En)."""

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.e[j, i, row], s.v[i], s.v[j], s.d2(j, i), s.u[()]

    def node(self, s: State, i: int) -> tuple:
        return s.e_to_v(i), s.v[i], s.u[()]

    def graph(self, s: State) -> tuple:
        lengths = Values({edge: s.d2(*edge[:2]) for edge in s.graph.edges}, 1)
        d2 = s.reduced("x->u", lengths, s.graph.edges)
        return s.e_to_u(), s.v_to_u(), d2, s.u[()]


class DGNPosition(DGN):
    """Not of the paper: DGN whose nodes read coordinates too, so that a common motion shows."""

    def node(self, s: State, i: int) -> tuple:
        return s.e_to_v(i), s.v[i], s.x[i], s.u[()]


class SDGN(DGN):
    """DGN on coordinates times alpha / max |x_i - x_j|."""

    scaled = True


class AGN:
    """Eq. (angulaGN)."""

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        return s.v[i], s.v[j], s.v[k], s.a[j, i, k], s.theta(j, i, k), s.u[()]

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.v[j], s.v[i], s.e[j, i, row], s.u[()]

    def node(self, s: State, i: int) -> tuple:
        return s.v[i], s.e_to_v(i), s.a_to_v(i), s.u[()]

    def graph(self, s: State) -> tuple:
        return s.v_to_u(), s.e_to_u(), s.a_to_u(), s.u[()]


class AGNEdges(AGN):
    """Edge attributes in the angle updates."""

    def ray(self, s: State, i: int, j: int) -> Tensor | None:
        """e_ij; where there is no such edge, e_ji; the mean of parallel ones."""
        edges = s.graph.between(i, j) or s.graph.between(j, i)
        return None if s.e.absent else rho("mean", [s.e[e] for e in edges], s.e.width)

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        rays = self.ray(s, i, j), self.ray(s, i, k)
        return s.v[i], s.v[j], s.v[k], *rays, s.a[j, i, k], s.theta(j, i, k), s.u[()]


class AGNDistances(AGN):
    """Relative distances in the angle updates."""

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        d2 = s.d2(j, i), s.d2(k, i)
        return s.v[i], s.v[j], s.v[k], s.a[j, i, k], *d2, s.theta(j, i, k), s.u[()]


class AGNToEdges(AGN):
    """Angle attributes in the edge updates.

    The paper writes it for e_ij, i the source and j the target: first rho of a_ijk, with the
    vertex at the target, then of a_jik, with the vertex at the source.
    """

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        source, target = j, i
        at_target = [angle for angle in s.graph.angles_at(target) if angle[0] == source]
        at_source = [angle for angle in s.graph.angles_at(source) if angle[0] == target]
        return (
            s.e[j, i, row],
            s.v[source],
            s.v[target],
            s.reduced("a->e", s.a, at_target),
            s.reduced("a->e", s.a, at_source),
            s.u[()],
        )


class AGNRaw(AGN):
    """Without angle embeddings: the nodes read the angles themselves."""

    angle = None

    def node(self, s: State, i: int) -> tuple:
        angles = s.graph.angles_at(i)
        thetas = Values({angle: s.theta(*angle) for angle in angles}, 1)
        return s.v[i], s.e_to_v(i), s.reduced("x->v", thetas, angles), s.u[()]

    def graph(self, s: State) -> tuple:
        return s.v_to_u(), s.e_to_u(), s.u[()]


class Combined(AGN):
    """DGN and AGN together; the graph reads the angles too."""

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.v[j], s.v[i], s.e[j, i, row], s.d2(j, i), s.u[()]


class CGN(AGN):
    """AGN with kappa in place of the angle."""

    reads_kappa = True

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        return s.v[i], s.v[j], s.v[k], s.a[j, i, k], s.kappa(j, i, k), s.u[()]


BLOCKS: dict[str, type] = {
    "gn": GN,
    "dgn": DGN,
    "sdgn": SDGN,
    "agn": AGN,
    "agn+edges": AGNEdges,
    "agn+distances": AGNDistances,
    "agn-to-edges": AGNToEdges,
    "agn-raw": AGNRaw,
    "combined": Combined,
    "cgn": CGN,
    "dgn+position": DGNPosition,
}


# ------------------------------------------------------------------ the model


class Oracle:
    """What `model` should give, by loops. The names say what the model was built as."""

    def __init__(
        self,
        model: nn.Module,
        architecture: str,
        *,
        task: str = "graph",
        aggregation: str | Mapping[str, str] = "sum",
        coordinate_map: str = "identity",
        scaling: float = 1.0,
        max_growth: float | None = 100.0,
        block: object | None = None,
        rays: str = "plain",
    ) -> None:
        self.model, self.task, self.map, self.rays = model, task, coordinate_map, rays
        self.block = block or BLOCKS[architecture]()
        movements = ("e->v", "a->v", "a->e", "v->u", "e->u", "a->u", "x->v", "x->u", "pool")
        one = isinstance(aggregation, str)
        self.how = dict.fromkeys(movements, aggregation) if one else dict(aggregation)
        self.scaling, self.max_growth = scaling, max_growth

    def __call__(self, data: Data, angle_index: Tensor | None = None) -> Tensor:
        """The rows of all graphs of `data`, where `model(data)` has them."""
        rows: dict[int, Tensor] = {}
        for number, graph in enumerate(graphs_of(data, angle_index)):
            answer = self.of_graph(graph)
            if self.task in ("graph", "graph-vectors"):
                rows[number] = answer[()]
            elif self.task == "edge":
                rows |= {edge[2]: answer[edge] for edge in graph.edges}
            else:
                rows |= {i: answer[i] for i in graph.nodes}
        if not rows:
            width = data.pos.shape[1] if self.task == "coordinates" else self.model.outputs
            return torch.zeros(0, width, dtype=torch.float64)
        return torch.stack([rows[row] for row in range(len(rows))])

    def of_graph(self, graph: Graph) -> Values:
        """All layers and the read-out."""
        gamma = self.gamma(graph)
        x = {i: gamma * graph.x[i] for i in graph.nodes}
        s = State(graph, Values(x, graph.dimension), graph.v, graph.e, graph.a, graph.u, self.how)
        s.v = self.first_nodes(s)
        self.start = self.spread(s.x, graph) if graph.nodes else None
        layers = list(self.model.blocks)
        for block in layers:
            s = self.layer(block, s)
        if self.task == "coordinates":
            return Values({i: s.x[i] / gamma for i in graph.nodes}, graph.dimension)
        return self.readout(self.model.readouts[0], s)

    def gamma(self, graph: Graph) -> Tensor | float:
        """alpha / max |x_i - x_j| over the edges, where the block asks for it."""
        self.unit = 1.0  # of what is added to all nodes: none in a graph without extent
        if not getattr(self.block, "scaled", False):
            return 1.0
        lengths = [norm(graph.x[i] - graph.x[j]) for j, i, _ in graph.edges]
        longest = max(lengths, key=Tensor.item, default=None)
        if longest is None or not longest > 0:  # no edge has a length: the spread stands in
            positions = Values(graph.x, graph.dimension)
            longest = self.spread(positions, graph)[1] if graph.nodes else None
            if longest is not None and not longest > 1e-14 * max(map(norm, graph.x.values())):
                self.unit = 0.0
                longest = rho("mean", [norm(graph.x[i]) ** 2 for i in graph.nodes], 1).sqrt()
        return 1.0 if longest is None or not longest > 0 else self.scaling / longest

    def first_nodes(self, s: State) -> Values:
        """Features, and for GN coordinates; 1 if there is nothing."""
        read = getattr(self.block, "reads_positions", False)
        parts = [value for value in (s.v, s.x if read else Values()) if not value.absent]
        if not parts:
            return Values({i: torch.ones(1, dtype=torch.float64) for i in s.graph.nodes}, 1)
        first = {i: torch.cat([part[i] for part in parts]) for i in s.graph.nodes}
        return Values(first, sum(part.width for part in parts))

    def layer(self, block: nn.Module, s: State) -> State:
        """angle, edge, node, coordinates, graph; each reads what is current at its turn."""
        s = copy.copy(s)
        known = {
            name for name in ("angle", "edge", "node", "graph") if getattr(self.block, name, 0)
        }
        assert set(block.updates) <= known, f"{set(block.updates) - known} are not of this block"
        if getattr(self.block, "reads_kappa", False) and "angle" in block.updates:
            s.separate()
        s.a = self.updated(block, "angle", s, s.a, s.graph.angles())
        old = copy.copy(s)
        s.e = self.updated(block, "edge", s, s.e, s.graph.edges)
        s.v = self.updated(block, "node", s, s.v, [(i,) for i in s.graph.nodes])
        s.x = self.moved(block, s, old)
        s.u = self.updated(block, "graph", s, s.u, [()])
        return s

    def updated(self, block: nn.Module, name: str, s: State, now: Values, keys: list) -> Values:
        """phi of what the block's formula reads, for every key; as it was without a formula."""
        formula = getattr(self.block, name, None)
        if formula is None:
            return now
        if name not in block.updates:
            return Values(stale=f"the {name} value")
        phi = block.updates[name].phi
        new = {key: mlp(phi, formula(s, *key)) for key in keys}
        new = {key[0]: value for key, value in new.items()} if name == "node" else new
        return Values(new, phi.linears[-1].weight.shape[0])

    def readout(self, block: nn.Module, s: State) -> Values:
        """An MLP on nodes, or on (source, target), or on nodes, pooled, and another."""
        out = {name: update.phi for name, update in block.updates.items()}
        width = {name: phi.linears[-1].weight.shape[0] for name, phi in out.items()}
        if self.task == "edge":
            pairs = {edge: (s.v[edge[0]], s.v[edge[1]]) for edge in s.graph.edges}
            return Values({edge: mlp(out["edge"], pair) for edge, pair in pairs.items()}, 0)
        if self.task.endswith("vectors"):
            return self.vectors(out, s)
        nodes = Values({i: mlp(out["node"], [s.v[i]]) for i in s.graph.nodes}, width["node"])
        if self.task == "node":
            return nodes
        return Values({(): mlp(out["graph"], [s.reduced("pool", nodes, s.graph.nodes)])})

    def vectors(self, out: Mapping[str, nn.Module], s: State) -> Values:
        """V_i of each node, hop by hop, over the rays of the input coordinates; pooled for graphs.

        The weights of an edge are a^1, a^2, b^2, a^3, b^3, ..., each of k numbers.
        """
        graph, k, hops = s.graph, self.model.outputs, len(self.model.blocks)
        unit = self.rays == "unit"
        weights = {}
        for j, i, row in graph.edges:
            weights[j, i, row] = mlp(out["edge"], (s.v[j], s.v[i], s.e[j, i, row]))

        def ray(j: int, i: int) -> Tensor:
            r = graph.x[j] - graph.x[i]
            return r / norm(r) if unit and bool((r != 0).any()) else r

        def along(i: int, place: int) -> list[Tensor]:
            """a_ji r_ji for each vector, summed over j."""
            terms = [(weights[edge][place * k :], ray(edge[0], i)) for edge in graph.into(i)]
            return [sum((w[c] * r for w, r in terms), 0 * graph.x[i]) for c in range(k)]

        found = {i: along(i, 0) for i in graph.nodes}
        for hop in range(1, hops):
            before, found = found, {i: along(i, 2 * hop - 1) for i in graph.nodes}
            for i in graph.nodes:
                for c in range(k):
                    passed = [
                        weights[edge][2 * hop * k + c] * before[edge[0]][c]
                        for edge in graph.into(i)
                    ]
                    found[i][c] = found[i][c] + rho("mean", passed, graph.dimension)
        if self.task == "node-vectors":
            rows = {i: torch.stack(found[i]) for i in graph.nodes}
            return Values({i: row[0] if k == 1 else row for i, row in rows.items()})
        n = graph.dimension
        centre = rho("mean", [graph.x[i] for i in graph.nodes], n)
        size = torch.ones((), dtype=torch.float64)
        if unit and graph.nodes:
            spread = self.spread(Values(graph.x, n), graph)[1]
            size = spread if spread > 0 else size
        total = []
        for c in range(k):
            each = [
                found[i][c] + mlp(out["node"], [s.v[i]])[c] * (graph.x[i] - centre) / size
                for i in graph.nodes
            ]
            total.append(rho(self.how["pool"], each, n))
        return Values({(): total[0] if k == 1 else torch.stack(total)})

    # -------------------------------------------------------------- the maps psi

    def moved(self, block: nn.Module, s: State, old: State) -> Values:
        """The coordinates after the map of this block."""
        if self.map == "identity":
            assert block.map is None
            return s.x
        if block.map is None:
            return Values(stale="the coordinates")
        nodes, n = s.graph.nodes, s.x.width
        kind, _, of = self.map.partition("-")
        if kind in ("scale", "shift", "rigid"):
            if of == "u":
                c = mlp(block.map.update.phi, [s.u[()]])
            else:
                c = block.map.coefficients
            if kind == "scale":
                new = {i: c[0] * s.x[i] for i in nodes}
            elif kind == "shift":
                new = {i: s.x[i] + self.unit * c for i in nodes}
            else:
                turns = n * (n - 1) // 2
                q = rotation(c[:turns], n)
                new = {i: q @ s.x[i] + self.unit * c[turns:] for i in nodes}
            return Values(new, n)
        phi = block.map.update.phi
        new = {}
        for i in nodes:
            new[i] = s.x[i]
            if self.map == "neighbour-sum":
                for j, _, row in s.graph.into(i):
                    a = mlp(phi, (s.e[j, i, row], s.v[j], s.v[i], s.u[()]))
                    new[i] = new[i] + a * (s.x[j] - s.x[i])
            elif self.map == "egcn-neighbours":
                for edge in s.graph.into(i):
                    new[i] = new[i] + (s.x[i] - s.x[edge[0]]) * mlp(phi, [s.e[edge]])
            else:
                for j in nodes:
                    if j != i:
                        message = self.message(block, old, j, i)
                        new[i] = new[i] + (s.x[i] - s.x[j]) * mlp(phi, [message])
        return self.bounded(Values(new, n), s.graph)

    def message(self, block: nn.Module, old: State, j: int, i: int) -> Tensor:
        """The edge update of any pair; an edge that is not there has zeros for features."""
        edges = old.graph.between(j, i)
        pair = copy.copy(old)
        if not old.e.absent:
            mean = rho("mean", [old.e[edge] for edge in edges], old.e.width)
            pair.e = Values({(j, i, -1): mean}, old.e.width)
        return mlp(block.updates["edge"].phi, self.block.edge(pair, j, i, -1))

    def spread(self, x: Values, graph: Graph) -> tuple[Tensor, Tensor]:
        """The centroid and the root mean square distance from it."""
        centre = rho("mean", [x[i] for i in graph.nodes], x.width)
        squares = rho("mean", [distance2(x[i], centre) for i in graph.nodes], 1)
        return centre, squares.sqrt() if squares > 0 else 0.0 * squares

    def bounded(self, x: Values, graph: Graph) -> Values:
        """Where nodes are further from the first centroid than max_growth times what they were, in
        the root mean square, they are drawn towards it.
        """
        if self.max_growth is None or not graph.nodes:
            return x
        centre = self.start[0]
        squares = rho("mean", [distance2(x[i], centre) for i in graph.nodes], 1)
        width = squares.sqrt() if squares > 0 else 0.0 * squares
        allowed = self.max_growth * self.start[1]
        if not width > allowed:
            return x
        return Values({i: centre + (x[i] - centre) * allowed / width for i in graph.nodes}, x.width)
