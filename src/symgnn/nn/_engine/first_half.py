"""The first linear map of an additive form, applied per input on its own domain.

    hidden = bias + own W_own^T + lift(node W_node^T + lift(graph W_graph^T)) + ...

Each input is multiplied by its columns W of the first linear map on the rows of its own domain: a
node value on N rows instead of E or A. The bias and the terms of graphs are added to the term of
the first node input; the sum is gathered to edges, or to rays and from there to angles. If the last
linear map of the update that computed an own value is deferred, `own = last(before)`, W is
multiplied by that map and applied to `before`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.graphs import Movement, Topology
from symgnn.nn._engine.plan import Plan, Term
from symgnn.nn._engine.rows import Product, angle_rays, assemble, few, linear, move, plus_linear


class Given(NamedTuple):
    """The tensors of an update on a graph, of an additive form."""

    plan: Plan
    domain: str
    topology: Topology
    maps: Sequence[Tensor]  # the columns of the first map `[h, w]` of each input
    bias: Tensor  # of the first map, with that of folded maps `[h]`
    own: Sequence[Product]  # values on the domain of the update, and their maps
    graph: Sequence[Tensor]  # the value of each term `[rows of its domain, w]`
    node: Sequence[Tensor]
    ray: Sequence[Tensor]
    some: Sequence[tuple[Tensor, Tensor, Tensor]] = ()  # values on some rows, their maps, the rows


def first_half(given: Given) -> Tensor:
    """The hidden rows of an update before the first activation, `[rows, h]`."""
    plan, topology, domain, hidden = given.plan, given.topology, given.domain, given.bias
    if plan.climbs and domain == "node":
        hidden = graph_rows(given)
    elif plan.climbs:
        if domain != "angle" or not few(hidden, topology.num_angles):
            return assemble(rows_below(given), movement_up(given), given.own)
        hidden = _few_angles(given)
    for value, map in given.own:
        hidden = plus_linear(hidden, value, map)
    for value, map, rows in given.some:
        hidden = hidden.expand(topology.size(domain), -1)
        added = linear(value, map)
        hidden = hidden.index_add(0, rows, added.to(hidden.dtype))
    return hidden if hidden.dim() > 1 else hidden.expand(topology.size(domain), -1)


def graph_rows(given: Given) -> Tensor:
    """The bias and what graphs add, on nodes `[N, h]`, or the bias alone `[h]`."""
    added = given.bias
    if not given.graph:
        return added
    for term, value in zip(given.plan.graph, given.graph, strict=True):
        added = plus_linear(added, value, beneath(term, given.maps))
    if few(added, given.topology.num_nodes):
        return added.index_select(0, given.topology.batch)
    return move(added, given.topology.graphs)


# ------------------------------------------------------------------ few rows

# An operation on a few rows takes as long as its start: as few operations as possible, all of them
# with derivatives that PyTorch itself knows.


def _few_angles(given: Given) -> Tensor:
    """The sum of the parts of nodes and rays, for angles `[A, h]`."""
    topology, two = given.topology, given.plan.ends == 2
    tables = _by_place(given.plan.node, given.node, given.maps, given.plan.places)
    first = graph_rows(given)
    index = (topology.ray_vertex, topology.ray_neighbour)
    rays = _by_place(given.plan.ray, given.ray, given.maps, given.plan.ends)
    if two:
        at_vertex, _, of_first, of_second = tables
    else:
        (at_vertex, of_first), of_second = tables, []
    low = _lifted_sum(first, zip((at_vertex, of_first), index, strict=True))
    for value, map in rays[0]:
        low = plus_linear(low, value, map)
    first_ray, second_ray = angle_rays(topology)
    hidden = low.index_select(0, first_ray) if low.dim() > 1 else low
    if not two:
        return hidden
    other = None
    for value, map in of_second:
        other = linear(value, map) if other is None else plus_linear(other, value, map)
    other = None if other is None else other.index_select(0, index[1])
    for value, map in rays[1]:
        other = linear(value, map) if other is None else plus_linear(other, value, map)
    assert other is not None
    return hidden + other.index_select(0, second_ray)


def _lifted_sum(first: Tensor, tables: Iterator[tuple[list[Product], Tensor]]) -> Tensor:
    """The sum of what nodes add at each place, each lifted by its index; `first [N, h]` or `[h]`
    is added at the first place.
    """
    hidden = None
    for number, (products, index) in enumerate(tables):
        rows = None if number else first
        for value, map in products:
            rows = linear(value, map) if rows is None else plus_linear(rows, value, map)
        if rows is None:
            continue
        rows = rows.index_select(0, index) if rows.dim() > 1 else rows
        hidden = rows if hidden is None else hidden + rows
    assert hidden is not None
    return hidden


def _by_place(
    terms: Sequence[Term], values: Sequence[Tensor], maps: Sequence[Tensor], places: int
) -> list[list[Product]]:
    """The values that are read at each place, with their maps."""
    found: list[list[Product]] = [[] for _ in range(places)]
    for term, value in zip(terms, values, strict=True):
        for place, number in enumerate(term.inputs):
            if number is not None:
                found[place].append((value, maps[number]))
    return found


# ------------------------------------------------------------------ many rows

# What takes time is memory: each value is multiplied once for all places, and rows of both ends
# are read and added in one pass.


def rows_below(given: Given) -> Tensor:
    """The parts of nodes, or of rays, `[places * rows, h]`, one row for each place."""
    width, rows = len(given.bias), node_table(given)
    if given.domain == "angle":
        assert given.topology.rays is not None
        rows = move(unstacked(rows, given.plan.ends * width), given.topology.rays.both)
        added = ray_table(given)
        rows = rows if added is None else rows + added
    return unstacked(rows, width)


def unstacked(table: Tensor, width: int) -> Tensor:
    """`[rows, places * width] -> [rows * places, width]`; not by -1, which vmap over nothing
    cannot tell.
    """
    return table.reshape(table.shape[0] * (table.shape[1] // width), width)


def movement_up(given: Given) -> Movement:
    """From what nodes or rays add to the rows of the update."""
    edges, pairs = given.topology.edges, given.topology.pairs
    if given.domain == "edge":
        return edges.both if given.plan.ends == 2 else edges.target
    assert pairs is not None
    return pairs.both if given.plan.ends == 2 else pairs.first


def node_table(given: Given) -> Tensor:
    """The part of each node at each place, with the bias at the first `[N, places * h]`."""
    table = graph_rows(given)
    table = F.pad(table, (0, (given.plan.places - 1) * len(given.bias)))
    for term, value in zip(given.plan.node, given.node, strict=True):
        table = plus_linear(table, value, beneath(term, given.maps))
    return table.expand(given.topology.num_nodes, -1)


def ray_table(given: Given) -> Tensor | None:
    """The part of each ray of the angles at each place `[R, ends * h]`."""
    table = None
    for term, value in zip(given.plan.ray, given.ray, strict=True):
        map = beneath(term, given.maps)
        table = linear(value, map) if table is None else plus_linear(table, value, map)
    return table


def beneath(term: Term, maps: Sequence[Tensor]) -> Tensor:
    """The maps of a term for all places, one beneath the other, `[places * h, w]`."""
    if len(term.inputs) == 1:
        return maps[term.first]
    nothing = maps[term.first].new_zeros(maps[term.first].shape) if None in term.inputs else None
    found = [nothing if number is None else maps[number] for number in term.inputs]
    return torch.cat([each for each in found if each is not None])
