"""Updates with all rows in memory at once; many angles are processed in tiles."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.graphs import Movement
from symgnn.graphs.stars import stars_of
from symgnn.nn._engine.edge_stars import filtered_values, moved_products, star_products
from symgnn.nn._engine.first_half import (
    Given,
    first_half,
    node_table,
    ray_table,
    rows_below,
    unstacked,
)
from symgnn.nn._engine.moment_sums import Added
from symgnn.nn._engine.moment_values import MomentValues
from symgnn.nn._engine.narrow_sums import Narrow, equal_factors, narrow_factors
from symgnn.nn._engine.pair_values import PairValues
from symgnn.nn._engine.policy import policy
from symgnn.nn._engine.ray_factors import neighbour_table, vertex_table
from symgnn.nn._engine.ray_inputs import (
    compiling,
    lifted,
    moments_of,
    on_lines,
    on_rays,
    to_rays,
)
from symgnn.nn._engine.rows import few, move
from symgnn.nn._engine.sparse_dropout import draws_gaps, dropout
from symgnn.nn._engine.swish import swish
from symgnn.nn._engine.tiles import tiled, worth_tiles
from symgnn.nn._engine.torch_private import transforms
from symgnn.nn._engine.values import LazyValues
from symgnn.nn.filtered import DistanceFilter
from symgnn.nn.form import MLP
from symgnn.nn.inputs import VALUE_OF, Input, Measure, Reduction
from symgnn.nn.separable import Separable
from symgnn.nn.state import Reference, State, Values
from symgnn.nn.update import Update


class UnchunkedEngine(Reference):
    """Inputs mapped where they live, or concatenated if few; last maps behind reductions; angles
    in tiles if many.
    """

    lists_angles = False

    def gather(self, rows: Tensor, lift: Movement) -> Tensor:
        """Rows to the things that read one each, `[R, w] -> [L, w]`."""
        return move(rows, lift)

    def total(self, rows: Tensor, lift: Movement) -> Tensor:
        """The sum of the rows of all things that read the same one, `[L, w] -> [R, w]`."""
        return move(rows, lift.T)

    def values(self, state: State, domain: str, rows: Tensor) -> Values:
        """A value from its rows `[rows of the domain, w]`."""
        return LazyValues(state.topology, domain, rows)

    def edge_products(self, degree: int, state: State) -> Tensor:
        """Those of :mod:`symgnn.nn.edge_products`, `[N, (degree + 1) w]`."""
        assert state.e is not None
        if compiling():
            return moved_products(degree, state.e.rows, state)
        with torch.autocast(state.x.device.type, enabled=False):  # differences need all digits
            return star_products(degree, cast(LazyValues, state.e), state)

    def update(self, update: Update, state: State) -> Values:
        """The new value of an update."""
        plan = update.plan
        if not compiling() and isinstance(update.phi, DistanceFilter) and update.phi.of_source:
            return self._filter(update, update.phi, state)
        new = self._mlp(update, state) if plan.additive else self._form(update, state)
        faded = plan.additive or plan.on_rays or update.envelope is None
        if plan.plain and faded:
            return new
        if plan.adds and type(new) in (LazyValues, PairValues):
            return cast(LazyValues, new).plus(getattr(state, VALUE_OF[update.domain]))
        old = getattr(state, VALUE_OF[update.domain]) if update.after.residual else None
        ungated = update.activated(new.rows)
        weight = self.weights(update, state)
        rows = update.gated(ungated, None if old is None else old.rows, weight)
        return LazyValues(state.topology, update.domain, rows, ungated=ungated)

    # ---------------------------------------------------------------- an additive form

    def _mlp(self, update: Update, state: State) -> Values:
        phi, plan, topology = cast(MLP, update.phi), update.plan, state.topology
        forces = None if compiling() else policy().force_pass
        if forces is not None and forces.takes(update, state):
            if update.domain == "edge":
                return forces.edges(update, state, self._table(update, state))
            given, weight = self._given(update, state), self.weights(update, state)
            return forces.angles(update, topology, rows_below(given), given.own, weight)
        if plan.concatenates and few(phi.bias, topology.size(update.domain)):
            hidden = finished(phi, self._concatenated(update, state), state)
            hidden = self._faded(hidden, update, state)
            return LazyValues(topology, update.domain, hidden, phi.last, plan.rows_read)
        given = self._given(update, state)
        folds = plan.folds and not torch.is_autocast_enabled(given.bias.device.type)
        if plan.tiles and self._worth_tiles(update, state, given):
            return self._tiled(update, given, folds)
        hidden = finished(phi, first_half(given), state)
        hidden = self._faded(hidden, update, state)
        return LazyValues(topology, update.domain, hidden, phi.last, plan.rows_read, folds)

    def _table(self, update: Update, state: State) -> Tensor:
        """What nodes, and graphs, add to edges at both ends, with the bias `[2 N, h]`."""
        phi, plan = cast(MLP, update.phi), update.plan
        graph = [state.get(term.home).rows for term in plan.graph]
        node = [state.get(term.home).rows for term in plan.node]
        topology = state.topology
        return rows_below(Given(plan, "edge", topology, phi.maps(), phi.bias, (), graph, node, ()))

    def _concatenated(self, update: Update, state: State) -> Tensor:
        """The first map of the concatenated inputs, of few nodes, edges or graphs `[rows, h]`.

        An operation on a few rows takes as long as its start. So one product is faster than one
        for each input, though a node is multiplied once for each of its edges.
        """
        first, topology, found = cast(MLP, update.phi).first, state.topology, []
        for given, home in zip(update.inputs, update.plan.homes, strict=True):
            if isinstance(given, Reduction):
                rows = update.reduced(given, state)
            else:
                rows = state.get(home).rows
                if given.domain != update.domain:
                    index = topology.index_in(update.domain, given.domain, given.place)
                    rows = rows.index_select(0, index)
            found.append(rows if rows.dtype == first.weight.dtype else rows.to(first.weight.dtype))
        return first(torch.cat(found, 1) if len(found) > 1 else found[0])

    def _faded(self, hidden: Tensor, update: Update, state: State) -> Tensor:
        """Hidden rows times their envelope, with which the last map commutes, having no bias."""
        at_once = update.plan.plain or update.plan.adds
        weight = self.weights(update, state) if at_once else None
        return hidden if weight is None else hidden * weight.to(hidden.dtype)

    def weights(self, update: Update, state: State) -> Tensor | None:
        """The envelope of each row of an update `[rows, 1]`; None without."""
        if update.envelope is None:
            return None
        if update.domain == "edge":
            return state.get(update.envelope).rows
        ends, rays = state.topology.pairs, on_rays(update.envelope, False, state)
        assert ends is not None
        return move(rays, ends.first) * move(rays, ends.second)

    def _given(self, update: Update, state: State) -> Given:
        """The tensors of an update of an additive form."""
        phi, plan, own = cast(MLP, update.phi), update.plan, []
        maps, bias, some = phi.maps(), phi.bias, []
        for term in plan.own:
            map = maps[term.first]
            if term.how:
                home = cast(Reduction, term.home)
                value, at = state.get(home.of), None
                if update.domain == "node" and isinstance(value, MomentValues):
                    at = value.at_vertices(term.how)
                if at is None:
                    own.append((update.reduced(home, state), map))
                else:
                    some.append((update.scaled(home, at[0]), map, at[1]))
            else:
                products, bias = cast(LazyValues, state.get(term.home)).products(map, bias)
                own += products
        graph = [state.get(term.home).rows for term in plan.graph]
        node = [state.get(term.home).rows for term in plan.node]
        ray = [on_rays(term.home, term.incoming, state) for term in plan.ray]
        return Given(plan, update.domain, state.topology, maps, bias, own, graph, node, ray, some)

    def _worth_tiles(self, update: Update, state: State, given: Given) -> bool:
        """Whether there is a way in tiles, and it is worth it."""
        phi, topology = cast(MLP, update.phi), state.topology
        if (
            (phi.dropout and phi.training and not draws_gaps(given.bias, phi.dropout))
            or given.bias.device.type != "cpu"
            or torch.compiler.is_compiling()
            or torch.is_autocast_enabled("cpu")
        ):
            return False
        hidden = len(given.bias)
        if not transforms():
            return topology.num_angles * hidden > policy().worth_tiles
        return any(worth_tiles(each, topology.num_angles, hidden) for each in (given.bias, state.x))

    def _tiled(self, update: Update, given: Given, folds: bool) -> Values:
        plan, topology, phi = update.plan, given.topology, cast(MLP, update.phi)
        last, rate = phi.last, phi.dropout if phi.training else 0.0
        applied = last if plan.rows_read and not folds else None
        rays, two = rows_below(given), plan.ends == 2
        rows, rays = tiled(topology, two, rays, given.own, applied, plan.rows_read, rate)
        hidden, rows = (rows, None) if folds else (None, rows)
        return LazyValues(topology, "angle", hidden, last, False, folds, rays, rows)

    # ---------------------------------------------------------------- any other form

    def _filter(self, update: Update, phi: DistanceFilter, state: State) -> Values:
        """Messages filtered by distance."""
        count, inputs = phi.node_inputs, [each.home for each in update.inputs]
        rows = [update.typed(state.get(each).rows) for each in inputs[:count]]
        table = phi.nodes(torch.cat(rows, 1) if count > 1 else rows[0])
        map = torch.cat([phi.filters.weight, phi.filters.bias.unsqueeze(1)], 1)

        def parts() -> list[Tensor]:
            return [update.typed(state.get(each).rows) for each in inputs[count:]]

        key, weight = (*inputs[count:], update.envelope), self.weights(update, state)
        new = filtered_values(state.topology, table, parts, weight, map, key, state)
        if update.plan.plain:
            return new
        old = state.e.rows if update.after.residual and state.e is not None else None
        ungated = update.activated(new.rows)
        return LazyValues(state.topology, "edge", update.gated(ungated, old), ungated=ungated)

    def _form(self, update: Update, state: State) -> Values:
        topology, domain = state.topology, update.domain
        if update.plan.on_rays:
            return self._on_rays(update, state)
        at_home = update.phi.home(*(self._at_home(each, update, state) for each in update.inputs))
        pairs = zip(update.inputs, at_home, strict=True)
        if domain != "angle":
            rows = [lifted(each, v, update, topology) for each, v in pairs if v is not None]
            return LazyValues(topology, domain, update.phi.here(*rows))
        read = [to_rays(each, v, update, topology) for each, v in pairs if v is not None]
        if update.plan.has_total and not update.plan.rows_read and not compiling():
            (part,) = topology.parts()
            total = update.phi.total(topology.grid(part), *(rows for rows, _ in read))
            if total is not None:
                return LazyValues(topology, "angle", None, ray_total=total)
        ends = topology.pairs
        assert ends is not None
        here = [move(rows, getattr(ends, end)) if end else rows for rows, end in read]
        return LazyValues(topology, "angle", update.phi.here(*here))

    def _on_rays(self, update: Update, state: State) -> Values:
        """The sums of a product of factors of the rays, through moments."""
        phi, plan, topology = cast(Separable, update.phi), update.plan, state.topology
        graph = [state.get(term.home).rows for term in plan.graph]
        node = [state.get(term.home).rows for term in plan.node]
        ray = [on_rays(term.home, term.incoming, state) for term in plan.ray]
        maps = cast(list[Tensor], phi.maps())
        given = Given(plan, "angle", topology, maps, phi.bias, (), graph, node, ray)
        moments, fading = moments_of(phi.product, state), update.envelope
        weight = None if fading is None else on_rays(fading, False, state)

        def total(to: str) -> Tensor:
            narrow: Narrow | Tensor | None = None
            if not compiling():
                narrow = equal_factors(given)
                if narrow is None and to != "ray":
                    narrow = narrow_factors(given)
            if narrow is not None:
                return moments.narrow_product(phi, narrow, to, weight)
            if compiling():
                table = unstacked(node_table(given), len(given.bias))
                return moments.product_by_movements(phi, table, ray_table(given), to, weight)
            assert vertex is not None
            tables = vertex_table(given, vertex, given.bias.dtype), neighbour_table(given)
            return moments.product(phi, Added(*tables, ray_table(given)), to, weight)

        vertex = None if compiling() else stars_of(topology).vertex
        return MomentValues(topology, total, vertex)

    def _at_home(self, given: Input, update: Update, state: State) -> Tensor:
        """An input of a form where it lives."""
        if isinstance(given, Reduction):
            return update.typed(update.reduced(given, state))
        if update.plan.on_lines and given.domain == "edge" and state.topology.lines is not None:
            assert isinstance(given, Measure)
            return update.typed(on_lines(given, state))
        if update.lives_on_rays(given):
            return update.typed(on_rays(given.home, False, state))
        return update.typed(state.get(given.home).rows)

    def __repr__(self) -> str:
        return "fast"


def finished(phi: MLP, hidden: Tensor, state: State | None = None) -> Tensor:
    """All of an MLP but its first and its last map; where derivatives by the coordinates of a state
    are recorded, such that they are fast to differentiate again.
    """
    if type(phi).finish is not MLP.finish:
        return phi.finish(hidden)
    if compiling():  # compiled code cannot read the policy
        return phi.finish(hidden, dropout=dropout)
    recorded = state is not None and state.x.requires_grad and torch.is_grad_enabled()
    again = recorded and policy().force_pass is None
    return phi.finish(hidden, swish if again else F.silu, dropout)
