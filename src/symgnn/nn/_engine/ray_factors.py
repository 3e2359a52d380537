"""The factors g and h of the rays in an update of product form: what vertices and neighbours add.

A node has a place for each factor as the vertex of a ray, then one for each as its neighbour (see
:func:`symgnn.nn._engine.plan.plan_of`). Only vertices with angles have rays, so what a vertex adds
is computed for these alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from symgnn.nn._engine.first_half import Given, graph_rows
from symgnn.nn._engine.rows import linear, plus_linear
from symgnn.nn._engine.values import lift

#: A value of nodes, with the numbers of its maps for the factors; None where it is not read.
Read = tuple[tuple[int | None, ...], Tensor]


def factor_width(given: Given) -> int:
    """The number of channels c; the bias has those of g and h, or of one if they are the same."""
    return len(given.bias) // _count(given)


def vertex_table(given: Given, vertex: Tensor, kind: torch.dtype) -> Tensor:
    """What some vertices add to the factors of all of their rays, with the bias `[V, 2 c]`."""
    table = graph_rows(given).to(kind)
    table = lift(table, vertex) if table.dim() > 1 else table
    for places, value in _read(given, slice(None, _count(given))):
        table = plus_linear(table, lift(value, vertex), _maps(places, value, given, kind))
    return table.expand(len(vertex), -1)


def neighbour_table(given: Given) -> Tensor:
    """What each node adds to the factors of the rays that lead to it `[N, 2 c]`."""
    table = None
    for places, value in neighbours_read(given):
        maps = _maps(places, value, given, given.bias.dtype)
        table = linear(value, maps) if table is None else plus_linear(table, value, maps)
    if table is None:
        return given.bias.new_zeros(given.topology.num_nodes, len(given.bias))
    return table


def neighbours_read(given: Given) -> list[Read]:
    """The values that neighbours are read for."""
    return _read(given, slice(_count(given), None))


def map_at(number: int | None, value: Tensor, given: Given, kind: torch.dtype) -> Tensor:
    """The map of a value at a place `[c, w]`; 0 where it is not read."""
    if number is None:
        return value.new_zeros(factor_width(given), value.shape[1], dtype=kind)
    return given.maps[number].to(kind)


def _maps(places: tuple[int | None, ...], value: Tensor, given: Given, kind: torch.dtype) -> Tensor:
    """The maps of a value for each factor, one beneath the other."""
    found = [map_at(number, value, given, kind) for number in places]
    return found[0] if len(found) == 1 else torch.cat(found)


def _count(given: Given) -> int:
    """The number of factors: 2, or 1 if g and h are the same."""
    return given.plan.factors


def _read(given: Given, part: slice) -> list[Read]:
    """The values that are read at some of the places."""
    terms = zip(given.plan.node, given.node, strict=True)
    found = [(term.inputs[part], value) for term, value in terms]
    return [(places, value) for places, value in found if any(k is not None for k in places)]
