"""Lines: one row for an edge and its reverse, for values that are equal on both."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from symgnn.graphs.rays import lines_of
from symgnn.graphs.topology import Topology


class EdgePairs(NamedTuple):
    """E edges, sorted by target, and R rows for them.

    An edge and its reverse share a row if nodes of one kind are at both ends; else each has one.
    Whatever depends on the length of an edge and on the kinds of its ends alone is the same for all
    edges of a row. E stands for an edge, and N for a node, that is not there.

    Example:
        >>> edge_index = torch.tensor([[1, 2, 0, 0], [0, 0, 1, 2]])
        >>> pairs = edge_pairs(Topology.build(edge_index, 3), torch.tensor([7, 7, 8]))
        >>> pairs.row.tolist(), pairs.first.tolist(), pairs.second.tolist()
        ([0, 1, 0, 2], [0, 1, 3], [2, 4, 4])
    """

    source: Tensor  # [E]
    target: Tensor  # [E]
    reverse: Tensor  # [E], the number of the reverse of each edge
    row: Tensor  # [E], the row of each edge
    offsets: Tensor  # [N + 1], where the edges of each target start
    first: Tensor  # [R], an edge of each row
    second: Tensor  # [R], the other one, or E
    line: Tensor  # [R], by which rows of an edge and of its reverse are found
    lines: Tensor  # [L], a row of each line
    number: Tensor  # [R], the number of the first edge of each row in the topology

    def kept(self, lines: Tensor) -> EdgePairs:
        """Those of some lines `[L]`, of type bool, alone."""
        edges, none = len(self.row), self.row.new_zeros(1)
        rows = lines.index_select(0, self.line)
        there = rows.index_select(0, self.row)
        before = torch.cat([none, there.cumsum(0)])  # [E + 1], how many are left before each
        left, left_rows = there.nonzero().squeeze(1), rows.nonzero().squeeze(1)
        new_row = rows.cumsum(0) - 1
        # of an edge that is not there, E: behind the last one that is left
        second = self.second.index_select(0, left_rows)
        return EdgePairs(
            self.source.index_select(0, left),
            self.target.index_select(0, left),
            before.index_select(0, self.reverse.index_select(0, left)),
            new_row.index_select(0, self.row.index_select(0, left)),
            before.index_select(0, self.offsets),
            before.index_select(0, self.first.index_select(0, left_rows)),
            torch.where(second == edges, len(left), before.index_select(0, second)),
            (lines.cumsum(0) - 1).index_select(0, self.line.index_select(0, left_rows)),
            new_row.index_select(0, self.lines[lines]),
            self.number.index_select(0, left_rows),
        )


def edge_pairs(topology: Topology, kinds: Tensor | None) -> EdgePairs | None:
    """The pairs of a graph.

    Args:
        topology: Of the graph.
        kinds: An integer for each node `[N]`; None if an edge and its reverse differ only by what
            is not read on rows.

    Returns:
        None where edges are not sorted by target, or come one way or several times.
    """
    source, target = topology.edge_index
    edges = len(source)
    if not edges or bool((target.diff() < 0).any()):
        return None
    _, line, _ = lines_of(topology.edge_index, topology.num_nodes, topology.edge_shift)
    count = torch.bincount(line)
    if not bool((count == 2).all()):
        return None
    one, other = line.argsort(stable=True).view(-1, 2).unbind(1)
    if not torch.equal(source[one], target[other]):  # the same edge twice, one way
        return None
    reverse = torch.empty_like(line)
    reverse[one], reverse[other] = other, one
    lines = torch.arange(len(one))
    if kinds is None:
        apart = torch.zeros(len(one), dtype=torch.bool)
    else:
        apart = kinds[source[one]] != kinds[target[one]]
    number = apart.cumsum(0) - 1 + len(one)  # of the second row of a line
    row = torch.empty_like(line)
    row[one], row[other] = lines, torch.where(apart, number, lines)
    second = torch.where(apart, edges, other)
    rest = other[apart]
    first = torch.cat([one, rest])
    return EdgePairs(
        source.contiguous(),
        target.contiguous(),
        reverse,
        row,
        topology.edges.target.back_offsets.long(),
        first,
        torch.cat([second, torch.full_like(rest, edges)]),
        torch.cat([lines, lines[apart]]),
        lines,
        first,
    )
