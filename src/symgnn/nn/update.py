"""One update of a block: phi over its sources, each mapped where it lives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from symgnn.geometry.measures import second_rays
from symgnn.nn.fields import AngleField, Field, edges_to_rays, lift, linear, measure_rays
from symgnn.nn.phi import Phi
from symgnn.nn.sources import Measure, Reduction, Source
from symgnn.nn.spec import width_of
from symgnn.nn.state import State
from symgnn.topology import Chunk, Topology


@dataclass(frozen=True)
class Width:
    """Sizes of the MLPs of a block."""

    hidden: int
    layers: int = 1
    dropout: float = 0.0


class Update(nn.Module):
    """One update of a block: phi over those of its sources that are there."""

    def __init__(
        self,
        domain: str,
        sources: Sequence[Source],
        sizes: Mapping[str, int],
        out: int,
        width: Width,
        aggregation: Mapping[str, str],
        dimension: int | None = None,
    ) -> None:
        super().__init__()
        widths = [width_of(source, dict(sizes), dimension) for source in sources]
        self.domain = domain
        self.sources = [s for s, w in zip(sources, widths, strict=True) if w]
        self.aggregation = dict(aggregation)
        self.phi = Phi(
            [w for w in widths if w], width.hidden, out, layers=width.layers, dropout=width.dropout
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.phi.reset_parameters()

    def forward(self, state: State, keep: bool = True) -> Field:
        """The new value. Each source's map is applied where the source lives, then lifted."""
        terms: dict[tuple[str, str], Tensor] = {}
        on_angles: list[tuple[Field, Tensor]] = []
        for source, weight in zip(self.sources, self.phi.maps(), strict=True):
            if source.domain == "angle":
                on_angles.append((state.get(source), weight))
                continue
            home, rows = self._read(source, state)
            _add(terms, (home, source.place), linear(rows, weight))
        return getattr(self, f"_{self.domain}")(state, terms, on_angles, keep)

    def _read(self, source: Source, state: State) -> tuple[str, Tensor]:
        """The rows of a source and the domain that they live on."""
        if isinstance(source, Reduction):
            how = self.aggregation[source.movement(self.domain)]
            rows = state.get(source.of).reduce(self.domain, how, source.place)
            return self.domain, rows
        if isinstance(source, Measure) and source.domain == "edge" and source.place:
            return "ray", measure_rays(source, state.x, state.topology)
        return source.domain, state.get(source).rows

    def _nodes(self, terms: dict, place: str, topology: Topology) -> Tensor:
        """The terms that nodes contribute at `place`, with those of the graph and the bias."""
        nodes = terms.get(("node", place))
        graph = terms.get(("graph", ""))
        bias = self.phi.bias
        if graph is not None:
            bias = lift(graph + bias, topology.batch)
        return bias if nodes is None else nodes + bias

    def _graph(self, state: State, terms: dict, on_angles: list, keep: bool) -> Field:
        rows = sum(terms.values(), self.phi.bias).expand(state.topology.num_graphs, -1)
        return self._field(state, rows, keep)

    def _node(self, state: State, terms: dict, on_angles: list, keep: bool) -> Field:
        rows = self._nodes(terms, "", state.topology)
        return self._field(state, rows.expand(state.topology.num_nodes, -1), keep)

    def _edge(self, state: State, terms: dict, on_angles: list, keep: bool) -> Field:
        topology = state.topology
        tail, head = topology.edge_index
        rows = _lift(self._nodes(terms, "target", topology), head)
        if ("node", "source") in terms:
            rows = rows + lift(terms["node", "source"], tail)
        for end in ("", "source", "target"):
            if ("edge", end) in terms:
                rows = rows + terms["edge", end]
        return self._field(state, rows.expand(topology.num_edges, -1), keep)

    def _field(self, state: State, hidden: Tensor, keep: bool) -> Field:
        last = self.phi.last
        return Field(state.topology, self.domain, self.phi.finish(hidden), last, keep)

    def _angle(self, state: State, terms: dict, on_angles: list, keep: bool) -> Field:
        """Vertex terms are added on N rows, ray terms on R; only what is left is on A rows."""
        topology, phi = state.topology, self.phi
        vertex = self._nodes(terms, "vertex", topology)
        first, second = (_on_rays(terms, place, topology) for place in ("first", "second"))

        def compute(chunk: Chunk) -> Tensor:
            m, d = chunk.neighbours.shape
            rays = _lift(vertex, chunk.vertices).unsqueeze(-2)  # [m, 1, h] or [1, h]
            if first is not None:
                rays = rays + first[chunk.start : chunk.stop].view(m, d, -1)
            rows = rays.unsqueeze(-2)
            if second is not None:
                rows = rows + second_rays(second[chunk.start : chunk.stop].view(m, d, -1))
            for value, weight in on_angles:
                assert isinstance(value, AngleField)
                rows = rows + linear(value.rows_of(chunk), weight)
            return phi.finish(rows.expand(m, d, d - 1, -1))

        like = phi.bias.new_empty(0, phi.last.in_features if phi.last else len(phi.bias))
        return AngleField(topology, compute, like, phi.last, keep, state.chunk)


def _add(terms: dict, key: tuple[str, str], term: Tensor) -> None:
    terms[key] = terms[key] + term if key in terms else term


def _on_rays(terms: dict, place: str, topology: Topology) -> Tensor | None:
    """The terms on the first or second rays `[R, h]`: of their nodes, edges and lengths."""
    rays = terms.get(("ray", place))
    if ("node", place) in terms:
        nodes = lift(terms["node", place], topology.ray_neighbour)
        rays = nodes if rays is None else rays + nodes
    if ("edge", place) in terms:
        edges = edges_to_rays(terms["edge", place], topology)
        rays = edges if rays is None else rays + edges
    return rays


def _lift(rows: Tensor, index: Tensor) -> Tensor:
    """As lift; a bias `[h]` is the same everywhere."""
    return rows if rows.dim() == 1 else lift(rows, index)
