"""The vertices of stars in pieces that fit into the processor's cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from symgnn.graphs import Topology
from symgnn.nn._engine.moment_sums import Layout
from symgnn.nn._engine.policy import policy


class Tile(NamedTuple):
    """Some vertices of a group."""

    side: int  # their degree with padding
    few: bool  # whether they have few rays
    vertices: slice
    rows: slice  # among all rows
    many: slice  # of vertices with many rays: among theirs
    grams: slice  # of vertices with few rays: among the pairs of theirs
    neighbour: Tensor  # the neighbour of each row
    ray: Tensor  # the ray of each row
    there: Tensor | None  # 1 for rays, 0 for padding `[V, D, 1]`; None without padding

    @property
    def shape(self) -> tuple[int, int]:
        """The number of vertices, and their degree."""
        return self.vertices.stop - self.vertices.start, self.side


def kept_tiles(topology: Topology) -> dict[Any, Any]:
    """The tiles that are known of a topology."""
    known: dict[Any, Any] = topology.__dict__.setdefault("_star_tiles", {})
    return known


def tiles_of(layout: Layout, width: int, kind: torch.dtype) -> list[Tile]:
    """The tiles for factors of a width, made once and kept with the stars."""
    size, known = policy().tile, layout.tiles
    key = (size, layout.split, layout.counts, width, kind)
    if key not in known:
        with torch.inference_mode(False):  # it may be used in a backward pass later on
            known[key] = _tiles(layout, width, size, kind)
    found: list[Tile] = known[key]
    return found


def _tiles(layout: Layout, width: int, size: int, kind: torch.dtype) -> list[Tile]:
    few_rows, stars = layout.few_rows, layout.stars
    p, features = len(layout.counts), sum(layout.counts)
    found: list[Tile] = []
    vertex = row = gram = 0
    for number, (vertices, side) in enumerate(stars.sizes):
        few = number < layout.split
        each = max(1, size // (width * (p * side if few else max(side, features))))
        for start in range(0, vertices, each):
            count = min(each, vertices - start)
            rows = slice(row, row + count * side)
            squares = slice(gram, gram + (count * side * side if few else 0))
            many = slice(rows.start - few_rows, rows.stop - few_rows)
            here: Any = None
            if stars.padded[number]:
                here = stars.there[rows].to(kind).view(count, side, 1)
            vertex_part = slice(vertex, vertex + count)
            read = stars.neighbour[rows], stars.ray[rows]
            found.append(Tile(side, few, vertex_part, rows, many, squares, *read, here))
            vertex, row, gram = vertex_part.stop, rows.stop, squares.stop
    return found
