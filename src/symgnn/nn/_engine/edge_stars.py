"""Products of edges through their moments, and filtered messages in the order that these read.

With the harmonics, or monomials, F_jm of the direction of edge j (:mod:`symgnn.nn._engine.moments`)

    sum over j != k of e_j e_k P_l(r_j . r_k)
        = sum_m T_lm (sum_j F_jm e_j)^2 - sum_j P_l(|r_j|^2) e_j^2,

a product of matrices for each node. So the edges of a node stand one after the other, padded to the
largest degree of a group of nodes. Messages that nothing else reads are made in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from symgnn.geometry.measures import at_least_float32
from symgnn.graphs import Movement, Topology
from symgnn.graphs.movement import lift_by
from symgnn.graphs.stars import grouped
from symgnn.nn._engine.harmonics import powers_in_harmonics
from symgnn.nn._engine.monomials import counts, features, powers
from symgnn.nn._engine.rows import linear, move
from symgnn.nn._engine.torch_private import apply_function, may_branch_on_values
from symgnn.nn._engine.unit_features import unit_features
from symgnn.nn._engine.values import LazyValues
from symgnn.nn.edge_products import BASIS, directions
from symgnn.nn.polynomials import powers_of

if TYPE_CHECKING:
    from symgnn.nn.state import State

#: Nodes are one group if padding is at most this part of the edges, or so many rows.
PADDING, FEW = 0.1, 256


class EdgeStars(NamedTuple):
    """The edges that end at each node, in groups of nodes of about the same degree; P rows."""

    sizes: list[tuple[int, int]]  # of each group, its nodes and their degree with padding
    vertex: Tensor | None  # [V], the nodes in this order; None for all nodes in their own
    row: Tensor  # [E], the row of each edge
    there: Tensor  # [P, 1], 1 for edges, 0 for padding
    sources: Movement  # from nodes to the rows of the edges that they are the source of

    def of_edges(self, rows: Tensor) -> Tensor:
        """Rows of the edges in this order, 0 for padding, `[E, w] -> [P, w]`."""
        return rows.new_zeros(len(self.there), rows.shape[1]).index_copy(0, self.row, rows)

    def groups(self, rows: Tensor) -> list[Tensor]:
        """`[P, w]` as `[nodes, degree, w]` for each group."""
        if len(self.sizes) == 1:
            return [rows.unflatten(0, self.sizes[0])]
        parts = rows.split([nodes * side for nodes, side in self.sizes])
        return [part.unflatten(0, size) for part, size in zip(parts, self.sizes, strict=True)]

    def to_nodes(self, rows: Tensor, nodes: int) -> Tensor:
        """Rows of the vertices in their order, on all nodes: 0 for those without edges."""
        if self.vertex is None:
            return rows
        return rows.new_zeros(nodes, *rows.shape[1:]).index_copy(0, self.vertex, rows)


def edge_stars(topology: Topology) -> EdgeStars:
    """The stars of a topology, made once and kept with it."""
    known: dict[str, Any] = topology.__dict__
    if "_edge_stars" not in known:
        with torch.inference_mode(False):  # it may be saved for a backward pass later on
            known["_edge_stars"] = _edge_stars(topology)
    found: EdgeStars = known["_edge_stars"]
    return found


def _edge_stars(topology: Topology) -> EdgeStars:
    source, target = topology.edge_index
    edges, nodes, device = len(target), topology.num_nodes, target.device
    degree = topology.edges_of_node
    order = topology.edges.target.back_reads.long()  # edges by their target
    begin = degree.cumsum(0) - degree
    largest = int(degree.max()) if nodes else 0
    vertex: Tensor | None = None
    if nodes * largest - edges <= max(PADDING * edges, FEW):
        sizes, start = [(nodes, largest)], torch.arange(nodes, device=device) * largest
    else:
        vertex = degree.argsort(stable=True)
        vertex = vertex[degree.index_select(0, vertex) > 0]
        sizes, side = grouped(degree.index_select(0, vertex))
        start = torch.zeros_like(degree).index_copy(0, vertex, side.cumsum(0) - side)
    at = target.index_select(0, order)
    place = (start - begin).index_select(0, at) + torch.arange(edges, device=device)
    rows = sum(count * side for count, side in sizes)
    row = torch.empty_like(order).index_copy(0, order, place)
    there = torch.zeros(rows, 1, device=device).index_fill(0, place, 1.0)
    # padding reads any node; what it reads is multiplied by 0
    read = order.new_zeros(rows).index_copy(0, row, source)
    return EdgeStars(sizes, vertex, row, there, lift_by(read, nodes))


class StarShape(NamedTuple):
    """What depends on the directions of the edges alone."""

    features: list[Tensor]  # of each group, F, 0 for padding `[V, M, D]`
    own: list[Tensor | None]  # of each group, |r|^2p, 0 for padding `[V, s, D]`; None if all are 1
    of_moments: Tensor  # T, `[L + 1, M]`
    of_own: Tensor  # of e_j^2, `[L + 1, s]`


def shape_of(degree: int, dtype: torch.dtype, state: State) -> StarShape:
    """The features of the directions, made once for all layers."""
    key = ("edge moments", degree, dtype)
    if key not in state.measured:
        state.measured[key] = _shape_of(degree, dtype, state)
    found: StarShape = state.measured[key]
    return found


def _shape_of(degree: int, dtype: torch.dtype, state: State) -> StarShape:
    stars, vectors = edge_stars(state.topology), directions(state).to(dtype)
    unit = may_branch_on_values(vectors) and not bool(
        (vectors.detach().square().sum(1) < 0.5).any()
    )
    rows, there = stars.of_edges(vectors).T, stars.there.to(dtype).T
    of_moments, of_own = (
        torch.as_tensor(each, dtype=dtype, device=vectors.device)
        for each in coefficients(vectors.shape[1], degree, unit)
    )
    found = stars.groups((unit_features if unit else features)(rows, there, degree).T)
    own: list[Tensor | None] = [None] * len(found)
    if not unit:
        own = [each.mT for each in stars.groups(powers(rows, there, degree).T)]
    return StarShape([each.mT for each in found], own, of_moments, of_own)


@lru_cache(maxsize=64)
def coefficients(n: int, degree: int, unit: bool) -> tuple[np.ndarray, np.ndarray]:
    """T `[L + 1, M]`, and the coefficients of the powers of `|r|^2` `[L + 1, s]`."""
    q = np.array(powers_of(BASIS, degree))
    own = q
    if unit:
        own = q.sum(1, keepdims=True)
        q = q @ powers_in_harmonics(n, degree)
    return np.repeat(q, counts(n, degree, unit), 1), own


def star_products(degree: int, e: LazyValues, state: State) -> Tensor:
    """The products of edges `[N, (degree + 1) w]`."""
    stars, nodes = edge_stars(state.topology), state.topology.num_nodes
    rows = e.on_stars(stars) if isinstance(e, FilteredValues) else None
    if rows is None:
        rows = stars.of_edges(at_least_float32(e.rows))
    shape = shape_of(degree, rows.dtype, state)
    groups = stars.groups(rows)
    moments = torch.cat([torch.bmm(f, m) for f, m in zip(shape.features, groups, strict=True)])
    own = torch.cat([_own(f, m) for f, m in zip(shape.own, groups, strict=True)])
    if isinstance(e, FilteredValues):  # the first feature is 1
        e.take_total(stars.to_nodes(moments[:, 0], nodes))
    found = torch.matmul(shape.of_moments, moments * moments) - torch.matmul(shape.of_own, own)
    return stars.to_nodes(found.flatten(1), nodes)


def _own(features: Tensor | None, rows: Tensor) -> Tensor:
    """`sum_j |r_j|^2p e_j^2` of each vertex, `[V, D, w] -> [V, s, w]`."""
    if features is None:
        found: Tensor = apply_function(_Squares, rows)
        return found.unsqueeze(1)
    return torch.bmm(features, rows * rows)


class _Squares(torch.autograd.Function):
    """The sum of the squares over the second dimension, `[V, D, w] -> [V, w]`.

    Its derivative is one product of the size of the rows, where that of `rows * rows` takes three.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(rows: Tensor) -> Tensor:
        return rows.square().sum(-2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        return rows * (2 * grad).unsqueeze(-2)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (rows,) = ctx.saved_tensors
        return 2 * (rows * tangent).sum(-2)


def moved_products(degree: int, e: Tensor, state: State) -> Tensor:
    """The same in operations whose sizes depend on the numbers of edges and nodes alone."""
    e, target = at_least_float32(e), state.topology.edges.target
    vectors = directions(state).to(e.dtype)
    of_moments, of_own = (
        torch.tensor(each.tolist(), dtype=e.dtype, device=e.device)
        for each in coefficients(vectors.shape[1], degree, unit=False)
    )
    rows, there = vectors.T.contiguous(), torch.ones_like(vectors[:, 0]).unsqueeze(0)
    of_edges = features(rows, there, degree).T.contiguous().unsqueeze(2)
    alone = powers(rows, there, degree).T.clone(memory_format=torch.contiguous_format)
    own = (alone @ of_own.T).unsqueeze(2) * (e * e).unsqueeze(1)
    c = e.shape[1]
    moments = move((of_edges * e.unsqueeze(1)).flatten(1), target.T).unflatten(1, (-1, c))
    found = torch.matmul(of_moments, moments * moments).flatten(1)
    return found - move(own.flatten(1), target.T)


class FilteredValues(LazyValues):
    """Messages `nodes_j * filter_ji`, made in the order of edges or of stars when they are read.

    Args:
        topology: With the edges.
        table: What nodes give as sources `[N, w]`.
        given: What edges give, 1 among it, times the envelope `[E, g]`.
        map: The filter of it `[w, g]`.
        measured: Where what edges give is kept in the order of stars, for all layers.
        key: By which it is kept.
    """

    def __init__(
        self,
        topology: Topology,
        table: Tensor,
        given: Tensor,
        map: Tensor,
        measured: dict[Any, Any],
        key: Any,
    ) -> None:
        super().__init__(topology, "edge", None)
        self.table, self.given, self.map = table, given, map
        self._measured, self._key = measured, ("on stars", *key)
        self._in_stars: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        """In the order of the edges `[E, w]`."""
        if self._made is None:
            nodes = move(self.table, self.topology.edges.source)
            self._made = nodes * linear(self.given, self.map)
        return self._made

    def on_stars(self, stars: EdgeStars) -> Tensor:
        """In the order of stars, 0 for padding `[P, w]`."""
        if self._in_stars is None:
            filters = linear(self._given_on(stars), self.map)
            self._in_stars = move(self.table, stars.sources) * filters
        return self._in_stars

    def _given_on(self, stars: EdgeStars) -> Tensor:
        """What edges give, in the order of stars, 0 for padding `[P, g]`."""
        if self._key not in self._measured:
            self._measured[self._key] = stars.of_edges(self.given)
        found: Tensor = self._measured[self._key]
        return found

    def _climb(self, to: str, op: str) -> Tensor:
        """Sums of messages that nothing else reads, by the moments of what edges give:

        sum_j t_j * (F g_j) = sum_k F_k * (sum_j g_jk t_j), so that no message is made.
        """
        few = self.given.shape[0] < self.topology.num_nodes * self.given.shape[1]
        if (to, op) != ("node", "sum") or self._made is not None or few:
            return super()._climb(to, op)
        with torch.autocast(self.table.device.type, enabled=False):
            stars = edge_stars(self.topology)
            given = stars.groups(at_least_float32(self._given_on(stars)))
            rows = stars.groups(move(at_least_float32(self.table), stars.sources))
            moments = torch.cat([torch.bmm(f.mT, m) for f, m in zip(given, rows, strict=True)])
            found = (moments * self.map.T.to(moments.dtype)).sum(1)
        return stars.to_nodes(found, self.topology.num_nodes)

    def take_total(self, total: Tensor) -> None:
        """The sum over the edges of each node `[N, w]`, where it is known."""
        self._totals["node", "sum"] = total


def filtered_values(
    topology: Topology,
    table: Tensor,
    parts: Callable[[], list[Tensor]],
    weight: Tensor | None,
    map: Tensor,
    key: Any,
    state: State,
) -> FilteredValues:
    """Filtered messages; what edges give is made once for all layers.

    Args:
        parts: The values of edges that the filter reads, `[E, any]` each.
        weight: The envelope `[E, 1]`.
        map: The filter with its bias `[w, g]`.
    """
    found = state.measured.get(("filtered", *key))
    if found is None:
        rows = [each.to(map.dtype) for each in parts()]
        given = torch.cat([*rows, rows[0].new_ones(len(rows[0]), 1)], 1)
        found = given if weight is None else given * weight.to(given.dtype)
        state.measured[("filtered", *key)] = found
    return FilteredValues(topology, table, found, map, state.measured, key)
