"""Sums over angles of product form, through moments of the rays: no pair of rays is listed.

With vectors r and a polynomial Q_c(t) = sum_p q_cp t^p for each channel c,

    sum_k h_kc Q_c(r_j . r_k) = sum_m q_cp(m) F_jm H_mc,   H_mc = sum_k F_km h_kc,

and sum_jk g_jc h_kc Q_c(r_j . r_k) = sum_m q_cp(m) G_mc H_mc,

where F_jm are the monomials of r_j up to the degree of Q, each times the square root of its
multinomial coefficient, so that <F_j, F_k> restricted to degree p is (r_j . r_k)^p. The term k = j
is sum_p q_cp |r_j|^(2p) g_jc h_jc and is subtracted. A vertex of degree d costs O(d).

Of unit vectors, harmonics take the place of monomials (:mod:`symgnn.nn._engine.harmonics`). Where a
vertex has fewer rays than there are features, the matrices P_p(r_j . r_k) of its few pairs are
smaller than the moments; they are made once for all layers.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from symgnn.geometry.measures import at_least_float32
from symgnn.graphs.stars import stars_of
from symgnn.graphs.topology import Topology
from symgnn.nn._engine.harmonics import powers_in_harmonics
from symgnn.nn._engine.moment_sums import (
    Added,
    Geometry,
    Layout,
    Weights,
    feature_sums,
    halves,
    of_vertices,
    plain_sums,
    repeated,
)
from symgnn.nn._engine.monomials import constant, counts, features, powers
from symgnn.nn._engine.narrow_sums import Narrow, equal_ray_sums, equal_sums, narrow_sums
from symgnn.nn._engine.ray_sums import plain_ray_sums, ray_sums
from symgnn.nn._engine.rows import kept, move
from symgnn.nn._engine.star_sums import star_sums
from symgnn.nn._engine.star_tiles import kept_tiles
from symgnn.nn._engine.torch_private import left_to_torch, may_branch_on_values
from symgnn.nn._engine.unit_features import unit_features
from symgnn.nn._engine.values import placed
from symgnn.nn.polynomials import polynomials, powers_of

if TYPE_CHECKING:
    from symgnn.nn.separable import Separable

#: A vertex has few rays if their number times that of polynomials is at most this times that of
#: features.
FEW = 2.0


class Moments:
    """The rays of all vertices, with one vector `[R, n]` each.

    Their features are computed once for all updates that read the same vectors.

    Args:
        topology: With the rays.
        vectors: `[R, n]`.
        unit: Whether they have length 1, or 0 at coincident points.
        of_rows: Whether they are those of the rows of the stars instead, `[P, n]`.
    """

    def __init__(
        self, topology: Topology, vectors: Tensor, unit: bool = False, of_rows: bool = False
    ) -> None:
        self.topology, self.vectors, self.may_be_unit = topology, vectors, unit
        self.of_rows = of_rows
        self._made: dict[tuple[Any, ...], tuple[Geometry, Layout]] = {}

    @cached_property
    def unit(self) -> bool:
        """Whether all vectors are known to have length 1."""
        known = self.may_be_unit and may_branch_on_values(self.vectors)
        return known and _none_is_zero(self.vectors.detach())

    def product(
        self, form: Separable, added: Added, to: str, weight: Tensor | None = None
    ) -> Tensor:
        """`sum g_jc h_kc Q_c(r_j . r_k)` over pairs of different rays of a vertex.

        Args:
            form: With the polynomials Q.
            added: What vertices, neighbours and rays add to g and h.
            to: "node" for the sum over j and k, `[N, c]`; "vertex" for the same at the vertices
                that have angles, in the order of their stars, `[V, c]`; "ray" for the sum over k,
                `[R, c]`.
            weight: What g and h of each ray are multiplied by, `[R, 1]`.

        Returns:
            The sums, at least in single precision.
        """
        kind = at_least_float32(added.by_neighbour).dtype
        added = added.to(kind)
        with torch.autocast(added.by_vertex.device.type, enabled=False):  # differences need digits
            stars = stars_of(self.topology)
            if not stars.sizes:
                return self._placed(added.by_vertex.new_zeros(0, form.out), to)
            geometry, layout = self.made(form, kind, weight)
            weights = self.weights(form, kind, layout)
            # with an envelope the energy is differentiated by coordinates; if weights are trained
            # as well, twice, which the fast sums do by the plain ones anyway
            twice = weight is not None and form.coefficients.requires_grad
            if to == "ray":
                return (plain_ray_sums if twice else ray_sums)(added, geometry, weights, layout)
            total = (plain_sums if twice else star_sums)(added, geometry, weights, layout)
            return self._placed(total, to)

    def _placed(self, total: Tensor, to: str) -> Tensor:
        """The sums of the vertices, on all nodes for "node"."""
        if to != "node":
            return total
        return placed(total, stars_of(self.topology).vertex, self.topology.num_nodes)

    def narrow_product(
        self, form: Separable, given: Narrow | Tensor, to: str, weight: Tensor | None
    ) -> Tensor:
        """As :meth:`product`, of the factors `[2 c]` or `[c]` that all rays have, or, to nodes or
        vertices, of the factors of nodes that have few numbers.
        """
        like = given if isinstance(given, Tensor) else given.values
        with torch.autocast(like.device.type, enabled=False):
            stars = stars_of(self.topology)
            if not stars.sizes:
                return self._placed(like.new_zeros(0, form.out), to)
            geometry, layout = self.made(form, like.dtype, weight)
            weights = self.weights(form, like.dtype, layout)
            if isinstance(given, Tensor) and to == "ray":
                return equal_ray_sums(given, geometry, weights, layout)
            if isinstance(given, Tensor):
                total = equal_sums(given, geometry, weights, layout)
            else:
                total = narrow_sums(given, geometry, weights, layout)
            return self._placed(total, to)

    def made(
        self, form: Separable, dtype: torch.dtype, weight: Tensor | None = None
    ) -> tuple[Geometry, Layout]:
        """What depends on the vectors and their weights alone, made once for all layers."""
        key = (form.degree, form.basis, dtype, weight)  # a tensor is a key by identity
        if key not in self._made:
            self._made[key] = self._make(form, dtype, weight)
        return self._made[key]

    def _make(
        self, form: Separable, dtype: torch.dtype, weight: Tensor | None
    ) -> tuple[Geometry, Layout]:
        stars, n = stars_of(self.topology), self.vectors.shape[1]
        number = tuple(counts(n, form.degree, self.unit))
        most = FEW * sum(number)
        split = sum(side * (form.degree + 1) <= most for _, side in stars.sizes)
        vectors, there = self.vectors.to(dtype), stars.there.to(dtype)
        if weight is not None:  # each ray counts as much as its weight; padding counts nothing
            there = there.new_zeros(stars.rows).index_copy(
                0, stars.place, weight.to(dtype).squeeze(-1)
            )
        degrees = constant(_degrees, vectors, number)
        alike, tiles = self.unit and weight is None, kept_tiles(self.topology)
        layout = Layout(stars, split, number, degrees, alike, vectors.new_empty(0), tiles)
        columns = vectors.T
        if not self.of_rows:
            columns = vectors.new_zeros(n, stars.rows).index_copy(1, stars.place, columns)
        few = layout.few_rows
        grams = self._grams(columns[:, :few], None if weight is None else there[:few], form, layout)
        if not layout.many:
            none = vectors.new_empty(0, 0)
            return Geometry(grams, none, none), layout
        many, is_there = columns[:, few:], there[few:].unsqueeze(0)
        found = (unit_features if self.unit else features)(many, is_there, form.degree)
        squares = is_there if weight is None else is_there.square()
        own = squares if self.unit else powers(many, squares, form.degree)
        if alike:
            layout = layout._replace(sums=feature_sums(found.detach(), layout.many))
        return Geometry(grams, found, own.T.contiguous()), layout

    def _grams(
        self, columns: Tensor, weight: Tensor | None, form: Separable, layout: Layout
    ) -> Tensor:
        """The polynomials of all pairs of different rays, one group after the other.

        Args:
            columns: The vectors of the vertices with few rays `[n, P]`.
            weight: What their factors are multiplied by `[P]`.
            form: With the polynomials.
            layout: Where the rays stand.
        """
        if not layout.few:
            return columns.new_empty(0, form.degree + 1)
        places = [vertices * side for vertices, side in layout.few]
        split = zip(layout.few, columns.split(places, 1), strict=True)
        squares = [of_vertices(each, size) for size, each in split]
        t = _joined([torch.bmm(each, each.mT).flatten() for each in squares])
        key = ("pairs of rays", layout.split, t.dtype)
        pairs = kept(self.topology, key, partial(_different, layout, t.dtype))
        if weight is not None:
            split = zip(layout.few, weight.split(places), strict=True)
            both = [each.view(*size, 1) * each.view(size[0], 1, size[1]) for size, each in split]
            pairs = pairs * _joined([each.flatten() for each in both])
        return _columns(polynomials(t, form.degree, form.basis, pairs))

    def weights(self, form: Separable, dtype: torch.dtype, layout: Layout) -> Weights:
        """The coefficients of the polynomials in each basis."""
        coefficients = form.coefficients.to(dtype).T
        few = coefficients if layout.few else coefficients.detach()
        if not layout.many:
            return Weights(few, coefficients.new_empty(0, form.out))
        n = self.vectors.shape[1] if self.unit else 0
        table = constant(_in_features, few, form.basis, form.degree, n)
        return Weights(few, table @ coefficients)

    def product_by_movements(
        self,
        form: Separable,
        table: Tensor,
        on_rays: Tensor | None,
        to: str,
        weight: Tensor | None,
    ) -> Tensor:
        """As :meth:`product`, in operations whose sizes depend on the numbers of rays and nodes.

        Args:
            form: With the polynomials Q.
            table: Of each node, what it adds to g and h as a vertex, then what it adds as a
                neighbour, `[2 N, 2 c]`; `[2 N, c]` where g and h are the same.
            on_rays: What each ray adds, `[R, 2 c]` or `[R, c]`.
            to: "node" or "ray".
            weight: What g and h of each ray are multiplied by, `[R, 1]`.
        """
        with torch.autocast(table.device.type, enabled=False):
            table = at_least_float32(table)
            on_rays = None if on_rays is None else on_rays.to(table.dtype)
            weight = None if weight is None else weight.to(table.dtype)
            return self._moved(form, table, on_rays, to, weight)

    def _moved(
        self,
        form: Separable,
        table: Tensor,
        on_rays: Tensor | None,
        to: str,
        weight: Tensor | None,
    ) -> Tensor:
        rays = self.topology.rays
        assert rays is not None
        rows = move(table, rays.both)
        rows = rows if on_rays is None else rows + on_rays
        rows = rows if weight is None else rows * weight
        vectors = self.vectors.to(table.dtype).T.contiguous()
        there = torch.ones_like(vectors[:1])
        own = form.powers().to(table.dtype).T
        weights = repeated(own, tuple(counts(vectors.shape[0], form.degree, unit=False)))
        g, h = halves(rows, form.out)
        monomial = features(vectors, there, form.degree).T.contiguous().unsqueeze(2)
        moments = move((monomial * h.unsqueeze(1)).flatten(1), rays.vertex.T) * weights.flatten()
        back = move(moments, rays.vertex).unflatten(1, weights.shape)
        # row by row: a derivative that is recorded cannot tell if columns of no rays are in order
        alone = powers(vectors, there, form.degree).T.clone(memory_format=torch.contiguous_format)
        alone = alone @ own
        found = g * ((monomial * back).sum(1) - h * alone)
        return found if to == "ray" else move(found, rays.vertex.T)


def _none_is_zero(vectors: Tensor) -> bool:
    """Whether each vector has a coordinate other than 0; most have so in the first."""
    first = vectors[:, :1]
    return bool(first.numel() and first.all()) or bool(vectors.any(1).all())


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _columns(parts: list[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix; one after the other, if that needs no derivative, as
    `torch.stack` takes several times as long.
    """
    if any(each.requires_grad for each in parts) or left_to_torch()[0]:
        return torch.stack(parts, 1)
    found = parts[0].new_empty(len(parts[0]), len(parts))
    for number, each in enumerate(parts):
        found[:, number] = each
    return found


def _different(layout: Layout, dtype: torch.dtype) -> Tensor:
    """1 for each pair of different rays of the vertices with few rays, else 0, in their order."""
    found, start = [], 0
    for vertices, side in layout.few:
        there = layout.stars.there[start : start + vertices * side].view(vertices, side)
        different = 1.0 - torch.eye(side, dtype=there.dtype, device=there.device)
        found.append((there.unsqueeze(2) * there.unsqueeze(1) * different).flatten())
        start += vertices * side
    return _joined(found).to(dtype)


def _degrees(number: tuple[int, ...], like: Tensor) -> Tensor:
    """1 where a feature is of a degree, else 0, `[degree + 1, M]`."""
    kind: Any = {"dtype": like.dtype, "device": like.device}
    return torch.block_diag(*(torch.ones(1, count, **kind) for count in number))


def _in_features(basis: str, degree: int, n: int, like: Tensor) -> Tensor:
    """What makes the coefficients of features, and of pairs of equals with the sign that takes them
    off, of those of a basis, `[degree + 1 + s, degree + 1]`; of harmonics in n dimensions, or of
    monomials where n is 0.
    """
    in_powers = np.array(powers_of(basis, degree)).T
    moment, own = in_powers, -in_powers
    if n:
        moment = powers_in_harmonics(n, degree).T @ in_powers
        own = -in_powers.sum(0, keepdims=True)  # Q(1)
    return torch.as_tensor(np.concatenate([moment, own]), dtype=like.dtype, device=like.device)
