"""Updates in chunks: at most `chunk` angles, and edges, are in memory at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from symgnn.graphs import EdgePart, Part
from symgnn.nn._engine.chunks import Chunks, SharedRows
from symgnn.nn._engine.first_half import Given, node_table, ray_table, unstacked
from symgnn.nn._engine.parts import AngleParts, EdgeParts
from symgnn.nn._engine.ray_inputs import compiling, on_rays, to_rays
from symgnn.nn._engine.rows import assemble, linear, move
from symgnn.nn._engine.unchunked_engine import UnchunkedEngine, finished
from symgnn.nn._engine.values import LazyValues
from symgnn.nn.form import MLP
from symgnn.nn.inputs import Input, Measure, Reduction
from symgnn.nn.state import State, Values, measure_angles
from symgnn.nn.update import Update


class ChunkedEngine(UnchunkedEngine):
    """The engine of one pass in which only some angles and edges are in memory at once."""

    def __init__(self, chunks: Chunks) -> None:
        self.chunks = chunks

    def close(self) -> None:
        """The end of a pass."""
        self.chunks.close()

    def values(self, state: State, domain: str, rows: Tensor) -> Values:
        """A value from its rows; on angles, in the order of `topology.angle_index`."""
        if domain != "angle":
            return super().values(state, domain, rows)
        table = self.chunks.table(rows)
        like = rows.new_empty(0, rows.shape[1])
        return AngleParts(
            state.topology, lambda part: table.rows(part.cut.angles), like, self.chunks
        )

    def measure(self, given: Measure, state: State) -> Values:
        """A measure of the current coordinates."""
        if given.domain != "angle":
            return super().measure(given, state)
        topology, read = state.topology, self.chunks.table(state.x).rows
        shift = None
        if state.edge_shift is not None:
            shift = self.chunks.table(topology.on_rays(state.edge_shift))
        # a part holds no value of the state: through the graph of operations, it would hold itself
        bare = State(topology, state.x.detach(), state.engine, functions=state.functions)

        def compute(part: Part) -> Tensor:
            vertex = topology.ray_vertex[part.cut.rays]
            rays = read(topology.ray_neighbour[part.cut.rays]) - read(vertex)
            rays = rays if shift is None else rays + shift.rows(part.cut.rays)
            return measure_angles(given, bare, rays, vertex, part.pairs)

        like = state.x.new_empty(0, given.width or 1)
        return AngleParts(topology, compute, like, self.chunks)

    def update(self, update: Update, state: State) -> Values:
        """The new value of an update."""
        if update.domain != "angle":
            return super().update(update, state)
        new = self._mlp(update, state) if update.plan.additive else self._form(update, state)
        if update.plan.plain:
            return new
        assert isinstance(new, AngleParts)
        rows_of, old = new.rows_of, state.a if update.after.residual else None
        fading = self._fading(update, state)

        def compute(part: Part) -> Tensor:
            before = None if old is None else cast(AngleParts, old).rows_of(part)
            weight = None if fading is None else _angle_weights(fading, part)
            return update.gated(update.activated(rows_of(part)), before, weight)

        like = new.rows
        return AngleParts(state.topology, compute, like, self.chunks)

    def _fading(self, update: Update, state: State) -> SharedRows | None:
        """The envelope on the rays, for parts to read."""
        if update.envelope is None:
            return None
        return self.chunks.table(on_rays(update.envelope, False, state))

    def _mlp(self, update: Update, state: State) -> Values:
        if update.domain == "angle":
            return self._angles(update, state)
        if update.domain == "edge" and not self.chunks.plain:
            return self._edges(update, state)
        return super()._mlp(update, state)

    def _readers(
        self, update: Update, state: State
    ) -> tuple[list[Callable[[Any], Tensor]], list[Tensor], Given]:
        """How parts read the own values, the maps of these, and what does not come in parts."""
        phi, plan, chunks = cast(MLP, update.phi), update.plan, self.chunks
        readers: list[Callable[[Any], Tensor]] = []
        own, maps, bias = [], phi.maps(), phi.bias
        for term in plan.own:
            map = maps[term.first]
            if term.how:
                rows = update.reduced(cast(Reduction, term.home), state)
                readers.append(_rows_of_edges(chunks, rows))
            else:
                value = cast(LazyValues, state.get(term.home))
                if isinstance(value, AngleParts | EdgeParts):
                    map, bias = value.folded(map, bias)
                    readers.append(value.read_of)
                else:
                    products, bias = value.products(map, bias)
                    readers += [_rows_of_edges(chunks, rows) for rows, _ in products]
                    own += [chunks.share(each) for _, each in products]
                    continue
            own.append(chunks.share(map))
        graph = [state.get(term.home).rows for term in plan.graph]
        node = [state.get(term.home).rows for term in plan.node]
        ray = [on_rays(term.home, term.incoming, state) for term in plan.ray]
        given = Given(plan, update.domain, state.topology, maps, bias, (), graph, node, ray)
        return readers, own, given

    def _angles(self, update: Update, state: State) -> Values:
        phi, plan, topology = cast(MLP, update.phi), update.plan, state.topology
        readers, maps, given = self._readers(update, state)
        width = plan.ends * len(phi.bias)
        table = self.chunks.table(unstacked(node_table(given), width))
        added = ray_table(given)
        more = None if added is None else self.chunks.table(added)
        assert topology.rays is not None
        both = topology.rays.both
        fading = self._fading(update, state) if plan.plain else None

        def compute(part: Part) -> Tensor:
            first, last = 2 * part.cut.rays.start, 2 * part.cut.rays.stop
            rays = table.rows(both.reads[first:last]).view(-1, 2, width).sum(1)
            rays = rays if more is None else rays + more.rows(part.cut.rays)
            here = [(read(part), each) for read, each in zip(readers, maps, strict=True)]
            movement = part.pairs.both if plan.ends == 2 else part.pairs.first
            hidden = finished(phi, assemble(unstacked(rays, len(phi.bias)), movement, here))
            return hidden if fading is None else hidden * _angle_weights(fading, part)

        like = phi.bias.new_empty(0, phi.last.in_features if phi.last else len(phi.bias))
        folds = plan.folds and not torch.is_autocast_enabled(like.device.type)
        return AngleParts(topology, compute, like, self.chunks, phi.last, plan.rows_read, folds)

    def _edges(self, update: Update, state: State) -> Values:
        phi, plan, chunks = cast(MLP, update.phi), update.plan, self.chunks
        readers, maps, given = self._readers(update, state)
        width = len(phi.bias)
        table = chunks.table(unstacked(node_table(given), width))
        fading = None
        if update.envelope is not None and plan.plain:
            fading = _rows_of_edges(chunks, state.get(update.envelope).rows)

        def compute(part: EdgePart) -> Tensor:
            if plan.ends == 2:
                hidden = table.rows(part.ends).view(-1, 2, width).sum(1)
            else:
                hidden = table.rows(part.ends[::2] // 2)
            for read, each in zip(readers, maps, strict=True):
                hidden = hidden + linear(read(part), each)
            hidden = finished(phi, hidden)
            return hidden if fading is None else hidden * fading(part)

        like = phi.bias.new_empty(0, phi.last.in_features if phi.last else width)
        folds = plan.folds and not torch.is_autocast_enabled(like.device.type)
        return EdgeParts(state.topology, compute, like, chunks, phi.last, folds)

    def _form(self, update: Update, state: State) -> Values:
        if update.domain != "angle" or update.plan.on_rays:
            return super()._form(update, state)
        topology, phi = state.topology, update.phi
        values = [self._in_parts(each, update, state) for each in update.inputs]
        # on angles, the first half gets no rows, and what it gives is not used
        whole = [cast(Tensor, v if isinstance(v, Tensor) else v.hidden) for v in values]
        at_home = phi.home(*whole)
        read: list[tuple[Callable[[Part], Tensor], str]] = []
        for each, value, moved in zip(update.inputs, values, at_home, strict=True):
            if isinstance(value, AngleParts):
                read.append((partial(_typed_rows, update, value), ""))
            elif moved is not None:
                rays, end = to_rays(each, moved, update, topology)
                table = self.chunks.table(rays)
                read.append((partial(_rows_of_rays, table), end))

        def compute(part: Part) -> Tensor:
            rows = ((rows_of(part), end) for rows_of, end in read)
            return phi.here(*(move(r, getattr(part.pairs, e)) if e else r for r, e in rows))

        def total(part: Part) -> Tensor | None:
            if not update.plan.has_total or compiling():
                return None
            return phi.total(topology.grid(part), *(r(part) for r, _ in read))

        like = state.x.new_empty(0, update.out)
        return AngleParts(topology, compute, like, self.chunks, total=total)

    def _in_parts(self, given: Input, update: Update, state: State) -> Tensor | AngleParts:
        value = state.get(given) if given.domain == "angle" else None
        return value if isinstance(value, AngleParts) else self._at_home(given, update, state)


def _angle_weights(fading: SharedRows, part: Part) -> Tensor:
    """The product of the envelopes of both rays of the angles of a part `[angles, 1]`."""
    rays = fading.rows(part.cut.rays)
    return move(rays, part.pairs.first) * move(rays, part.pairs.second)


def _rows_of_rays(table: SharedRows, part: Part) -> Tensor:
    return table.rows(part.cut.rays)


def _typed_rows(update: Update, value: AngleParts, part: Part) -> Tensor:
    return update.typed(value.rows_of(part))


def _rows_of_edges(chunks: Chunks, rows: Tensor) -> Callable[[EdgePart], Tensor]:
    table = chunks.table(rows)
    return lambda part: table.rows(part.edges)
