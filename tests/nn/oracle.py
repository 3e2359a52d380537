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
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nn.oracle_blocks import (
    AGN,
    BLOCKS,
    CGN,
    DGN,
    AGNDistances,
    AGNEdges,
    AGNToEdges,
    State,
)
from nn.oracle_formulas import (
    Graph,
    Values,
    distance2,
    graphs_of,
    mlp,
    norm,
    rho,
    rotation,
    separation,
    theta,
)

__all__ = [
    "AGN",
    "BLOCKS",
    "CGN",
    "DGN",
    "AGNDistances",
    "AGNEdges",
    "AGNToEdges",
    "Graph",
    "Oracle",
    "State",
    "Values",
    "distance2",
    "graphs_of",
    "rho",
    "rotation",
    "separation",
    "theta",
]


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
