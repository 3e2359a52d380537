"""Graphs in three parts, with edges about 1 long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data.files.collection import Graphs
from symgnn.data.rescaling import LENGTHS, common_scale, multiplied, stamp
from symgnn.data.task import Splits, Task


def splits(
    graphs: Sequence[Data],
    *,
    task: Task | None = None,
    fractions: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    scale: float | None = None,
) -> Splits:
    """Graphs to train on, to choose by and to measure on, drawn at random.

    Classes of graphs are divided in equal parts, as nearly as their numbers allow. The graphs given
    are not changed; those of the splits have their coordinates multiplied by `scale`.

    Args:
        graphs: as `read` gives them, or any PyG graphs with `pos`, `edge_index` and `y`.
        task: what `y` is; of graphs from `read`, what they know themselves.
        fractions: how much goes into each part; they add up to 1.
        seed: the same seed divides the same graphs in the same way.
        scale: 1.0 for coordinates as they are; if left out, the number that makes the median edge
            of the training graphs 1 long, to three digits.
    """
    known = graphs if isinstance(graphs, Graphs) else Graphs(graphs)
    task = task or known.task
    if task is None:
        unknown = "task: is not known; pass columns to `read`, or task=Task(...)"
        raise ValueError(known.unclear or unknown)
    for graph in known:
        if graph.pos is None or graph.edge_index is None:
            what = "pos" if graph.pos is None else "edge_index"
            raise ValueError(f"{what}: {getattr(graph, 'name', 'a graph')} has none; give it")
        if graph.y is None:
            raise ValueError(
                f"y: {getattr(graph, 'name', 'a graph')} has none; every graph needs it"
            )
    parts = [
        [known[index] for index in indices]
        for indices in divide(labels_of(known, task), check_fractions(fractions), seed)
    ]
    if scale is None:
        scale = unit_scale(parts[0])
    elif not isinstance(scale, int | float) or not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale: is {scale!r}; give a positive number, 1.0 to change nothing")
    train, validation, test = ([scaled(graph, scale, task) for graph in part] for part in parts)
    in_all = common_scale([train])
    about: dict[str, Any] = {
        "graphs": len(known),
        "skipped": list(known.skipped),
        "seed": seed,
        "fractions": [float(fraction) for fraction in fractions],
        "read": {**known.options, "scale": in_all},
    }
    return Splits(train, validation, test, task, in_all, about)


def check_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    """Three parts of a whole."""
    try:
        values = tuple(float(fraction) for fraction in fractions)
    except (TypeError, ValueError):
        raise ValueError(
            f"fractions: are {fractions!r}; give three, such as 0.8, 0.1, 0.1"
        ) from None
    if len(values) != 3 or min(values) < 0 or abs(sum(values) - 1) > 1e-6 or not values[0]:
        raise ValueError(
            f"fractions: are {list(fractions)}; give three that add up to 1, such as 0.8, 0.1, 0.1"
        )
    return values


def labels_of(graphs: Sequence[Data], task: Task) -> list[int]:
    """The class of each graph, 0 for all if graphs have none."""
    if task.level != "graph" or task.kind != "classification":
        return [0] * len(graphs)
    return [int(graph.y) for graph in graphs]


def divide(
    labels: Sequence[int], fractions: tuple[float, float, float], seed: int
) -> list[list[int]]:
    """Indices of the three parts, each sorted, with the same mixture of labels."""
    sizes = part_sizes(len(labels), fractions)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed)).tolist()
    count: dict[int, int] = {}
    for label in labels:
        count[label] = count.get(label, 0) + 1
    # the r-th of m graphs of a class stands at (r + 1/2) / m, so a cut takes as much of each class
    seen: dict[int, int] = {}
    place: dict[int, float] = {}
    for index in order:
        label = labels[index]
        place[index] = (seen.get(label, 0) + 0.5) / count[label]
        seen[label] = seen.get(label, 0) + 1
    order.sort(key=place.__getitem__)
    first, second = sizes[0], sizes[0] + sizes[1]
    return [sorted(order[:first]), sorted(order[first:second]), sorted(order[second:])]


def part_sizes(count: int, fractions: tuple[float, float, float]) -> list[int]:
    """How many of `count` each part gets: rounded, and at least 1 where a part is asked for."""
    wanted = sum(fraction > 0 for fraction in fractions)
    if count < wanted:
        raise ValueError(f"fractions: {count} graphs cannot be divided into {wanted} parts")
    sizes = [max(round(fraction * count), 1) if fraction else 0 for fraction in fractions]
    while sum(sizes) != count:
        step = 1 if sum(sizes) < count else -1
        sizes[sizes.index(max(sizes))] += step
    return sizes


def unit_scale(graphs: Sequence[Data]) -> float:
    """1 / the median length of the edges, to three digits; 1 if no edge has a length."""
    lengths = torch.cat([edge_lengths(graph) for graph in graphs])
    lengths = lengths[lengths > 0]
    return float(f"{1 / float(lengths.median()):.3g}") if len(lengths) else 1.0


def edge_lengths(graph: Data) -> Tensor:
    """`[E]`."""
    source, target = graph.edge_index
    return (graph.pos[source] - graph.pos[target]).norm(dim=1)


def scaled(graph: Data, scale: float, task: Task) -> Data:
    """A copy with its coordinates and velocities, and targets that are lengths, times `scale`.

    It carries the scale that it then has, in all: `pos_scale`.
    """
    copy = graph.clone()
    for name in LENGTHS:
        if name in graph:
            copy[name] = graph[name] * scale
    if task.lengths:
        copy.y = graph.y * scale
    return stamp(copy, multiplied(graph, scale))
