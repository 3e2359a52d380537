"""The targets as rows, each with the nodes and the graph that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from symgnn.data import Task
from symgnn.discovery._given_data import LEAST_GRAPHS
from symgnn.discovery._packing import Pack

#: At most so many rows of nodes or edges are fitted, the same number from each graph.
MOST_ROWS = 800


@dataclass(frozen=True)
class TargetRows:
    """Targets `y [R, t]`, of mean 0 and variance 1; classes are columns of 0 and 1, standardised.

    Of vectors, one or more in a row `[R, v n]`, each is divided by its root mean square and keeps
    its mean.
    """

    place: str  # "graph", "node" or "edge"
    y: Tensor
    graph: Tensor  # [R], the graph of each row
    nodes: Tensor  # [2, R], the nodes of an edge; a node twice; zeros for a graph
    size: int  # the number of graphs
    vectors: bool = False
    deviation: float | None = None  # of one target in its units, root mean square of vectors

    def per_graph(self, values: Tensor) -> Tensor:
        """The mean over the rows of each graph, `[R] -> [G]`."""
        total = values.new_zeros(self.size).index_add_(0, self.graph, values)
        return total / torch.bincount(self.graph, minlength=self.size).clamp(min=1)

    def some(self, most: int, seed: int) -> Tensor:
        """At most so many rows of each graph, drawn at random, as a mask `[R]`."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.graph), generator=generator)
        order = order[torch.argsort(self.graph[order], stable=True)]  # graph by graph
        counts = torch.bincount(self.graph, minlength=self.size)
        first = (counts.cumsum(0) - counts)[self.graph[order]]
        chosen = torch.zeros(len(order), dtype=torch.bool)
        chosen[order] = torch.arange(len(order)) - first < most
        return chosen

    def folds(self, count: int, seed: int) -> Tensor:
        """A fold for each row, the same for all rows of a graph, `[R]`."""
        generator = torch.Generator().manual_seed(seed)
        return (torch.randperm(self.size, generator=generator) % count)[self.graph]


def rows_of_each(graphs: int, task: Task, dimension: int) -> int:
    """At most so many rows of a graph are fitted."""
    vectors = task.place != task.level
    return max(1, MOST_ROWS // graphs // (dimension if vectors else 1))


def target_rows(
    graphs: Sequence[Data], task: Task, pack: Pack, generator: Generator, times: int = 1
) -> TargetRows:
    """The rows of the targets of graphs, or so many times as many as are fitted."""
    vectors = task.place != task.level
    found, owners, nodes = [], [], []
    most = times * rows_of_each(len(graphs), task, pack.dimension)
    for number, (graph, start) in enumerate(zip(graphs, pack.starts.tolist(), strict=True)):
        y = graph.y.reshape(-1) if task.kind == "classification" else graph.y.double()
        present = torch.ones(len(y), dtype=torch.bool)
        present &= (y >= 0) if task.kind == "classification" else y.isfinite().all(1)
        chosen = present.nonzero().flatten()
        if len(chosen) > most:
            chosen = chosen[torch.randperm(len(chosen), generator=generator)[:most]]
        if task.level == "coordinates":
            y = y - graph.pos.double()
        found.append(y[chosen])
        owners.append(torch.full((len(chosen),), number))
        ends = torch.zeros(2, len(chosen), dtype=torch.long)
        if task.place == "edge":
            ends = graph.edge_index[:, chosen]
        elif task.place == "node":
            ends = torch.stack([chosen, chosen])
        nodes.append(ends + start)
    labelled = sum(len(rows) > 0 for rows in found)
    if labelled < LEAST_GRAPHS:
        raise ValueError(
            f"y: {labelled} of {len(graphs)} graphs have a target that is a number; "
            f"at least {LEAST_GRAPHS} are needed to say anything"
        )
    y = torch.cat(found)
    if task.kind == "classification":
        y = torch.nn.functional.one_hot(y, len(task.classes)).double()
        y = y[:, y.any(0)]
    deviation = None
    if vectors:
        each = y.view(len(y), -1, pack.dimension)
        sizes = each.square().mean((0, 2)).sqrt()  # of each vector in a row
        if not bool((sizes > 0).all()):
            same = "pos" if task.level == "coordinates" else "0"
            raise ValueError(f"y: is {same} in all graphs; give targets that differ")
        deviation = float(sizes[0]) if len(sizes) == 1 else None
        y = (each / sizes.unsqueeze(1)).flatten(1)
    else:
        spread = (y - y.mean(0)).square().mean(0).sqrt()
        if not bool((spread > 1e-12 * y.abs().amax(0).clamp(min=1e-300)).any()):
            raise ValueError("y: is the same in all graphs; give targets that differ")
        if task.kind == "regression" and y.shape[1] == 1:
            deviation = float(spread)
        y = (y - y.mean(0)) / torch.where(spread > 0, spread, 1.0)
    return TargetRows(
        *(task.place, y, torch.cat(owners), torch.cat(nodes, 1), len(graphs)),
        vectors=vectors,
        deviation=deviation,
    )
