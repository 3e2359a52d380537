"""Shortest tours: the second test set, and what the nearest neighbours alone give."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data._dataset_store import PathLike, find
from symgnn.data._packed_graphs import PackedGraphs
from symgnn.data._tsp import FILES, SCALE, BuildTour, read_instances, tours_packed

#: As many instances of each of the benchmark's test and validation files.
MOST = 100


def benchmark_tours(source: PathLike | None = None) -> PackedGraphs | None:
    """Problems of the benchmark, 50 to 500 nodes, from its test and validation files.

    None where the files are not in `source`, or else in SYMGNN_DATA or the cache.
    """
    paths = [find(FILES[split], local=source) for split in ("test", "validation")]
    found = [each for path in paths if path is not None for each in read_instances(path, MOST)]
    if not found:
        return None
    return PackedGraphs(BuildTour(tours_packed(found), False, SCALE), np.arange(len(found)))


def nearest_f1(graphs: Iterable[Data], k: int = 2) -> float:
    """F1 of the edges if each node is joined from its `k` nearest: the benchmark's baseline."""
    hits = both = 0
    for graph in graphs:
        chosen = nearest_edges(graph.pos, graph.edge_index, k)
        hits += int((chosen & (graph.y == 1)).sum())
        both += int(chosen.sum()) + int((graph.y == 1).sum())
    return 2 * hits / both


def nearest_edges(pos: Tensor, edge_index: Tensor, k: int) -> Tensor:
    """Which edges come from one of the `k` nearest neighbours of their target, `[E]`."""
    source, target = edge_index
    lengths = (pos[source] - pos[target]).norm(dim=1)
    order = torch.argsort(lengths, stable=True)
    order = order[torch.argsort(target[order], stable=True)]  # by target, then by length
    sorted_target = target[order]
    first = torch.searchsorted(sorted_target, sorted_target)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - first
    return rank < k
