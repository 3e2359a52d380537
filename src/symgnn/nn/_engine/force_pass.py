"""The pass for forces: updates of edges and angles that are differentiated by coordinates alone.

That is how energies and forces are computed where they are not differentiated again.
Nothing has to be kept for second derivatives, and none is taken by weights, so

- edges and angles go through in tiles that stay in the processor's cache, into memory that is used
  again by the next pass: getting new memory from the system takes longer than the arithmetic;
- an edge and its reverse have the same length, so radial functions, and the maps of them, are
  computed once for both. In the first layer nodes are known by their kind, so between nodes of one
  kind the whole update is the same both ways, as are all maps of its result in later layers;
- edges beyond the cutoff are left out, where nothing but sums with the envelope reads edges;
- the derivatives by a value that several layers read are added up by the products themselves.

See :class:`symgnn.graphs.edge_pairs.EdgePairs` for the rows. The result is that of the update, to
rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.geometry.measures import length
from symgnn.geometry.symmetry import LENGTHS
from symgnn.graphs import Topology
from symgnn.graphs.edge_pairs import EdgePairs, edge_pairs
from symgnn.nn._engine.force_layers import AngleLayer, EdgeLayer, Messages, PairLayer
from symgnn.nn._engine.gradient_sinks import GradientSink, Shared
from symgnn.nn._engine.pair_values import PairValues
from symgnn.nn._engine.plan import Plan
from symgnn.nn._engine.rows import Product, few
from symgnn.nn._engine.torch_private import is_recorded, is_transformed
from symgnn.nn._engine.values import LazyValues
from symgnn.nn._engine.workspaces import Workspaces
from symgnn.nn.form import MLP
from symgnn.nn.inputs import Applied, Input, Measure, Reduction
from symgnn.nn.state import State, Values, as_column

if TYPE_CHECKING:
    from symgnn.nn.model import Model
    from symgnn.nn.update import Update


@dataclass
class ForcePass:
    """One pass through a network, and one derivative of what it gives by the coordinates.

    Args:
        workspaces: Where its memory comes from, and goes back to.
        kinds: Of nodes `[N]`, if their first value depends on them alone; else None.
        cutoff: From which distance on edges are left out; None if they are not.
    """

    workspaces: Workspaces
    kinds: Tensor | None = None
    cutoff: float | None = None
    _pairs: EdgePairs | None = None
    _takes: bool | None = None
    _measured: dict[Any, Tensor] = field(default_factory=dict)
    _shared: dict[int, tuple[Tensor, Tensor, GradientSink]] = field(default_factory=dict)
    _count: int = 0

    def __enter__(self) -> ForcePass:
        self.workspace = self.workspaces.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.workspaces.give(self.workspace)

    def takes(self, update: Update, state: State) -> bool:
        """Whether an update is computed here."""
        if not fits(update) or (update.domain == "angle" and state.topology.pairs is None):
            return False
        if self._takes is None:
            bias = cast(MLP, update.phi).bias
            self._takes = (
                bias.is_cpu
                and bias.dtype == state.x.dtype
                and not few(bias, state.topology.num_edges)
                and not torch.is_autocast_enabled("cpu")
                and not is_recorded(state.x)
                and not is_transformed()
                and self._find(state) is not None
            )
        return self._takes

    def _find(self, state: State) -> EdgePairs | None:
        """The edges, without those that are too long."""
        found = known_pairs(state.topology, self.kinds)
        if found is not None and self.cutoff is not None:
            with torch.no_grad():
                vector = _vectors(state, found.number.index_select(0, found.lines))
                found = found.kept(vector.square().sum(1) < self.cutoff**2)
        self._pairs = found
        return found

    def edges(self, update: Update, state: State, table: Tensor) -> LazyValues:
        """The result of an edge update, with its sums.

        Args:
            update: The update.
            state: What it reads.
            table: What nodes add at each place, with the bias `[2 N, h]`.
        """
        phi, pairs = cast(MLP, update.phi), self._pairs
        assert pairs is not None
        assert update.envelope is not None
        fine: list[Product] = []
        coarse: list[Product] = []
        maps = phi.maps()
        for term in update.plan.own:
            map = maps[term.first]
            if term.how:
                fine.append((update.reduced(cast(Reduction, term.home), state), map))
            elif isinstance(term.home, Measure):
                coarse.append((self._on_rows(term.home, state, pairs), map))
            else:
                _terms(state.get(term.home), map, fine, coarse)
        # where nodes are known by their kind, all is the same for the edges of a row
        on_rows = (
            not fine
            and self.kinds is not None
            and state.v is state.given.get("v")
            and not update.plan.graph
            and state.e is None
        )
        weight = self._on_rows(update.envelope, state, pairs)
        if on_rows:  # the values of rows are its own
            fine, coarse = coarse, []
        values, given = self._layer(fine, coarse)
        layer = (PairLayer if on_rows else EdgeLayer)(
            self.workspace, pairs, self._next("hidden"), *given
        )
        hidden, total = Messages.apply(layer, table, weight, *values)
        return PairValues(state.topology, hidden, total, phi.last, pairs, on_rows)

    def angles(
        self, update: Update, topology: Topology, table: Tensor, own: list[Product], weight: Tensor
    ) -> LazyValues:
        """The result of an angle update, with its sums.

        Args:
            update: The update.
            topology: Of the graph.
            table: What rays add at each place, with the bias `[2 R, h]`.
            own: The values on angles that it reads, with their maps.
            weight: The envelope `[A, 1]`.
        """
        phi, ends = cast(MLP, update.phi), topology.pairs
        assert ends is not None
        assert self._pairs is not None
        values, given = self._layer([(rows.to(map.dtype), map) for rows, map in own], [])
        layer = AngleLayer(self.workspace, self._pairs, self._next("hidden"), *given, ends)
        hidden, total = Messages.apply(layer, table, weight, *values)
        folds = update.plan.folds
        return LazyValues(topology, "angle", hidden, phi.last, False, folds, total)

    def _layer(
        self, fine: list[Product], coarse: list[Product]
    ) -> tuple[list[Tensor], tuple[list[Tensor], list[GradientSink | None], int]]:
        """The values of products as they are read, and what a layer has of them."""
        values: list[Tensor] = []
        sinks: list[GradientSink | None] = []
        for value, _ in (*fine, *coarse):
            alias, sink = self._share(value)
            values.append(alias)
            sinks.append(sink if value.requires_grad else None)
        return values, ([map.detach() for _, map in (*fine, *coarse)], sinks, len(fine))

    def _on_rows(self, given: Measure, state: State, pairs: EdgePairs) -> Tensor:
        """A measure that lengths alone decide, on rows `[R, w]`: that of points on a line."""
        if given.home not in self._measured:
            if "length" not in self._measured:
                apart = length(_vectors(state, pairs.number)).unsqueeze(-1)
                self._measured["length"] = F.pad(apart, (0, state.x.shape[1] - 1))
            apart = self._measured["length"]
            function, _ = state.function(given)
            self._measured[given.home] = as_column(function(apart, torch.zeros_like(apart[:1])))
        return self._measured[given.home]

    def _share(self, value: Tensor) -> tuple[Tensor, GradientSink]:
        """A value that layers read, which collects its derivatives from all of them."""
        if id(value) not in self._shared:
            sink = GradientSink(self.workspace, self._next("sum"))
            self._shared[id(value)] = value, Shared.apply(sink, value), sink
        return self._shared[id(value)][1:]

    def _next(self, name: str) -> str:
        self._count += 1
        return f"{name} {self._count}"


def fits(update: Update) -> bool:
    """Whether an update is of the kind that is computed here."""
    phi, plan = update.phi, update.plan
    return (
        update.domain in ("edge", "angle")
        and update.envelope is not None
        and isinstance(phi, MLP)
        and type(phi).finish is MLP.finish
        and plan.additive
        and (plan.plain or plan.adds)
        and plan.ends == 2
        and len(phi.linears) == 2
        and not (phi.dropout and update.training)
        and (update.domain == "angle" or all(map(_of_lengths, (*update.inputs, update.envelope))))
    )


def _of_lengths(given: Input) -> bool:
    """Whether an input of edges is no measure, or one that their lengths alone decide."""
    return not isinstance(given, Measure) or (
        given.both_ways and given.width is not None and given.symmetry == LENGTHS
    )


def _terms(value: Values | None, map: Tensor, fine: list[Product], coarse: list[Product]) -> None:
    """The terms of a value, with the maps of what they are computed of."""
    while value is not None:
        if not isinstance(value, PairValues):
            fine.append((value.rows, map))
            return
        assert value.last is not None
        assert value.hidden is not None
        (coarse if value.on_rows else fine).append((value.hidden, map @ value.last.weight))
        value = value.before


def known_pairs(topology: Topology, kinds: Tensor | None) -> EdgePairs | None:
    """The pairs of a topology, made once and kept with it."""
    known: Any = topology.__dict__.get("_edge_pairs")
    same = known is not None and (
        kinds is None if known[0] is None else kinds is not None and torch.equal(kinds, known[0])
    )
    if not same:
        known = topology.__dict__["_edge_pairs"] = kinds, edge_pairs(topology, kinds)
    return known[1]


def cutoff_of(model: Model) -> float | None:
    """The distance from which on no edge adds anything to what a network gives; None if an edge is
    read other than by updates and sums with the envelope.
    """
    envelope = model.network.layer.envelope
    if envelope is None or model.needs_angles or model.needs_pairs or model.features["e"]:
        return None
    for block in model.modules():
        if getattr(block, "map", None) is not None:
            return None
    for module in model.modules():
        if not isinstance(getattr(module, "plan", None), Plan):
            continue
        update = cast("Update", module)
        of_edges = [r for r in update.inputs if isinstance(r, Reduction) and r.of.domain == "edge"]
        if update.domain == "edge" and not fits(update):
            return None
        if any(update.how(each) != "sum" for each in of_edges):
            return None
    return float(cast(Applied, envelope.function).given[0])


def _vectors(state: State, number: Tensor) -> Tensor:
    """From the target to the source of some edges of the topology `[M, n]`."""
    source, target = state.topology.edge_index.index_select(1, number)
    found = state.x.index_select(0, source) - state.x.index_select(0, target)
    shift = state.edge_shift
    return found if shift is None else found + shift.index_select(0, number)
