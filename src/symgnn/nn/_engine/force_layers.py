"""The messages of one update in a pass for forces, in tiles that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.graphs.edge_pairs import EdgePairs
from symgnn.graphs.movement import AngleRays
from symgnn.nn._engine.gradient_sinks import GradientSink
from symgnn.nn._engine.rows import Product
from symgnn.nn._engine.workspaces import Workspace

#: Rows of a tile: with 64 hidden numbers in single precision, half a MiB.
TILE = 2048


@dataclass(frozen=True)
class EdgeLayer:
    """What an update needs besides numbers that are differentiated; here, on edges."""

    workspace: Workspace
    pairs: EdgePairs
    name: str
    maps: list[Tensor]  # of the values, those of its own rows first
    sinks: list[GradientSink | None]
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
        return self.workspace.take(name, rows, width, like)

    def started(self, fine: bool, like: Tensor) -> list[tuple[Tensor, GradientSink]]:
        """The maps and sinks of the values that are differentiated, on its own rows or pairs."""
        part = slice(0, self.fine) if fine else slice(self.fine, None)
        size = self.size if fine else len(self.pairs.first)
        return [
            (map, sink.start(size, map.shape[1], like))
            for map, sink in zip(self.maps[part], self.sinks[part], strict=True)
            if sink is not None
        ]


class PairLayer(EdgeLayer):
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
class AngleLayer(EdgeLayer):
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


class Messages(torch.autograd.Function):
    """`f swish(table + sum_k value_k map_k^T)` on the rows of a layer, and its sums."""

    @staticmethod
    def forward(
        ctx: Any, layer: EdgeLayer, table: Tensor, weight: Tensor, *values: Tensor
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
        layer: EdgeLayer = ctx.layer
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


def _with_rows(layer: EdgeLayer, table: Tensor, coarse: Sequence[Product]) -> Tensor:
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
