"""Values on domains, and the two movements between domains: lift and reduce.

Reductions climb: angle -> ray -> node -> graph and edge -> node -> graph, each step once. Only
sums and maxima are kept on the way; a mean is a sum divided by its count at the end. The
reduction of nothing is 0, whether sum, mean or max.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32, length, root
from symgnn.nn.chunks import Chunks
from symgnn.nn.movements import linear, move

if TYPE_CHECKING:
    from symgnn.nn.sources import Measure
    from symgnn.nn.state import State
    from symgnn.topology import Cut, EdgeCut, EdgePart, Part, Topology

EMPTY = {"sum": 0.0, "max": -torch.inf}


def lift(rows: Tensor, index: Tensor) -> Tensor:
    """Rows to where `index` reads them, `[R, h], [L] -> [L, h]`.

    As an embedding: it is index_select, but under vmap it stays one instead of a slow gather.
    """
    return F.embedding(index, rows) if rows.is_floating_point() else rows.index_select(0, index)


def accumulate(rows: Tensor, index: Tensor, size: int, op: str) -> Tensor:
    """The sum or maximum of the rows of equal index, `[R, h] -> [size, h]`."""
    rows = at_least_float32(rows)
    out = rows.new_full((size, rows.shape[-1]), EMPTY[op])
    if op == "sum":
        return out.index_add(0, index, rows)
    return out.scatter_reduce(0, index.unsqueeze(-1).expand_as(rows), rows, "amax")


def edges_to_rays(rows: Tensor, topology: Topology, into: bool = False) -> Tensor:
    """Edge rows on the rays `[R, h]`; the mean of parallel edges.

    A ray (i, j) reads the edge i -> j, or j -> i where there is none; with `into`, it reads the
    edge j -> i, and 0 where there is none.
    """
    if into:
        assert topology.rays_in is not None
        total = move(rows, topology.rays_in)
        count = topology.rays_in.offsets.diff().clamp(min=1).unsqueeze(-1)
        return total / count.to(total.dtype)
    assert topology.ray_edge is not None
    if topology.ray_edge_weight is None:
        return lift(rows, topology.ray_edge.flatten())
    edges = lift(rows, topology.ray_edge.flatten()).view(*topology.ray_edge.shape, -1)
    return (edges * topology.ray_edge_weight.unsqueeze(-1).to(rows.dtype)).sum(1)


def centroid(x: Tensor, topology: Topology) -> Tensor:
    """The mean of the vectors of each graph `[N, n] -> [G, n]`."""
    total = accumulate(x, topology.batch, topology.num_graphs, "sum")
    return total / topology.nodes_of_graph.clamp(min=1).unsqueeze(-1)


def spread(away: Tensor, topology: Topology) -> Tensor:
    """The root mean square length of the vectors of each graph `[N, n] -> [G, 1]`."""
    batch, graphs = topology.batch, topology.num_graphs
    lengths = length(away).unsqueeze(-1)
    # divided by the largest before squaring: coordinates may be 1e-30 or 1e30
    largest = accumulate(lengths.detach(), batch, graphs, "max").clamp(min=0)
    largest = torch.where(largest == 0, 1.0, largest)
    square = accumulate((lengths / lift(largest, batch)).square(), batch, graphs, "sum")
    return largest * root(square / topology.nodes_of_graph.clamp(min=1).unsqueeze(-1))


class Field:
    """A value on nodes, edges or graphs, `[rows, w]`, whose last linear map may be outstanding.

    `rows = last(hidden)`. With `keep`, the rows are needed themselves; without, a sum or mean is
    taken of `hidden`, and the last map is applied to the few rows that are left. With `folds`, only
    linear maps of the rows are needed: each is multiplied by the last map and applied to `hidden`.
    """

    def __init__(
        self,
        topology: Topology,
        domain: str,
        hidden: Tensor,
        last: nn.Linear | None = None,
        keep: bool = True,
        folds: bool = False,
    ) -> None:
        self.topology = topology
        self.domain = domain
        self.hidden = hidden
        self.last = last
        self.keep = keep and not folds
        self.folds = folds
        self.ungated: Tensor | None = None  # what it was before its gate
        self._rows: Tensor | None = None
        self._totals: dict[tuple[str, str], Tensor] = {}

    @property
    def rows(self) -> Tensor:
        """The value itself."""
        if self._rows is None:
            self._rows = self.hidden if self.last is None else self.last(self.hidden)
        return self._rows

    def fold(self, weight: Tensor) -> tuple[Tensor, Tensor | None]:
        """A map `[h, w]` of the value as one of :attr:`read`, and what it adds to all rows."""
        if not self.folds:
            return weight, None
        assert self.last is not None
        bias = self.last.bias
        return weight @ self.last.weight, None if bias is None else weight @ bias

    @property
    def read(self) -> Tensor:
        """What linear maps of the value are applied to, see :meth:`fold`."""
        return self.hidden if self.folds else self.rows

    def reduce(self, to: str, how: str, place: str = "") -> Tensor:
        """The value reduced to a coarser domain by sum, mean or max, `[rows of to, w]`."""
        to = f"{place} ray" if place else to
        total = self._total(to, "max" if how == "max" else "sum")
        count = self._count(to).unsqueeze(-1).to(total.dtype)
        if how == "max":
            return torch.where(count > 0, total, 0.0)
        if how == "mean":
            total = total / count.clamp(min=1)
            count = (count > 0).to(total.dtype)
        if not self._defers:
            return total
        assert self.last is not None
        # in the type of the total: a half type could not hold a sum over many rows
        total = linear(total, self.last.weight.to(total.dtype))
        return total if self.last.bias is None else total + count * self.last.bias

    @property
    def _defers(self) -> bool:
        return self.last is not None and not self.keep

    def _total(self, to: str, op: str) -> Tensor:
        key = (to, op)
        if key not in self._totals:
            self._totals[key] = self._climb(to, op)
        return self._totals[key]

    def _climb(self, to: str, op: str) -> Tensor:
        topology = self.topology
        rows = self.hidden if self._defers and op == "sum" else self.rows
        if to == "graph":
            return _to_graphs(rows if self.domain == "node" else self._total("node", op), self, op)
        if op == "sum":
            return move(at_least_float32(rows), topology.edges.near.T)
        return accumulate(rows, topology.edge_index[1], topology.num_nodes, op)

    def _count(self, to: str) -> Tensor:
        """How many rows went into each row of a reduction."""
        if to == "node":
            return self.topology.edges_of_node
        if self.domain == "node":
            return self.topology.nodes_of_graph
        return self._sum_over_nodes(self.topology.edges_of_node)

    def _sum_over_nodes(self, numbers: Tensor) -> Tensor:
        return numbers.new_zeros(self.topology.num_graphs).index_add(
            0, self.topology.batch, numbers
        )


def _to_graphs(nodes: Tensor, field: Field, op: str) -> Tensor:
    topology = field.topology
    if op == "sum":
        return move(at_least_float32(nodes), topology.graphs.T)
    return accumulate(nodes, topology.batch, topology.num_graphs, op)


class EdgeField(Field):
    """A value on edges of which only a chunk is in memory at once, if only sums are read."""

    def __init__(
        self,
        topology: Topology,
        compute: Callable[[EdgePart], Tensor],
        like: Tensor,
        last: nn.Linear | None,
        folds: bool,
        chunks: Chunks,
    ) -> None:
        super().__init__(topology, "edge", like, last, keep=False, folds=folds)
        self.compute = compute
        self.chunks = chunks
        chunks.results.append(self._totals)

    @property
    def rows(self) -> Tensor:
        """All of them at once."""
        key = ("edge", "")
        if key not in self._totals:
            folded = self.folds and self.last is not None
            self._totals[key] = self.last(self.read) if folded else self.read  # type: ignore[misc]
        return self._totals[key]

    @property
    def read(self) -> Tensor:
        """All of them at once, in the order of the edges."""
        order = self.topology.edges.near.back_reads
        rows = self._each(self.read_of, lambda cut: cut.edges)
        return rows.index_select(0, torch.argsort(order))

    def read_of(self, part: EdgePart) -> Tensor:
        """What linear maps of the value on a part are applied to."""
        hidden = self.compute(part)
        return hidden if self.folds or self.last is None else self.last(hidden)

    def _each(
        self, function: Callable[[EdgePart], Tensor], place: Callable[[EdgeCut], slice]
    ) -> Tensor:
        cuts = self.topology.edge_cuts(self.chunks.size)

        def one(number: int) -> Tensor:
            return function(self.topology.edge_part(cuts[number]))

        return self.chunks.each(one, [place(cut) for cut in cuts], self.hidden)

    def _climb(self, to: str, op: str) -> Tensor:
        if to == "graph" or op != "sum":
            return super()._climb(to, op)

        def total(part: EdgePart) -> Tensor:
            rows = self.compute(part) if self._defers else self.read_of(part)
            return move(at_least_float32(rows), part.near.T)

        return self._each(total, lambda cut: cut.vertices)


class AngleField(Field):
    """A value on angles, computed for one part of the vertices at a time, `[angles, w]`.

    With `chunks`, a part is computed when it is read, again each time, and again in the backward
    pass. Without, there is one part.
    """

    def __init__(
        self,
        topology: Topology,
        compute: Callable[[Part], Tensor],
        like: Tensor,
        last: nn.Linear | None = None,
        keep: bool = True,
        chunks: Chunks | None = None,
        total: Callable[[Part], Tensor | None] | None = None,
        folds: bool = False,
    ) -> None:
        # `like` has no rows: it tells type, device and width, which an empty graph needs
        super().__init__(topology, "angle", like, last, keep, folds)
        self.compute = compute
        self.total = total  # a faster way to the sum over the angles of each first ray, if any
        self.chunks = chunks
        if chunks is not None:
            chunks.results.append(self._totals)
        self._hidden_of: dict[int, Tensor] = {}
        self._rows_of: dict[int, Tensor] = {}

    def hidden_of(self, part: Part) -> Tensor:
        """What the last map is applied to."""
        if self.chunks is not None:
            return self.compute(part)
        if part.number not in self._hidden_of:
            self._hidden_of[part.number] = self.compute(part)
        return self._hidden_of[part.number]

    def rows_of(self, part: Part) -> Tensor:
        """The value on the angles of a part."""
        if self.last is None:
            return self.hidden_of(part)
        if self.chunks is not None:
            return self.last(self.hidden_of(part))
        if part.number not in self._rows_of:
            self._rows_of[part.number] = self.last(self.hidden_of(part))
        return self._rows_of[part.number]

    def read_of(self, part: Part) -> Tensor:
        """What linear maps of the value on a part are applied to."""
        return self.hidden_of(part) if self.folds else self.rows_of(part)

    def _climb(self, to: str, op: str) -> Tensor:
        topology = self.topology
        if to == "ray":
            return self._in_parts(op, self._ray_total, lambda cut: cut.rays)
        if to == "graph":
            return _to_graphs(self._total("node", op), self, op)
        if (
            to == "node"
            and op == "sum"
            and self.chunks is not None
            and ("ray", op) not in self._totals
        ):
            return self._in_parts(op, self._node_total, lambda cut: cut.vertices)
        rays = self._total("ray", op)
        if to == "node":
            if op == "sum":
                assert topology.rays is not None
                return move(rays, topology.rays.near.T)
            return accumulate(rays, topology.ray_vertex, topology.num_nodes, op)
        index = topology.target_ray if to == "target ray" else topology.source_ray
        assert index is not None
        empty = rays.new_full((1, rays.shape[-1]), EMPTY[op])
        return lift(torch.cat([rays, empty]), index)

    def _in_parts(
        self, op: str, total: Callable[[Part, str], Tensor], place: Callable[[Cut], slice]
    ) -> Tensor:
        """The totals of all parts, one after the other."""
        topology, chunks = self.topology, self.chunks
        if chunks is None:
            return total(topology.part(0), op)

        def one(number: int) -> Tensor:
            # made where it is read, so that it is not kept for the backward pass
            return total(topology.part(number, chunks.size), op)

        like = self.hidden if self._defers and op == "sum" else self.rows
        places = [place(cut) for cut in topology.cuts(chunks.size)]
        return chunks.each(one, places, at_least_float32(like))

    def _ray_total(self, part: Part, op: str) -> Tensor:
        if op == "sum" and self.total is not None:
            known = self.total(part)
            if known is not None:
                return known
        deferred = self._defers and op == "sum"
        rows = at_least_float32(self.hidden_of(part) if deferred else self.rows_of(part))
        near = part.pairs.near
        if op == "sum":
            return move(rows, near.T)
        return accumulate(rows, near.reads.long(), near.back_offsets.shape[0] - 1, op)

    def _node_total(self, part: Part, op: str) -> Tensor:
        assert self.topology.rays is not None
        near = self.topology.rays.near.part(part.cut.rays, part.cut.vertices)
        return move(self._ray_total(part, op), near.T)

    def _count(self, to: str) -> Tensor:
        degree = self.topology.degree
        if to == "node":
            return degree * (degree - 1)
        if to == "graph":
            return self._sum_over_nodes(degree * (degree - 1))
        end = 1 if to == "target ray" else 0
        ray = self.topology.target_ray if end else self.topology.source_ray
        assert ray is not None
        angles = (lift(degree, self.topology.edge_index[end]) - 1).clamp(min=0)
        return torch.where(ray < self.topology.num_rays, angles, 0)


class TiledField(AngleField):
    """A value on angles, computed in tiles: its rows and their sums are made together.

    `run(rows)` gives what is read of the angles, if it is asked for, and the sum of what the last
    map is applied to over the angles of each first ray.
    """

    def __init__(
        self,
        topology: Topology,
        run: Callable[[bool], tuple[Tensor | None, Tensor]],
        like: Tensor,
        last: nn.Linear | None,
        keep: bool,
        folds: bool,
    ) -> None:
        super().__init__(topology, lambda part: self._kept, like, last, keep=False, folds=folds)
        self.run = run
        self.with_rows = keep
        self._made: tuple[Tensor | None, Tensor] | None = None

    def rows_of(self, part: Part) -> Tensor:
        """The value on all angles."""
        return super().rows_of(part) if self.folds else self._kept

    def _ray_total(self, part: Part, op: str) -> Tensor:
        return self._result(False)[1] if op == "sum" else super()._ray_total(part, op)

    @property
    def _kept(self) -> Tensor:
        rows = self._result(True)[0]
        assert rows is not None
        return rows

    def _result(self, rows: bool) -> tuple[Tensor | None, Tensor]:
        if self._made is None or (rows and self._made[0] is None):
            self._made = self.run(rows or self.with_rows)
        return self._made


def measure(source: Measure, state: State) -> Field:
    """A measure of the coordinates on its domain."""
    x, topology, chunks = state.x, state.topology, state.chunks
    if source.domain == "node":
        return Field(topology, "node", _column(source.function(x), 1))
    if source.domain == "edge":
        return Field(topology, "edge", _column(source.function(*state.ends), 1))

    read = partial(lift, x) if chunks is None else chunks.table(x).rows

    def compute(part: Part) -> Tensor:
        vertex = topology.ray_vertex[part.cut.rays]
        neighbour = topology.ray_neighbour[part.cut.rays]
        rays = read(neighbour) - read(vertex)
        around: tuple = (vertex, topology.num_nodes) if source.grouped else ()
        rays = rays if source.per_ray is None else source.per_ray(rays, *around)
        of_first, of_second = rays if isinstance(rays, tuple) else (rays, rays)
        first, second = move(of_first, part.pairs.near), move(of_second, part.pairs.far)
        if source.grouped:
            around = (lift(vertex, part.pairs.near.reads), topology.num_nodes)
        return _column(source.function(first, second, *around), 1)

    return AngleField(topology, compute, x.new_empty(0, source.width or 1), chunks=chunks)


def measure_rays(source: Measure, x: Tensor, topology: Topology) -> Tensor:
    """A measure on edges, taken on the rays of the angles, `[R, w]`."""
    neighbours, vertices = lift(x, topology.ray_neighbour), lift(x, topology.ray_vertex)
    return _column(source.function(neighbours, vertices), 1)


def measure_lines(source: Measure, x: Tensor, topology: Topology) -> Tensor:
    """A measure on edges that is the same both ways, taken once for each line, `[L, w]`."""
    assert topology.line_index is not None
    return _column(source.function(*(lift(x, end) for end in topology.line_index)), 1)


def _column(rows: Tensor, axes: int) -> Tensor:
    return rows.unsqueeze(-1) if rows.dim() == axes else rows
