"""Measuring the averages of training graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.graphs import Topology
from symgnn.nn.inputs import Measure, d2, kappa, position, theta
from symgnn.nn.named_networks import network_named
from symgnn.nn.spec import Network, Spec
from symgnn.nn.standardising import FEATURES, TERMS, Averages, Moments, measures_read
from symgnn.nn.state import measure, start

#: How many graphs are looked at, at most.
SAMPLE = 512
#: How many graphs weights are rescaled on, at most, and how many angles and edges these have.
EXAMPLE_GRAPHS, EXAMPLE_ANGLES = 16, 400_000
#: Standardised features are at most this far from 0 in the training graphs. A rare element of
#: one-hot columns would be at 30, and networks that multiply values would raise it to powers.
FARTHEST = 5.0
#: The attributes of a graph that networks read.
READ = ("pos", "edge_index", "edge_shift", "x", "z", "vel", "part", "edge_attr", "angle_attr", "u")
#: The measures of all blocks of symgnn, and those of SDGN on scaled coordinates.
KNOWN = {
    "x": (Spec("any"), position),
    "d2": (Spec("any"), d2),
    "theta": (Spec("any"), theta),
    "kappa": (Spec("any"), kappa),
    "d2 at scaling 1": (Spec("scaled", scaling=1.0), d2),
}


def averages(
    graphs: Iterable[Data],
    architecture: str | Spec | Network | None = None,
    *,
    sample: int = SAMPLE,
    drop: Sequence[str] = (),
) -> Averages:
    """Compute the averages of training graphs, for `build(..., averages=...)`.

    Args:
        graphs: A list of PyG `Data`, or any sequence of them, such as a split.
        architecture: The network for which they are computed, as for :func:`symgnn.nn.build`; if
            not given, they are valid for every block of symgnn.
        sample: The maximum number of graphs to use; if there are more, every k-th is used.
        drop: Features that are ignored, such as `["x"]`.

    Returns:
        The averages; `.as_dict()` returns them as plain numbers.

    Example:
        >>> import symgnn
        >>> solids = symgnn.data.polytopes(3)
        >>> known = symgnn.nn.averages(solids)
        >>> round(known.terms["edge->node"], 2)
        3.6
        >>> model = symgnn.nn.build("dgn", outputs=5, averages=known)
    """
    network = None if architecture is None else network_named(architecture, {})
    measures = KNOWN if network is None else measures_read(network)
    envelope = None if network is None else network.layer.envelope
    angles = any(each.domain == "angle" for _, each in measures.values())
    listed = network is None or any(spec.angle for spec in (*network.first, network.layer))
    counts = {name: [0.0, 0] for name in TERMS}
    totals: dict[tuple[str, str], _Total] = {}
    chosen = _sample(graphs, sample)
    for graph in chosen:
        topology = Topology.of(graph, angles=True, whole=angles)
        _count(counts, topology, None if envelope is None else _fading(envelope, graph, topology))
        for key, (spec, each) in measures.items():
            rows = _measured(each, spec, graph.pos.double(), topology)
            totals.setdefault(("measures", key), _Total()).add(rows)
        for value, name in FEATURES.items():
            given = None if name in drop else getattr(graph, name, None)
            if isinstance(given, Tensor) and given.dim() == 2:
                totals.setdefault(("features", value), _Total()).add(given.double())
    terms = {name: total / rows for name, (total, rows) in counts.items() if total and rows}
    found: dict[str, dict[str, Moments]] = {"measures": {}, "features": {}}
    for (kind, key), total in totals.items():
        found[kind][key] = total.moments(FARTHEST if kind == "features" else None)
    return Averages(terms, found["measures"], found["features"], _example(chosen, drop, listed))


def _example(graphs: Sequence[Data], drop: Sequence[str], angles: bool) -> Data | None:
    """Some graphs as a batch, from all over the list: as many as have few edges, and angles where
    these are read, together; None if already one has many.
    """
    kept: list[Data] = []
    room = EXAMPLE_ANGLES
    chosen = [graphs[k] for k in range(0, len(graphs), max(1, len(graphs) // EXAMPLE_GRAPHS))]
    for number in _scattered(len(chosen)):
        graph = chosen[number]
        room -= graph.num_edges
        if angles:
            room -= Topology.of(graph, angles=True, whole=False).num_angles
        if room < 0:
            break
        read = {name: getattr(graph, name, None) for name in READ if name not in drop}
        kept.append(Data(**{name: value for name, value in read.items() if value is not None}))
    return Batch.from_data_list(kept) if kept else None


def _scattered(count: int) -> list[int]:
    """The numbers below `count`, so that the first few of them are far apart."""
    bits = max(count - 1, 1).bit_length()
    turned = sorted(range(2**bits), key=lambda k: f"{k:0{bits}b}"[::-1])
    return [k for k in turned if k < count]


def _sample(graphs: Any, most: int) -> list[Data]:
    """The graphs that are looked at."""
    if isinstance(graphs, Data) and not hasattr(graphs, "ptr"):
        graphs = [graphs]
    known = graphs if hasattr(graphs, "__getitem__") else list(graphs)
    count = known.num_graphs if hasattr(known, "num_graphs") else len(known)
    if not count:
        raise ValueError("graphs: is empty; give the training graphs")
    return [known[k] for k in range(0, count, max(1, math.ceil(count / most)))]


def _fading(envelope: Measure, graph: Data, topology: Topology) -> dict[str, float]:
    """The sums of the envelopes of edges, and of the products of those of angles."""
    state, _ = start(Spec("any"), graph.pos.double(), topology)
    rays = envelope.function(*state.ray_ends)
    total, squares = (
        rays.new_zeros(topology.num_nodes).index_add(0, topology.ray_vertex, each)
        for each in (rays, rays.square())
    )
    angles = float((total.square() - squares).sum())
    return {"edge": float(envelope.function(*state.ends).sum()), "angle": angles}


def _count(
    counts: dict[str, list[Any]], topology: Topology, fading: dict[str, float] | None = None
) -> None:
    """Add the terms of each reduction of a graph, and the rows that they are reduced to.

    With `fading`, edges and angles count as much as their envelope.
    """
    sizes: dict[str, float] = {
        "node": topology.num_nodes,
        "edge": topology.num_edges,
        "angle": topology.num_angles,
        "graph": topology.num_graphs,
    }
    for name, known in counts.items():
        fine, _, coarse = name.partition("->")
        known[0] += sizes[fine] if fading is None else fading.get(fine, sizes[fine])
        known[1] += topology.num_rays if name == "angle->edge" else sizes[coarse]


def _measured(given: Measure, spec: Spec, pos: Tensor, topology: Topology) -> Tensor:
    """A measure of the coordinates `[rows, w]`, scaled as the specification does."""
    state, _ = start(spec, pos, topology)
    return measure(given, state)


class _Total:
    """Sums of numbers and of their squares, column by column, about the first mean."""

    def __init__(self) -> None:
        self.rows = 0
        self.centre: Tensor | None = None
        self.lowest: Tensor | Any = math.inf
        self.highest: Tensor | Any = -math.inf
        self.first: Tensor | Any = 0.0
        self.second: Tensor | Any = 0.0

    def add(self, rows: Tensor) -> None:
        """Add rows `[R, w]`; numbers that are not finite are refused where graphs are checked."""
        if self.centre is None:
            self.centre = rows.mean(0) if len(rows) else rows.new_zeros(rows.shape[1])
        if not len(rows):
            return
        away = rows - self.centre
        self.rows += len(rows)
        self.lowest = torch.minimum(away.amin(0), torch.as_tensor(self.lowest))
        self.highest = torch.maximum(away.amax(0), torch.as_tensor(self.highest))
        self.first = self.first + away.sum(0)
        self.second = self.second + away.square().sum(0)

    def moments(self, farthest: float | None = None) -> Moments:
        """Mean and deviation; a constant has its size for a deviation, or 1 if it is 0. With
        `farthest`, the deviation is so large that no number is more deviations from the mean.
        """
        assert self.centre is not None
        shift = self.first / max(self.rows, 1)
        mean = self.centre + shift
        deviation = (self.second / max(self.rows, 1) - shift.square()).clamp(min=0).sqrt()
        size = torch.where(mean == 0, 1.0, mean.abs())
        deviation = torch.where(deviation > 1e-6 * size, deviation, size)
        if farthest is not None and self.rows:
            distance = torch.maximum(self.highest - shift, shift - self.lowest)
            deviation = torch.maximum(deviation, distance / farthest)
        return tuple(mean.tolist()), tuple(deviation.tolist())
