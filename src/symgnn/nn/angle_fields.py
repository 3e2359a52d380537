"""Values on angles: all at once, in chunks, or in tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32
from symgnn.nn.chunks import Chunks
from symgnn.nn.fields import EMPTY, Field, accumulate, lift, to_graphs
from symgnn.nn.movements import move

if TYPE_CHECKING:
    from symgnn.topology import Cut, Part, Topology


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
            return to_graphs(self._total("node", op), self, op)
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
