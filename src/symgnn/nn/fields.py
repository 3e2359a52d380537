"""Values on domains, and the two movements between domains: lift and reduce.

Reductions climb: angle -> ray -> node -> graph and edge -> node -> graph, each step once. Only
sums and maxima are kept on the way; a mean is a sum divided by its count at the end. The
reduction of nothing is 0, whether sum, mean or max.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32, length, root
from symgnn.nn.chunks import Chunks
from symgnn.nn.movements import linear, move

if TYPE_CHECKING:
    from symgnn.topology import EdgeCut, EdgePart, Topology

EMPTY = {"sum": 0.0, "max": -torch.inf}


def lift(rows: Tensor, index: Tensor) -> Tensor:
    """Rows to where `index` reads them, `[R, h], [L] -> [L, h]`.

    As an embedding: it is index_select, but under vmap it stays one instead of a slow gather. An
    embedding of nothing has no second derivative, so an empty index selects no rows by itself.
    """
    empty = not torch.compiler.is_compiling() and index.shape[0] == 0
    if not rows.is_floating_point() or empty:
        return rows.index_select(0, index)
    return F.embedding(index, rows)


def accumulate(rows: Tensor, index: Tensor, size: int, op: str) -> Tensor:
    """The sum or maximum of the rows of equal index, `[R, h] -> [size, h]`."""
    rows = at_least_float32(rows)
    out = rows.new_full((size, rows.shape[-1]), EMPTY[op])
    if op == "sum":
        return out.index_add(0, index, rows)
    return out.scatter_reduce(0, index.unsqueeze(-1).expand_as(rows), rows, "amax")


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
            return to_graphs(rows if self.domain == "node" else self._total("node", op), self, op)
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


def to_graphs(nodes: Tensor, field: Field, op: str) -> Tensor:
    """Sums or maxima of nodes, `[N, h] -> [G, h]`."""
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
