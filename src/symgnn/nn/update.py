"""One update of a block: phi over its sources, each mapped where it lives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.nn.angle_fields import AngleField, TiledField
from symgnn.nn.fields import EdgeField, Field
from symgnn.nn.forms import After
from symgnn.nn.measuring import edges_to_rays, measure_rays
from symgnn.nn.movements import Product, assemble, linear, move, plus_linear
from symgnn.nn.parameters import reset_all
from symgnn.nn.phi import Phi
from symgnn.nn.sources import VALUE_OF, Measure, Reduction, Source
from symgnn.nn.spec import width_of
from symgnn.nn.state import State
from symgnn.nn.tiles import tiled, worth_tiles
from symgnn.topology import EdgePart, Part


@dataclass(frozen=True)
class Width:
    """Sizes of the MLPs of a block."""

    hidden: int | Mapping[str, int]
    layers: int = 1
    dropout: float = 0.0

    @property
    def for_map(self) -> Width:
        """That of the MLPs of a coordinate map."""
        return replace(self, hidden=self.of("coordinates"))

    def of(self, domain: str) -> int:
        """The width of the hidden layers of an update."""
        return self.hidden if isinstance(self.hidden, int) else self.hidden[domain]


class Updating(nn.Module):
    """What all updates have in common: sources, and what is done to the result (`after`)."""

    out: int

    def __init__(
        self,
        domain: str,
        sources: Sequence[Source],
        sizes: Mapping[str, int],
        aggregation: Mapping[str, str],
        dimension: int | None = None,
        after: After | None = None,
    ) -> None:
        super().__init__()
        widths = [width_of(source, dict(sizes), dimension) for source in sources]
        self.domain = domain
        self.sources = [s for s, w in zip(sources, widths, strict=True) if w]
        self.absent = [s for s, w in zip(sources, widths, strict=True) if not w]
        self.homes = [source.home for source in self.sources]
        self.widths = [w for w in widths if w]
        self.aggregation = dict(aggregation)
        self.after = after or After()

    def _finish(self, out: int, sizes: Mapping[str, int]) -> None:
        """Once the width of the result is known."""
        self.out, old = out, sizes[VALUE_OF[self.domain]]
        self.gate = self.after.make(out)
        if self.after.residual and old != out:
            raise ValueError(
                f"{self.domain}: its old value, of width {old}, cannot be added to the new one, of "
                f"width {out}"
            )

    def value(self, state: State, keep: bool) -> Field:
        """The new value, before what comes after."""
        raise TypeError(f"{type(self).__name__} has to say how it is computed")

    def forward(self, state: State, keep: bool = True) -> Field:
        """The new value; without `keep`, only reductions of it are read."""
        new = self.value(state, keep)
        if self.after == After():
            return new
        old = getattr(state, VALUE_OF[self.domain]) if self.after.residual else None
        if isinstance(new, AngleField):

            def compute(part: Part) -> Tensor:
                before = None if old is None else old.rows_of(part)
                return self.after.gated(self.after.activated(new.rows_of(part)), self.gate, before)

            return AngleField(new.topology, compute, new.rows, chunks=new.chunks)
        rows = self.after.activated(new.rows)
        gated = self.after.gated(rows, self.gate, None if old is None else old.rows)
        result = Field(state.topology, self.domain, gated)
        result.ungated = rows
        return result

    def _reduced(self, source: Reduction, state: State) -> Tensor:
        how = self.aggregation[source.movement(self.domain)]
        return state.get(source.of).reduce(self.domain, how, source.place)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset_all(self)


class Update(Updating):
    """An update whose phi is an MLP over those of its sources that are there.

    The map of each source is applied where the source lives, then lifted, and the last linear map
    is left outstanding.
    """

    def __init__(
        self,
        domain: str,
        sources: Sequence[Source],
        sizes: Mapping[str, int],
        out: int,
        width: Width,
        aggregation: Mapping[str, str],
        dimension: int | None = None,
        after: After | None = None,
        last_bias: bool = True,
    ) -> None:
        super().__init__(domain, sources, sizes, aggregation, dimension, after)
        self.phi = Phi(
            self.widths,
            width.of(domain),
            out,
            layers=width.layers,
            dropout=width.dropout,
            last_bias=last_bias,
        )
        self._finish(out, sizes)

    def value(self, state: State, keep: bool) -> Field:
        """Phi."""
        terms = self._terms(state)
        if self.domain == "angle":
            return self._angles(state, terms, keep)
        if self._in_chunks(state):
            return self._edges_in_chunks(state, terms)
        if self.domain == "edge" and (terms.nodes or terms.graph is not None):
            hidden = self._edges(state, terms)
        else:
            hidden = terms.table(state, ("",)) if self.domain == "node" else terms.bias
            for rows, weight in terms.here:
                hidden = plus_linear(hidden, rows, weight)
            hidden = hidden.expand(state.topology.size(self.domain), -1)
        folds = self.domain == "edge" and self._folds
        hidden, last = self.phi.finish(hidden), self.phi.last
        return Field(state.topology, self.domain, hidden, last, keep, folds)

    def _terms(self, state: State) -> _Terms:
        """The sources and their maps, by where the sources live."""
        terms = _Terms(self.phi.bias)
        for source, home, weight in zip(self.sources, self.homes, self.phi.maps(), strict=True):
            if isinstance(source, Reduction):
                terms.here.append((self._reduced(source, state), weight))
            elif source.domain == self.domain:
                value = state.get(source)
                weight, constant = value.fold(weight)
                if constant is not None:
                    terms.bias = terms.bias + constant
                if isinstance(value, AngleField):
                    terms.angles.append((value.read_of, weight))
                elif isinstance(value, EdgeField) and self._in_chunks(state):
                    terms.edges.append((value.read_of, weight))
                else:
                    terms.here.append((value.read, weight))
            elif source.domain == "graph":
                rows = linear(state.get(source).rows, weight)
                terms.graph = rows if terms.graph is None else terms.graph + rows
            elif source.domain == "node":
                _add(terms.nodes.setdefault(home, {}), source.place, weight)
            else:
                place = source.place.removesuffix(" in")
                _add(terms.rays, place, _on_rays(source, weight, state))
        return terms

    def _edges(self, state: State, terms: _Terms) -> Tensor:
        """Node terms are added on N rows; what is left is on E rows."""
        edges = state.topology.edges
        two = terms.any_at("source")
        movement = edges.both if two else edges.near
        table = terms.table(state, ("target", "source") if two else ("target",))
        return assemble(_unstacked(table, len(self.phi.bias)), movement, terms.here)

    def _in_chunks(self, state: State) -> bool:
        """Whether edges go through in chunks, too."""
        return self.domain == "edge" and state.chunks is not None and not state.chunks.plain

    def _edges_in_chunks(self, state: State, terms: _Terms) -> Field:
        chunks, phi, width = state.chunks, self.phi, len(self.phi.bias)
        assert chunks is not None
        table = chunks.table(_unstacked(terms.table(state, ("target", "source")), width))
        given = [(chunks.table(value), chunks.share(weight)) for value, weight in terms.here]
        edges = [(read, chunks.share(weight)) for read, weight in terms.edges]

        def compute(part: EdgePart) -> Tensor:
            hidden = table.rows(part.ends).view(-1, 2, width).sum(1)
            for read, weight in edges:
                hidden = hidden + linear(read(part), weight)
            for value, weight in given:
                hidden = hidden + linear(value.rows(part.edges), weight)
            return phi.finish(hidden)

        like = phi.bias.new_empty(0, phi.last.in_features if phi.last else width)
        return EdgeField(state.topology, compute, like, phi.last, self._folds, chunks)

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
        added = None
        if terms.rays:
            none = table.new_zeros(topology.num_rays, width)
            places = ("first", "second") if two else ("first",)
            added = torch.cat([terms.rays.get(place, none) for place in places], -1)
        like = phi.bias.new_empty(0, phi.last.in_features if phi.last else width)
        folds, rays_of = self._folds, _rays(table, added, state)
        if self._may_tile(state, table):
            (whole,) = topology.parts()

            def run(rows: bool) -> tuple[Tensor | None, Tensor]:
                flat = _unstacked(rays_of(whole), width)
                here = [(read(whole), weight) for read, weight in terms.angles]
                last = phi.last if rows and not folds else None
                return tiled(topology, two, flat, here, last, keep=rows)

            return TiledField(topology, run, like, phi.last, keep or self.after != After(), folds)

        maps = [weight for _, weight in terms.angles]
        maps = maps if state.chunks is None else list(map(state.chunks.share, maps))

        def compute(part: Part) -> Tensor:
            reads = (read(part) for read, _ in terms.angles)
            here = list(zip(reads, maps, strict=True))
            movement = part.pairs.both if two else part.pairs.near
            return phi.finish(assemble(_unstacked(rays_of(part), width), movement, here))

        return AngleField(topology, compute, like, phi.last, keep, state.chunks, folds=folds)

    @property
    def _folds(self) -> bool:
        """Whether the last map is better multiplied by the maps of the next layer: if what it is
        applied to has no more numbers than what it gives, and they are not read otherwise.
        """
        last = self.phi.last
        return (
            last is not None
            and last.in_features <= last.out_features
            and self.after == After()
            and not torch.is_autocast_enabled(last.weight.device.type)
        )

    def _may_tile(self, state: State, table: Tensor) -> bool:
        """Whether there is a way in tiles, and it is worth it."""
        phi = self.phi
        return (
            state.chunks is None
            and state.topology.pairs is not None
            and len(phi.linears) == 2
            and not (phi.dropout and self.training)
            and phi.bias.device.type == "cpu"
            and not torch.is_autocast_enabled("cpu")
            and not torch.compiler.is_compiling()
            and worth_tiles(table, state.topology.num_angles, len(phi.bias))
        )


@dataclass
class _Terms:
    """The sources of an update and their maps `[h, width]`, by where the sources live."""

    bias: Tensor
    here: list[Product] = field(default_factory=list)  # on the update's own domain
    angles: list[tuple[Callable[[Part], Tensor], Tensor]] = field(default_factory=list)
    edges: list[tuple[Callable[[EdgePart], Tensor], Tensor]] = field(default_factory=list)
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
            table = plus_linear(table, rows, weight)
        return table.expand(state.topology.num_nodes, -1)


def _rays(table: Tensor, added: Tensor | None, state: State) -> Callable[[Part], Tensor]:
    """What the rays of a part add, of what nodes add at both ends `[2 N, w]` and rays `[R, w]`."""
    assert state.topology.rays is not None
    both, chunks = state.topology.rays.both, state.chunks
    if chunks is None:
        rays = move(table, both)
        rays = rays if added is None else rays + added
        return lambda part: rays
    nodes, more = chunks.table(table), None if added is None else chunks.table(added)

    def rays_of(part: Part) -> Tensor:
        first, last = 2 * part.cut.rays.start, 2 * part.cut.rays.stop
        rows = nodes.rows(both.reads[first:last]).view(-1, 2, table.shape[1]).sum(1)
        return rows if more is None else rows + more.rows(part.cut.rays)

    return rays_of


def _unstacked(table: Tensor, width: int) -> Tensor:
    """`[rows, places * width] -> [rows * places, width]`; not by -1, which vmap over nothing
    cannot tell.
    """
    return table.reshape(table.shape[0] * (table.shape[1] // width), width)


def _add(terms: dict[str, Tensor], place: str, term: Tensor) -> None:
    terms[place] = terms[place] + term if place in terms else term


def _on_rays(source: Source, weight: Tensor, state: State) -> Tensor:
    """What an edge value or a measure on edges adds on the rays of angles, `[R, h]`."""
    into = source.place.endswith(" in")
    if isinstance(source, Measure):
        x = state.seen_by(source).x
        rows = measure_rays(state.function(source), x, state.topology, into)
        return linear(rows, weight)
    rows = linear(state.get(source).rows, weight)
    return edges_to_rays(rows, state.topology, into)
