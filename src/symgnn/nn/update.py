"""One update of a block: phi over its sources, each mapped where it lives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.nn.fields import AngleField, Field, edges_to_rays, measure_rays
from symgnn.nn.movements import Product, assemble, linear, move
from symgnn.nn.phi import Phi
from symgnn.nn.sources import Measure, Reduction, Source
from symgnn.nn.spec import width_of
from symgnn.nn.state import State
from symgnn.topology import Part


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
        """The new value: phi, with the map of each source applied where the source lives."""
        terms = self._terms(state)
        if self.domain == "angle":
            return self._angles(state, terms, keep)
        if self.domain == "edge":
            hidden = self._edges(state, terms)
        else:
            hidden = terms.table(state, ("",)) if self.domain == "node" else self.phi.bias
            for rows, weight in _joined(terms.here):
                hidden = hidden + linear(rows, weight)
            hidden = hidden.expand(state.topology.size(self.domain), -1)
        return Field(state.topology, self.domain, self.phi.finish(hidden), self.phi.last, keep)

    def _terms(self, state: State) -> _Terms:
        """The sources and their maps, by where the sources live."""
        terms = _Terms(self.phi.bias)
        for source, weight in zip(self.sources, self.phi.maps(), strict=True):
            if isinstance(source, Reduction):
                how = self.aggregation[source.movement(self.domain)]
                rows = state.get(source.of).reduce(self.domain, how, source.place)
                terms.here.append((rows, weight))
            elif source.domain == "angle":
                terms.angles.append((state.get(source), weight))
            elif source.domain == self.domain:
                terms.here.append((state.get(source).rows, weight))
            elif source.domain == "graph":
                rows = linear(state.get(source).rows, weight)
                terms.graph = rows if terms.graph is None else terms.graph + rows
            elif source.domain == "node":
                _add(terms.nodes.setdefault(source.at(""), {}), source.place, weight)
            else:
                _add(terms.rays, source.place, _on_rays(source, weight, state))
        return terms

    def _edges(self, state: State, terms: _Terms) -> Tensor:
        """Node terms are added on N rows; what is left is on E rows."""
        edges = state.topology.edges
        two = terms.any_at("source")
        movement = edges.both if two else edges.near
        table = terms.table(state, ("target", "source") if two else ("target",))
        return assemble(table.reshape(-1, len(self.phi.bias)), movement, terms.here)

    def _angles(self, state: State, terms: _Terms, keep: bool) -> Field:
        """Vertex terms are added on N rows, ray terms on R; only what is left is on A rows."""
        topology, phi, width = state.topology, self.phi, len(self.phi.bias)
        assert topology.rays is not None
        # for each ray, first what it adds as a first ray, with its vertex, then as a second one
        two = terms.any_at("second")
        table = terms.table(
            state, ("vertex", "", "first", "second") if two else ("vertex", "first")
        )
        table = table.reshape(2 * topology.num_nodes, table.shape[-1] // 2)
        rays = move(table, topology.rays.both)
        if terms.rays:
            none = rays.new_zeros(topology.num_rays, width)
            places = ("first", "second") if two else ("first",)
            rays = rays + torch.cat([terms.rays.get(place, none) for place in places], -1)
        pieces: Sequence[Tensor] = [rays]
        if state.chunk is not None:
            cuts = topology.cuts(state.chunk)
            pieces = rays.split([cut.rays.stop - cut.rays.start for cut in cuts])

        def compute(part: Part) -> Tensor:
            here = [(_angle_rows(value, part), weight) for value, weight in terms.angles]
            movement = part.pairs.both if two else part.pairs.near
            rows = assemble(pieces[part.number].reshape(-1, width), movement, here)
            return phi.finish(rows)

        like = phi.bias.new_empty(0, phi.last.in_features if phi.last else width)
        return AngleField(topology, compute, like, phi.last, keep, state.chunk)


@dataclass
class _Terms:
    """The sources of an update and their maps `[h, width]`, by where the sources live."""

    bias: Tensor
    here: list[Product] = field(default_factory=list)  # on the update's own domain
    angles: list[tuple[Field, Tensor]] = field(default_factory=list)
    rays: dict[str, Tensor] = field(default_factory=dict)  # place -> what rays add `[R, h]`
    nodes: dict[Source, dict[str, Tensor]] = field(default_factory=dict)  # place -> map
    graph: Tensor | None = None  # what graphs add `[G, h]`

    def any_at(self, place: str) -> bool:
        """Whether anything is read at this place."""
        return place in self.rays or any(place in maps for maps in self.nodes.values())

    def table(self, state: State, places: Sequence[str]) -> Tensor:
        """What each node adds where it stands at each place, `[N, places * h]`.

        Each source is multiplied once for all places. The bias and the graph's terms are added
        at the first place.
        """
        table = self.bias
        if self.graph is not None:
            table = move(self.graph + self.bias, state.topology.graphs)
        table = F.pad(table, (0, (len(places) - 1) * len(self.bias)))
        for source, maps in self.nodes.items():
            rows = state.get(source).rows
            nothing = self.bias.new_zeros(len(self.bias), rows.shape[-1])
            weight = torch.cat([maps.get(place, nothing) for place in places])
            table = table + linear(rows, weight)
        return table.expand(state.topology.num_nodes, -1)


def _add(terms: dict[str, Tensor], place: str, term: Tensor) -> None:
    terms[place] = terms[place] + term if place in terms else term


def _angle_rows(value: Field, part: Part) -> Tensor:
    assert isinstance(value, AngleField)
    return value.rows_of(part)


def _joined(products: list[Product]) -> list[Product]:
    """The products with one for all wide values; single numbers stay apart, see `linear`."""
    wide = [product for product in products if product[1].shape[1] > 1]
    single = [product for product in products if product[1].shape[1] == 1]
    if len(wide) > 1:
        rows, weights = zip(*wide, strict=True)
        wide = [(torch.cat(rows, -1), torch.cat(weights, -1))]
    return wide + single


def _on_rays(source: Source, weight: Tensor, state: State) -> Tensor:
    """What an edge value or a measure on edges adds on the rays of angles, `[R, h]`."""
    if isinstance(source, Measure):
        return linear(measure_rays(source, state.x, state.topology), weight)
    return edges_to_rays(linear(state.get(source).rows, weight), state.topology)
