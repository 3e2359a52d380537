"""Where to draw what contains what: boxes in rows, and lines that pass between the boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

import networkx as nx

T = TypeVar("T")
Point = tuple[float, float]
#: The room of a line that passes through a row, where a box has 1.
LANE = 0.3
#: How far above and below its row a line runs straight up, so that it misses the boxes beside it.
STRAIGHT = 0.36


@dataclass(frozen=True)
class OrderDiagram(Generic[T]):
    """A Hasse diagram.

    Attributes:
        places: The centre (x, row) of each box; boxes of one row are at least 1 apart.
        lines: From a box to each box directly above it, as corners (x, y).
    """

    places: dict[T, Point]
    lines: list[list[Point]]


def order_diagram(items: Sequence[T], contains: Callable[[T, T], bool]) -> OrderDiagram[T]:
    """Place boxes in rows, each above all that it contains.

    A line to a box further up has a place of its own in the rows between, and the places in a row
    are ordered so that few lines cross.

    Args:
        items: What to draw; no two are equal.
        contains: `contains(a, b)`: whether a contains b; a partial order.

    Returns:
        Places of the boxes and corners of the lines.

    Example:
        >>> found = order_diagram([1, 2, 3, 6], lambda a, b: a % b == 0)
        >>> found.places
        {1: (0.0, 0.0), 2: (-0.5, 1.0), 3: (0.5, 1.0), 6: (0.0, 2.0)}
        >>> len(found.lines)
        4
    """
    number = range(len(items))
    order = nx.DiGraph()
    order.add_nodes_from(number)
    order.add_edges_from(
        (a, b) for a in number for b in number if a != b and contains(items[b], items[a])
    )
    order = nx.transitive_reduction(order)
    rank: dict[int, int] = {}
    for one in nx.topological_sort(order):
        rank[one] = max((rank[below] + 1 for below in order.predecessors(one)), default=0)
    chains = list(_chains(order, rank))  # fills rank with the places of lines
    links = [pair for chain in chains for pair in pairwise(chain)]
    rows = [[one for one in rank if rank[one] == level] for level in range(max(rank.values()) + 1)]
    rows = _with_few_crossings(rows, links)
    x = _across(rows, len(items))
    places = {items[one]: (x[one], float(rank[one])) for one in number}
    lines = [_line([(x[one], float(rank[one])) for one in chain]) for chain in chains]
    return OrderDiagram(places, lines)


def _chains(order: nx.DiGraph, rank: dict[int, int]) -> Iterator[list[int]]:
    """The nodes of each line: two boxes, and a new node in every row between them."""
    for low, high in sorted(order.edges):
        between = range(len(rank), len(rank) + rank[high] - rank[low] - 1)
        rank.update({new: rank[low] + k for k, new in enumerate(between, 1)})
        yield [low, *between, high]


def _line(centres: Sequence[Point]) -> list[Point]:
    """The corners of a line from the centre of its first box to that of its last."""
    found = [(x, row + up) for x, row in centres for up in (-STRAIGHT, 0, STRAIGHT)]
    return found[1:-1]


def _across(rows: Sequence[Sequence[int]], boxes: int) -> dict[int, float]:
    """Where each node is in its row; rows are centred."""
    x: dict[int, float] = {}
    for row in rows:
        rooms = [1.0 if one < boxes else LANE for one in row]
        left = -sum(rooms) / 2
        for one, room in zip(row, rooms, strict=True):
            x[one] = left + room / 2
            left += room
    return x


def _with_few_crossings(rows: list[list[int]], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Order rows by the mean place of the neighbours, then exchange neighbours while that helps."""
    near: dict[int, list[int]] = {one: [] for row in rows for one in row}
    for low, high in links:
        near[low].append(high)
        near[high].append(low)
    best, fewest = rows, _crossings(rows, links)
    for sweep in range(8):
        rows = [list(row) for row in rows]
        steps = range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1)
        for level in steps:
            place = {one: k / len(row) for row in rows for k, one in enumerate(row)}
            beside = set(rows[level - 1 if sweep % 2 == 0 else (level + 1) % len(rows)])

            def middle(
                one: int, beside: set[int] = beside, place: dict[int, float] = place
            ) -> float:
                found = [place[other] for other in near[one] if other in beside]
                return sum(found) / len(found) if found else place[one]

            rows[level].sort(key=middle)
        rows = _exchanged(rows, links)
        if (crossings := _crossings(rows, links)) < fewest:
            best, fewest = rows, crossings
    return best


def _exchanged(rows: list[list[int]], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Exchange two that are side by side as long as fewer lines cross."""
    fewest, better = _crossings(rows, links), True
    while better:
        better = False
        for row in rows:
            for k in range(len(row) - 1):
                row[k], row[k + 1] = row[k + 1], row[k]
                if (crossings := _crossings(rows, links)) < fewest:
                    fewest, better = crossings, True
                else:
                    row[k], row[k + 1] = row[k + 1], row[k]
    return rows


def _crossings(rows: Sequence[Sequence[int]], links: Sequence[tuple[int, int]]) -> int:
    """How many pairs of lines cross between two rows."""
    place = {one: (level, k) for level, row in enumerate(rows) for k, one in enumerate(row)}
    found = 0
    for number, (low, high) in enumerate(links):
        (level, a), (_, b) = place[low], place[high]
        for other_low, other_high in links[:number]:
            (other, c), (_, d) = place[other_low], place[other_high]
            found += level == other and (a - c) * (b - d) < 0
    return found
