"""Neighbour search that keeps every tie, so that the graph depends on the geometry alone.

A search that stops at exactly k neighbours has to choose among points at the same distance, and
the choice then depends on the numbering of the nodes or on the rounding of a rotation. Here all
points that tie are neighbours. Two distances tie if they differ by no more than
`64 * eps(pos.dtype) * extent` (`8 * eps * extent` for half types), where the extent is the largest
distance of a point of that graph from its centroid; for a graph far from the origin, where rounding
is coarser, `8 * eps * |centroid|` if that is more. The graph is therefore the same after a
rotation, a reflection, a shift or a renumbering of the nodes, unless a distance lies within
rounding of that tolerance itself.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from symgnn._argument_checks import check_at_least, check_count
from symgnn.graphs.budget import SMALL, require_memory

# Differences of distances that count as ties, in units of eps times the size of the coordinates.
_TIE = 64.0
# The least that covers the rounding of a rotation; 64 eps of bfloat16 would be half the extent.
_TIE_LEAST = 8.0
# Neighbours asked for beyond the k-th, to see whether the ties end there.
_SPARE = 8
# Squares of larger coordinates overflow in float64, in which all distances are computed.
_LARGEST = 1e150
# Rows per ball query: its answer is made of Python lists, too large to hold for all rows at once.
_CHUNK = 8192
# Bytes for each edge while a graph is made, and while further ties are looked for; measured.
_EACH = 70
_EACH_TIE = 120
# The tree may round a distance otherwise than we do, so it is asked for a little more.
_SLACK = 1.0 + 1e-12


def _check_pos(pos: Any) -> None:
    if not isinstance(pos, Tensor) or pos.dim() != 2 or pos.size(1) < 1:
        got = list(pos.shape) if isinstance(pos, Tensor) else type(pos).__name__
        raise ValueError(f"pos must be a tensor of shape [N, n] with n >= 1, got {got}")
    if pos.is_complex() or pos.dtype == torch.bool:
        raise ValueError(f"pos: is {pos.dtype}; convert it to a real floating type")
    bad = ~torch.isfinite(pos).all(dim=1)
    if bad.any():
        row = int(bad.nonzero()[0])
        raise ValueError(
            f"pos must be finite, got {pos[row].tolist()} in row {row}; drop or fix it"
        )
    largest = float(pos.detach().abs().max()) if pos.numel() else 0.0
    if largest > _LARGEST:
        raise ValueError(
            f"pos must be at most {_LARGEST:g}, got {largest:g}, whose square overflows; "
            "fix it, or give coordinates in a larger unit"
        )


def _sizes(pos: Tensor, batch: Tensor | None) -> list[int]:
    """Numbers of nodes of the graphs that have any, in order."""
    if batch is None:
        return [pos.size(0)] if pos.size(0) else []
    if not isinstance(batch, Tensor) or batch.dim() != 1 or batch.size(0) != pos.size(0):
        got = list(batch.shape) if isinstance(batch, Tensor) else type(batch).__name__
        raise ValueError(f"batch must be a tensor of shape [{pos.size(0)}] as pos, got {got}")
    if batch.is_floating_point() or batch.is_complex() or batch.dtype == torch.bool:
        raise ValueError(f"batch must hold integers, got {batch.dtype}; use batch.long()")
    if not batch.numel():
        return []
    if int(batch.min()) < 0:
        raise ValueError(f"batch must not be negative, got {int(batch.min())}; number from 0")
    falls = (batch[1:] < batch[:-1]).nonzero()
    if len(falls):
        row = int(falls[0]) + 1
        raise ValueError(
            f"batch must be sorted, got {int(batch[row])} after {int(batch[row - 1])} in row "
            f"{row}; sort the nodes by graph"
        )
    return torch.unique_consecutive(batch, return_counts=True)[1].tolist()


def _tolerance(points: np.ndarray, dtype: torch.dtype) -> float:
    """Difference up to which two distances between `points [N, n]`, rounded to `dtype`, tie."""
    # Integer coordinates are exact in float64, in which all distances are computed.
    info = torch.finfo(dtype if dtype.is_floating_point else torch.float64)
    # Summed in sorted order, so that not even the last bit depends on the order of the nodes.
    centre = np.sort(points, axis=0).mean(axis=0)
    extent = np.linalg.norm(points - centre, axis=1).max()
    inner = (_TIE if info.bits >= 32 else _TIE_LEAST) * extent
    return float(info.eps * max(inner, _TIE_LEAST * np.linalg.norm(centre)))


def _ball(
    tree: cKDTree, points: np.ndarray, rows: np.ndarray, limit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (target, source), `[E]` each: all sources within `limit [N]` of the targets `rows`."""
    targets, sources = [], []
    if len(rows) * len(points) * _EACH_TIE >= SMALL:
        found = tree.query_ball_point(points[rows], limit[rows] * _SLACK, return_length=True)
        require_memory(
            f"k: {len(rows):,} of {len(points):,} nodes have so many others at the distance of "
            "their k-th neighbour that there are {count} edges",
            int(found.sum()),
            _EACH_TIE,
            "remove nodes that are in the same place, or join nodes within a radius",
        )
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        found = tree.query_ball_point(points[part], limit[part] * _SLACK)
        count = np.fromiter(map(len, found), dtype=np.int64, count=len(part))
        target = np.repeat(part, count)
        source = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=count.sum())
        near = np.linalg.norm(points[source] - points[target], axis=1) <= limit[target]
        targets.append(target[near])
        sources.append(source[near])
    return np.concatenate(targets), np.concatenate(sources)


def _knn_pairs(points: np.ndarray, tie: float, k: int, loop: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (target, source), `[E]` each, of one graph; a node is always its own neighbour."""
    n = len(points)
    # Column 0 of the distances is the node itself, or one that coincides with it: 0 either way.
    kth = min(k - 1 if loop else k, n - 1)
    width = min(kth + 1 + _SPARE, n)
    require_memory(
        f"k: {k} neighbours of each of {n:,} nodes are {{count}} edges",
        n * width,
        _EACH,
        "give a smaller k",
    )
    tree = cKDTree(points, balanced_tree=False)
    distance, near = tree.query(points, k=np.arange(1, width + 1))
    limit = distance[:, kth] + tie
    kept = distance <= limit[:, None]
    unfinished = kept[:, -1] & (width < n)
    kept[unfinished] = False
    target, column = kept.nonzero()
    source = near[target, column]
    if unfinished.any():
        more_target, more_source = _ball(tree, points, unfinished.nonzero()[0], limit)
        target = np.concatenate([target, more_target])
        source = np.concatenate([source, more_source])
    return target, source


def _radius_pairs(points: np.ndarray, tie: float, r: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (target, source), `[E]` each, of one graph; a node is always its own neighbour."""
    # The bound, more than any distance, keeps the square of a huge r from overflowing.
    limit = min(r + tie, 2.0 * float(np.linalg.norm(np.ptp(points, axis=0))))
    tree = cKDTree(points, balanced_tree=False)
    if len(points) ** 2 * _EACH >= SMALL:
        require_memory(
            f"r: a radius of {r:g} joins {len(points):,} nodes by {{count}} edges",
            int(tree.count_neighbors(tree, limit)),
            _EACH,
            "give a smaller radius, or join each node to its nearest, k=8",
        )
    pairs = tree.sparse_distance_matrix(tree, limit * _SLACK, output_type="ndarray")
    pairs = pairs[pairs["v"] <= limit]
    return pairs["i"], pairs["j"]


def _build(
    pos: Tensor,
    batch: Tensor | None,
    loop: bool,
    search: Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]],
) -> Tensor:
    """Run `search(points, tie)` graph by graph and sort its pairs, `[2, E]`."""
    _check_pos(pos)
    sizes = _sizes(pos, batch)
    points = pos.detach().cpu().double().numpy()
    edges = [np.empty((2, 0), dtype=np.int64)]
    start = 0
    for size in sizes:
        part = points[start : start + size]
        target, source = search(part, _tolerance(part, pos.dtype))
        key = target.astype(np.int64) * size + source
        if not loop:
            key = key[target != source]
        key.sort()
        edges.append(np.stack([key % size, key // size]) + start)
        start += size
    return torch.from_numpy(np.concatenate(edges, axis=1)).to(pos.device)


def knn_graph(pos: Tensor, k: int, batch: Tensor | None = None, *, loop: bool = False) -> Tensor:
    """Edges to every node from its k nearest nodes of the same graph, ties with the k-th included.

    Args:
        pos: coordinates `[N, n]`.
        k: number of neighbours, at least 1. A node has more if several tie with the k-th, and
            fewer if its graph has at most k nodes.
        batch: graph of each node, `[N]`, sorted; one graph if not given.
        loop: whether a node is a neighbour of itself (then it counts as one of the k).

    Returns:
        `edge_index [2, E]`: row 0 the sources (the neighbours), row 1 the targets; sorted by
        target and then source, on the device of `pos`.

    Raises:
        ValueError: if an argument is out of its range, naming it, or if the edges do not fit into
            memory; they are counted before they are made.

    Example:
        >>> pos = torch.tensor([[0.0], [1.0], [3.0]])
        >>> symgnn.graphs.knn_graph(pos, k=1)
        tensor([[1, 0, 1],
                [0, 1, 2]])
    """
    k = check_count("k", k)
    return _build(pos, batch, loop, lambda points, tie: _knn_pairs(points, tie, k, loop))


def radius_graph(
    pos: Tensor, r: float, batch: Tensor | None = None, *, loop: bool = False
) -> Tensor:
    """Edges between all nodes of the same graph at distance at most r.

    Args:
        pos: coordinates `[N, n]`.
        r: radius, at least 0. There is no limit on the number of neighbours.
        batch: graph of each node, `[N]`, sorted; one graph if not given.
        loop: whether a node is a neighbour of itself.

    Returns:
        `edge_index [2, E]`, sorted by target and then source, on the device of `pos`.

    Raises:
        ValueError: if an argument is out of its range, naming it, or if the edges do not fit into
            memory; they are counted before they are made.

    Example:
        >>> pos = torch.tensor([[0.0], [1.0], [3.0]])
        >>> symgnn.graphs.radius_graph(pos, r=1.0)
        tensor([[1, 0],
                [0, 1]])
    """
    r = check_at_least("r", r, 0)
    return _build(pos, batch, loop, lambda points, tie: _radius_pairs(points, tie, r))


def _rejoin(data: Data, build: Callable[[Tensor, Tensor | None], Tensor]) -> Data:
    """Give `data` the edges `build(pos, batch)`, and drop the features of the old ones."""
    if data.pos is None:
        raise ValueError("data.pos is missing; set it to the coordinates, of shape [N, n]")
    edge_index = build(data.pos, data.batch)
    data.edge_index = edge_index
    for name in ("edge_attr", "edge_weight", "edge_type", "angle_attr", "ray_ranks", "topology"):
        data[name] = None
    if isinstance(data, Batch) and hasattr(data, "_slice_dict"):
        # A batch remembers where each graph's edges begin, to take itself apart again.
        count = torch.bincount(data.batch[edge_index[1]], minlength=data.num_graphs).cpu()
        slices = torch.cat([count.new_zeros(1), count.cumsum(0)])
        data._slice_dict = {**data._slice_dict, "edge_index": slices}
        data._inc_dict = {**data._inc_dict, "edge_index": data.ptr[:-1].cpu()}
    return data


class KNNGraph(BaseTransform):
    """Transform that joins each node to its k nearest neighbours, as :func:`knn_graph` does.

    It sets `edge_index` of a `Data` or `Batch`. `edge_attr` and `edge_weight` of previous edges are
    removed (set to None).

    Example:
        >>> from torch_geometric.data import Data
        >>> symgnn.graphs.KNNGraph(k=1)(Data(pos=torch.tensor([[0.0], [1.0]]))).edge_index
        tensor([[1, 0],
                [0, 1]])
    """

    def __init__(self, k: int, loop: bool = False) -> None:
        self.k = check_count("k", k)
        self.loop = loop

    def forward(self, data: Data) -> Data:
        """Set `data.edge_index [2, E]`."""
        return _rejoin(data, lambda pos, batch: knn_graph(pos, self.k, batch, loop=self.loop))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k}, loop={self.loop})"


class RadiusGraph(BaseTransform):
    """Transform that joins all nodes at distance at most r, as :func:`radius_graph` does.

    It sets `edge_index` of a `Data` or `Batch`. `edge_attr` and `edge_weight` of previous edges are
    removed (set to None).

    Example:
        >>> from torch_geometric.data import Data
        >>> symgnn.graphs.RadiusGraph(r=1.0)(Data(pos=torch.tensor([[0.0], [1.0]]))).edge_index
        tensor([[1, 0],
                [0, 1]])
    """

    def __init__(self, r: float, loop: bool = False) -> None:
        self.r = check_at_least("r", r, 0)
        self.loop = loop

    def forward(self, data: Data) -> Data:
        """Set `data.edge_index [2, E]`."""
        return _rejoin(data, lambda pos, batch: radius_graph(pos, self.r, batch, loop=self.loop))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(r={self.r}, loop={self.loop})"
