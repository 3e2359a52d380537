"""Parts of a graph for computing in pieces: consecutive vertices with their edges or angles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from symgnn.graphs.movement import AngleRays, EdgeEnds, Movement


class Cut(NamedTuple):
    """Some consecutive vertices with all their rays and angles: their numbers."""

    vertices: slice
    rays: slice
    angles: slice


class EdgeCut(NamedTuple):
    """Some consecutive vertices with all edges that end there: their numbers, by target."""

    vertices: slice
    edges: slice


class EdgePart(NamedTuple):
    """Some consecutive vertices with the M edges that end there, sorted by their target."""

    edges: Tensor  # [M], their numbers
    ends: Tensor  # [2 M], 2 i for the target i of each, and 2 j + 1 for its source j
    target: Movement  # from the targets, which are numbered from 0, to these edges


class Part(NamedTuple):
    """A cut with the pairs of its rays, which are numbered from 0."""

    number: int
    cut: Cut
    pairs: AngleRays


def angle_cuts(first_ray: Tensor, most: int) -> list[Cut]:
    """As many consecutive vertices at a time as have at most that many angles, or one vertex.

    Args:
        first_ray: `[N + 1]`, the rays of vertex i are numbered from `first_ray[i]` to
            `first_ray[i + 1]`.
        most: The number of angles.
    """
    first = _numpy(first_ray)
    degree = np.diff(first)
    first_angle = np.concatenate([[0], np.cumsum(degree * (degree - 1))])
    return [
        Cut(
            slice(start, stop),
            slice(int(first[start]), int(first[stop])),
            slice(int(first_angle[start]), int(first_angle[stop])),
        )
        for start, stop in _groups(first_angle, most)
    ]


def edge_cuts(first_edge: Tensor, most: int) -> list[EdgeCut]:
    """As many consecutive vertices at a time as at most that many edges end at, or one vertex.

    Args:
        first_edge: `[N + 1]`, the edges that end at i are numbered from `first_edge[i]` to
            `first_edge[i + 1]`, in the order of their targets.
        most: The number of edges.
    """
    first = _numpy(first_edge)
    return [
        EdgeCut(slice(start, stop), slice(int(first[start]), int(first[stop])))
        for start, stop in _groups(first, most)
    ]


def part_of_edges(edges: EdgeEnds, cut: EdgeCut) -> EdgePart:
    """The edges that end at the vertices of a cut."""
    first, last = cut.vertices.start, cut.vertices.stop
    starts = edges.target.back_offsets[first : last + 1] - cut.edges.start
    found = edges.target.back_reads[cut.edges]
    target, source = (end.reads.index_select(0, found) for end in edges[:2])
    ends = torch.stack([2 * target, 2 * source + 1], 1).flatten()
    places = torch.arange(len(found), device=found.device, dtype=found.dtype)
    return EdgePart(found, ends, Movement(target - first, target[:0], places, starts))


def _numpy(offsets: Tensor) -> np.ndarray:
    """In numpy: reading single numbers of tensors is slow, and cannot be recorded."""
    return (offsets if offsets.is_cpu else offsets.cpu()).numpy().astype(np.int64)


def _groups(first: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive things, from and to, that have at most so many parts, or are one thing.

    Those of thing i are numbered from `first[i]` to `first[i + 1]`. Of nothing, one empty group.
    """
    start = 0
    if len(first) == 1:
        yield 0, 0
    while start < len(first) - 1:
        stop = int(np.searchsorted(first, first[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        yield start, stop
        start = stop
