"""Updates of edges and angles in a pass that is differentiated once, by the coordinates alone.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.geometry.measures import length
from symgnn.geometry.symmetry import LENGTHS
from symgnn.graphs import Topology
from symgnn.graphs.edge_pairs import EdgePairs, edge_pairs
from symgnn.graphs.movement import AngleRays
from symgnn.nn._engine.plan import Plan
from symgnn.nn._engine.rows import Product, few
from symgnn.nn._engine.torch_private import is_recorded, is_transformed
from symgnn.nn._engine.values import LazyValues
from symgnn.nn.form import MLP
from symgnn.nn.inputs import Applied, Input, Measure, Reduction
from symgnn.nn.state import State, Values, as_column

if TYPE_CHECKING:
    from symgnn.nn.model import Model
    from symgnn.nn.update import Update

#: Rows of a tile: with 64 hidden numbers in single precision, half a MiB.
TILE = 2048


class Workspace:
    """Memory by name, for one pass at a time."""

    def __init__(self) -> None:
        self._known: dict[str, Tensor] = {}

    def take(self, name: str, rows: int, width: int, like: Tensor) -> Tensor:
        """A matrix `[rows, width]` of any numbers."""
        known, size = self._known.get(name), rows * width
        if known is None or known.numel() < size or known.dtype != like.dtype:
            known = self._known[name] = like.new_empty(size + size // 8)
        return known.detach()[:size].view(rows, width)


class Workspaces:
    """Workspaces that passes take and give back: two threads never have the same.

    Copies, and what is loaded from a file, begin without any.
    """

    def __init__(self) -> None:
        self._free: list[Workspace] = []

    def take(self) -> Workspace:
        """One that nobody has."""
        try:
            return self._free.pop()
        except IndexError:
            return Workspace()

    def give(self, workspace: Workspace) -> None:
        """Give one back."""
        self._free.append(workspace)

    def __deepcopy__(self, memo: Any) -> Workspaces:
        return Workspaces()

    def __reduce__(self) -> tuple[type[Workspaces], tuple[()]]:
        return Workspaces, ()


class Sink:
    """The derivative by a value, added up by all that read it."""

    def __init__(self, run: OncePass, name: str) -> None:
        self.run, self.name = run, name
        self.rows: Tensor | None = None
        self._begun = False

    def start(self, rows: int, width: int, like: Tensor) -> Sink:
        """Before a layer adds its tiles."""
        self._begun = self.rows is not None
        if self.rows is None:
            self.rows = self.run.workspace.take(self.name, rows, width, like)
        return self

    def add(self, grad: Tensor, map: Tensor, tile: slice) -> None:
        """`grad map` on a tile."""
        assert self.rows is not None
        if self._begun:
            self.rows[tile].addmm_(grad, map)
        else:
            torch.mm(grad, map, out=self.rows[tile])


class _Shared(torch.autograd.Function):
    """A value as it is; its derivative is what its sink has."""

    @staticmethod
    def forward(ctx: Any, sink: Sink, value: Tensor) -> Tensor:
        ctx.sink = sink
        ctx.set_materialize_grads(False)
        return value.detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor | None) -> tuple:
        found = ctx.sink.rows
        if grad is not None:
            found = grad if found is None else found + grad
        return None, found


@dataclass
class OncePass:
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
    _shared: dict[int, tuple[Tensor, Tensor, Sink]] = field(default_factory=dict)
    _count: int = 0

    def __enter__(self) -> OncePass:
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
        layer = (_RowLayer if on_rows else _Layer)(self, pairs, self._next("hidden"), *given)
        hidden, total = _Messages.apply(layer, table, weight, *values)
        return RowValues(state.topology, hidden, total, phi.last, pairs, on_rows)

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
        layer = _AngleLayer(self, self._pairs, self._next("hidden"), *given, ends)
        hidden, total = _Messages.apply(layer, table, weight, *values)
        folds = update.plan.folds
        return LazyValues(topology, "angle", hidden, phi.last, False, folds, total)

    def _layer(
        self, fine: list[Product], coarse: list[Product]
    ) -> tuple[list[Tensor], tuple[list[Tensor], list[Sink | None], int]]:
        """The values of products as they are read, and what a layer has of them."""
        values: list[Tensor] = []
        sinks: list[Sink | None] = []
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

    def _share(self, value: Tensor) -> tuple[Tensor, Sink]:
        """A value that layers read, which collects its derivatives from all of them."""
        if id(value) not in self._shared:
            sink = Sink(self, self._next("sum"))
            self._shared[id(value)] = value, _Shared.apply(sink, value), sink
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
        if not isinstance(value, RowValues):
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


class RowValues(LazyValues):
    """A value on edges whose hidden numbers are there on rows, or on the edges that are left."""

    def __init__(
        self,
        topology: Topology,
        hidden: Tensor,
        total: Tensor,
        last: Any,
        pairs: EdgePairs,
        on_rows: bool,
    ) -> None:
        super().__init__(topology, "edge", hidden, last, rows_read=False, folds=True)
        self._totals["node", "sum"] = total
        self.pairs, self.on_rows = pairs, on_rows

    def plus(self, before: Values) -> LazyValues:
        """The value with an old one added."""
        assert self.hidden is not None
        total = self._totals["node", "sum"]
        found = RowValues(self.topology, self.hidden, total, self.last, self.pairs, self.on_rows)
        found.before = before
        return found

    @property
    def read(self) -> Tensor:
        """The hidden numbers on all edges, for what reads them other than here."""
        assert self.hidden is not None
        assert len(self.pairs.row) == self.topology.num_edges
        return self.hidden.index_select(0, self.pairs.row) if self.on_rows else self.hidden

    @property
    def rows(self) -> Tensor:
        """The value itself `[E, w]`."""
        if self._made is None:
            assert self.last is not None
            rows = self.last(self.read)
            self._made = rows if self.before is None else rows + self.before.rows
        return self._made


@dataclass(frozen=True)
class _Layer:
    """What an update needs besides numbers that are differentiated; here, on edges."""

    run: OncePass
    pairs: EdgePairs
    name: str
    maps: list[Tensor]  # of the values, those of its own rows first
    sinks: list[Sink | None]
    fine: int  # how many values are on its own rows; the others are on those of pairs

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.pairs.row)

    @property
    def order(self) -> Tensor:
        """Which rows are summed, one sum after the other."""
        return torch.arange(self.size)

    @property
    def offsets(self) -> Tensor:
        """Where those of each sum start in the order."""
        return self.pairs.offsets

    def reads(self, nodes: int, more: bool) -> Tensor:
        """The rows of the table that each row adds up `[rows, k]`; `more` if it goes on behind
        what nodes add, with what rows of pairs add.
        """
        pairs = self.pairs
        found = [2 * pairs.target, 2 * pairs.source + 1]
        return torch.stack([*found, nodes + pairs.row] if more else found, 1)

    def readers(self, of_total: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """The sums that read each row, first and second, and the derivative by sums."""
        return self.pairs.target, None, of_total

    def weight(self, rows: Tensor, tile: slice) -> Tensor:
        """The envelope of a tile `[t, 1]`, of that of rows of pairs."""
        return rows.index_select(0, self.pairs.row[tile])

    def of_weight(self, found: Tensor) -> Tensor:
        """The derivative by the envelope, of that on its own rows and a last one of nothing."""
        return (found[self.pairs.first] + found[self.pairs.second]).unsqueeze(1)

    def of_table(self, grad: Tensor) -> Tensor | None:
        """The derivative by the table, of that on its own rows and a last one of nothing."""
        own = _bag(grad, self.order, self.offsets)
        other = _bag(grad, self.pairs.reverse, self.offsets)
        return torch.stack([own, other], 1).flatten(0, 1)

    def take(self, name: str, rows: int, width: int, like: Tensor) -> Tensor:
        """Memory of the pass."""
        return self.run.workspace.take(name, rows, width, like)

    def started(self, fine: bool, like: Tensor) -> list[tuple[Tensor, Sink]]:
        """The maps and sinks of the values that are differentiated, on its own rows or pairs."""
        part = slice(0, self.fine) if fine else slice(self.fine, None)
        size = self.size if fine else len(self.pairs.first)
        return [
            (map, sink.start(size, map.shape[1], like))
            for map, sink in zip(self.maps[part], self.sinks[part], strict=True)
            if sink is not None
        ]


class _RowLayer(_Layer):
    """On rows of pairs, where nodes are known by their kind. No value is finer."""

    @property
    def size(self) -> int:
        return len(self.pairs.first)

    @property
    def order(self) -> Tensor:
        return self.pairs.row

    def reads(self, nodes: int, more: bool) -> Tensor:
        return super().reads(nodes, False).index_select(0, self.pairs.first)

    def readers(self, of_total: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        pairs, nodes = self.pairs, len(of_total)
        targets = torch.cat([pairs.target, pairs.target.new_full((1,), nodes)])
        of_total = torch.cat([of_total, of_total.new_zeros(1, of_total.shape[1])])
        return targets[pairs.first], targets[pairs.second], of_total

    def weight(self, rows: Tensor, tile: slice) -> Tensor:
        return rows[tile]

    def of_weight(self, found: Tensor) -> Tensor:
        return found[:-1].unsqueeze(1)

    def of_table(self, grad: Tensor) -> Tensor | None:
        return None  # kinds have no derivative by coordinates


@dataclass(frozen=True)
class _AngleLayer(_Layer):
    """On angles, summed for each first ray; the table is that of rays."""

    ends: AngleRays

    @property
    def size(self) -> int:
        return self.ends.first.reads.shape[0]

    @property
    def order(self) -> Tensor:
        return self.ends.first.back_reads

    @property
    def offsets(self) -> Tensor:
        return self.ends.first.back_offsets

    def reads(self, nodes: int, more: bool) -> Tensor:
        return self.ends.both.reads.view(-1, 2)

    def readers(self, of_total: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        return self.ends.first.reads, None, of_total

    def weight(self, rows: Tensor, tile: slice) -> Tensor:
        return rows[tile]

    def of_weight(self, found: Tensor) -> Tensor:
        return found[:-1].unsqueeze(1)

    def of_table(self, grad: Tensor) -> Tensor | None:
        return _bag(grad, self.ends.both.back_reads, self.ends.both.back_offsets)


def _tiles(size: int) -> Iterator[slice]:
    return (slice(start, min(start + TILE, size)) for start in range(0, size, TILE))


def _bag(rows: Tensor, reads: Tensor, offsets: Tensor) -> Tensor:
    """Sums of rows, `reads[offsets[i] : offsets[i + 1]]` for row i."""
    return torch.embedding_bag(rows, reads, offsets, False, 0, False, None, True)[0]


class _Messages(torch.autograd.Function):
    """`f swish(table + sum_k value_k map_k^T)` on the rows of a layer, and its sums."""

    @staticmethod
    def forward(
        ctx: Any, layer: _Layer, table: Tensor, weight: Tensor, *values: Tensor
    ) -> tuple[Tensor, Tensor]:
        width, size = table.shape[1], layer.size
        products = list(zip(values, layer.maps, strict=True))
        fine, coarse = products[: layer.fine], products[layer.fine :]
        reads = layer.reads(len(table), bool(coarse))
        table = _with_rows(layer, table, coarse) if coarse else table
        each = reads.shape[1]
        offsets = torch.arange(0, each * TILE + 1, each, dtype=reads.dtype)
        hidden = layer.take(layer.name, size, width, table)
        result = layer.take(f"result of {layer.name}", size, width, table)
        for tile in _tiles(size):
            at = reads[tile]
            here = _bag(table, at.flatten(), offsets[: len(at) + 1])
            for value, map in fine:
                here.addmm_(value[tile], map.mT)
            hidden[tile] = here
            torch.mul(F.silu(here, inplace=True), layer.weight(weight, tile), out=result[tile])
        ctx.layer = layer
        ctx.save_for_backward(hidden, weight)
        ctx.set_materialize_grads(False)
        return result, _bag(result, layer.order, layer.offsets)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_result: Tensor | None, of_total: Tensor | None) -> tuple:
        layer: _Layer = ctx.layer
        nothing = (None,) * len(layer.maps)
        if of_result is None and of_total is None:
            return None, None, None, *nothing
        hidden, weight = ctx.saved_tensors
        (size, width), pairs = hidden.shape, layer.pairs
        if of_total is None:
            of_total = hidden.new_zeros(len(layer.offsets) - 1, width)
        first, second, of_total = layer.readers(of_total)
        sinks, one = layer.started(True, hidden), hidden.new_ones(())
        grad = layer.take("gradient", size + 1, width, hidden)
        of_weight = hidden.new_zeros(size + 1)
        for tile in _tiles(size):
            here = of_total.index_select(0, first[tile])
            if second is not None:
                here += of_total.index_select(0, second[tile])
            if of_result is not None:
                here += of_result[tile]
            before = hidden[tile]
            sigmoid = torch.sigmoid(before)
            swish = before.mul_(sigmoid)
            torch.sum(here * swish, 1, out=of_weight[tile])
            here.mul_(layer.weight(weight, tile))
            here = torch.mul(here, swish.lerp_(one, sigmoid), out=grad[tile])
            for map, sink in sinks:
                sink.add(here, map, tile)
        grad[size] = 0.0  # of an edge that is not there
        sinks = layer.started(False, hidden)
        for tile in _tiles(len(pairs.first)) if sinks else ():
            here = grad.index_select(0, pairs.first[tile])
            here += grad.index_select(0, pairs.second[tile])
            for map, sink in sinks:
                sink.add(here, map, tile)
        return None, layer.of_table(grad), layer.of_weight(of_weight), *nothing


def _with_rows(layer: _Layer, table: Tensor, coarse: Sequence[Product]) -> Tensor:
    """The table of nodes, and behind it what rows of pairs add."""
    (nodes, width), rows = table.shape, len(layer.pairs.first)
    whole = layer.take("table", nodes + rows, width, table)
    whole[:nodes] = table
    of_rows = whole[nodes:]
    for tile in _tiles(rows):
        for number, (value, map) in enumerate(coarse):
            if number:
                of_rows[tile].addmm_(value[tile], map.mT)
            else:
                torch.mm(value[tile], map.mT, out=of_rows[tile])
    return whole
