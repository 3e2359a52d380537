"""Values of which only a part is in memory at once: parts of the angles, or of the edges.

A part is computed when it is read, again each time, and again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32
from symgnn.graphs import Cut, EdgeCut, EdgePart, Part, Topology
from symgnn.nn._engine.chunks import Chunks
from symgnn.nn._engine.rows import move
from symgnn.nn._engine.values import LazyValues, largest


class AngleParts(LazyValues):
    """A value on angles, computed for some vertices at a time.

    Args:
        compute: The hidden rows of a part `[angles of the part, h]`.
        like: `[0, h]`: tells type, device and width, which an empty graph needs.
        total: The sum of them over the angles of each first ray of a part, where that is faster.
    """

    def __init__(
        self,
        topology: Topology,
        compute: Callable[[Part], Tensor],
        like: Tensor,
        chunks: Chunks,
        last: nn.Linear | None = None,
        rows_read: bool = True,
        folds: bool = False,
        total: Callable[[Part], Tensor | None] | None = None,
    ) -> None:
        super().__init__(topology, "angle", like, last, rows_read, folds)
        self.compute, self.total, self.chunks = compute, total, chunks
        chunks.results.append(self._totals)

    def rows_of(self, part: Part) -> Tensor:
        """The value on the angles of a part."""
        hidden = self.compute(part)
        return hidden if self.last is None else self.last(hidden)

    def read_of(self, part: Part) -> Tensor:
        """The rows of a part to which linear maps of the value are applied."""
        return self.compute(part) if self.folds else self.rows_of(part)

    def _climb_angles(self, to: str, op: str) -> Tensor:
        if to == "ray":
            return self._in_parts(op, self._rays_of, lambda cut: cut.rays)
        if to == "node" and op == "sum" and ("ray", op) not in self._totals:
            return self._in_parts(op, self._nodes_of, lambda cut: cut.vertices)
        return super()._climb_angles(to, op)

    def _in_parts(
        self, op: str, total: Callable[[Part, str], Tensor], place: Callable[[Cut], slice]
    ) -> Tensor:
        """The totals of all parts, one after the other."""
        topology, chunks = self.topology, self.chunks

        def one(number: int) -> Tensor:
            # made where it is read, so that it is not kept for the backward pass
            return total(topology.part(number, chunks.size), op)

        like = self.hidden if self.defers and op == "sum" else self.rows
        assert like is not None
        places = [place(cut) for cut in topology.cuts(chunks.size)]
        return chunks.each(one, places, at_least_float32(like))

    def _rays_of(self, part: Part, op: str) -> Tensor:
        if op == "sum" and self.total is not None:
            known = self.total(part)
            if known is not None:
                return known
        deferred = self.defers and op == "sum"
        rows = at_least_float32(self.compute(part) if deferred else self.rows_of(part))
        first = part.pairs.first
        if op == "sum":
            return move(rows, first.T)
        return largest(rows, first.reads.long(), first.back_offsets.shape[0] - 1)

    def _nodes_of(self, part: Part, op: str) -> Tensor:
        assert self.topology.rays is not None
        vertex = self.topology.rays.vertex.part(part.cut.rays, part.cut.vertices)
        return move(self._rays_of(part, op), vertex.T)


class EdgeParts(LazyValues):
    """A value on edges, computed for those that end at some vertices at a time."""

    def __init__(
        self,
        topology: Topology,
        compute: Callable[[EdgePart], Tensor],
        like: Tensor,
        chunks: Chunks,
        last: nn.Linear | None,
        folds: bool,
    ) -> None:
        super().__init__(topology, "edge", like, last, rows_read=False, folds=folds)
        self.compute, self.chunks = compute, chunks
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
        order = self.topology.edges.target.back_reads
        rows = self._each(self.read_of, lambda cut: cut.edges)
        return rows.index_select(0, torch.argsort(order))

    def read_of(self, part: EdgePart) -> Tensor:
        """The rows of a part to which linear maps of the value are applied."""
        hidden = self.compute(part)
        return hidden if self.folds or self.last is None else self.last(hidden)

    def _each(
        self, function: Callable[[EdgePart], Tensor], place: Callable[[EdgeCut], slice]
    ) -> Tensor:
        cuts = self.topology.edge_cuts(self.chunks.size)

        def one(number: int) -> Tensor:
            return function(self.topology.edge_part(cuts[number]))

        assert self.hidden is not None
        return self.chunks.each(one, [place(cut) for cut in cuts], self.hidden)

    def _climb(self, to: str, op: str) -> Tensor:
        if to == "graph" or op != "sum":
            return super()._climb(to, op)

        def total(part: EdgePart) -> Tensor:
            rows = self.compute(part) if self.defers else self.read_of(part)
            return move(at_least_float32(rows), part.target.T)

        return self._each(total, lambda cut: cut.vertices)
