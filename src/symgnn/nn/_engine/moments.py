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

from collections.abc import Callable
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
    Geometry,
    Layout,
    Weights,
    halves,
    plain_sums,
    plain_sums_to_rays,
    repeated,
)
from symgnn.nn._engine.monomials import constant, counts, features, powers
from symgnn.nn._engine.narrow_sums import Narrow, equal_sums, narrow_sums
from symgnn.nn._engine.rows import kept, move
from symgnn.nn._engine.star_sums import star_sums
from symgnn.nn._engine.torch_private import may_branch_on_values
from symgnn.nn._engine.values import LazyValues, lift
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
    """

    def __init__(self, topology: Topology, vectors: Tensor, unit: bool = False) -> None:
        self.topology, self.vectors, self.may_be_unit = topology, vectors, unit
        self._made: dict[tuple[Any, ...], tuple[Geometry, Layout]] = {}

    @cached_property
    def unit(self) -> bool:
        """Whether all vectors are known to have length 1."""
        known = self.may_be_unit and may_branch_on_values(self.vectors)
        return known and bool(self.vectors.detach().any(1).all())

    def product(
        self,
        form: Separable,
        table: Tensor,
        on_rays: Tensor | None,
        to: str,
        weight: Tensor | None = None,
    ) -> Tensor:
        """`sum g_jc h_kc Q_c(r_j . r_k)` over pairs of different rays of a vertex.

        Args:
            form: With the polynomials Q.
            table: Of each node, what it adds to g and h as a vertex, then what it adds as a
                neighbour, `[2 N, 2 c]`; `[2 N, c]` where g and h are the same.
            on_rays: What each ray adds, `[R, 2 c]` or `[R, c]`.
            to: "node" for the sum over j and k, `[N, c]`; "ray" for that over k, `[R, c]`.
            weight: What g and h of each ray are multiplied by, `[R, 1]`.

        Returns:
            The sums, at least in single precision.
        """
        with torch.autocast(table.device.type, enabled=False):  # differences need all digits
            table = at_least_float32(table)
            on_rays = None if on_rays is None else on_rays.to(table.dtype)
            if torch.compiler.is_compiling():
                weight = None if weight is None else weight.to(table.dtype)
                return self._by_movements(form, table, on_rays, to, weight)
            stars, nodes = stars_of(self.topology), self.topology.num_nodes
            if not stars.sizes:
                return table.new_zeros(nodes if to == "node" else 0, form.out)
            geometry, layout = self.made(form, table.dtype, weight)
            weights = self.weights(form, table.dtype, layout)
            if to == "ray":
                rows = plain_sums_to_rays(table, on_rays, geometry, weights, layout)
                return lift(rows, stars.place)
            # with an envelope the energy is differentiated by coordinates; if weights are trained
            # as well, twice, which star_sums does by the plain sums anyway
            twice = weight is not None and form.coefficients.requires_grad
            sums = plain_sums if twice else star_sums
            total = sums(table, on_rays, geometry, weights, layout)
            return total.new_zeros(nodes, form.out).index_copy(0, stars.vertex, total)

    def narrow_product(
        self, form: Separable, given: Narrow | Tensor, weight: Tensor | None
    ) -> Tensor:
        """As :meth:`product` to nodes, of the factors of nodes that have few numbers, or of the
        factors `[2 c]` or `[c]` that all rays have.
        """
        like = given if isinstance(given, Tensor) else given.values
        with torch.autocast(like.device.type, enabled=False):
            stars = stars_of(self.topology)
            out = like.new_zeros(self.topology.num_nodes, form.out)
            if not stars.sizes:
                return out
            geometry, layout = self.made(form, like.dtype, weight)
            weights = self.weights(form, like.dtype, layout)
            if isinstance(given, Tensor):
                total = equal_sums(given, geometry, weights, layout)
            else:
                total = narrow_sums(given, geometry, weights, layout)
            return out.index_copy(0, stars.vertex, total)

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
        alike = self.unit and weight is None
        layout = Layout(stars, split, number, degrees, alike, vectors.new_empty(0))
        rows = vectors.new_zeros(stars.rows, n).index_copy(0, stars.place, vectors)
        few = layout.few_rows
        grams = self._grams(rows[:few], None if weight is None else there[:few], form, layout)
        if not layout.many:
            none = vectors.new_empty(0, 0)
            return Geometry(grams, none, none), layout
        many, is_there = rows[few:].T.contiguous(), there[few:].unsqueeze(0)
        found = features(many, is_there, form.degree, self.unit)
        squares = is_there if weight is None else is_there.square()
        own = squares if self.unit else powers(many, squares, form.degree)
        if alike:
            split_rows = found.detach().split([v * side for v, side in layout.many])
            sums = [
                each.unflatten(0, size).sum(1)
                for size, each in zip(layout.many, split_rows, strict=True)
            ]
            layout = layout._replace(sums=_joined(sums))
        return Geometry(grams, found, own.T.contiguous()), layout

    def _grams(
        self, rows: Tensor, weight: Tensor | None, form: Separable, layout: Layout
    ) -> Tensor:
        """The polynomials of all pairs of different rays, one group after the other.

        Args:
            rows: The vectors of the vertices with few rays `[P, n]`.
            weight: What their factors are multiplied by `[P]`.
            form: With the polynomials.
            layout: Where the rays stand.
        """
        if not layout.few:
            return rows.new_empty(0, form.degree + 1)
        places = [vertices * side for vertices, side in layout.few]
        split = zip(layout.few, rows.split(places), strict=True)
        squares = [each.unflatten(0, size) for size, each in split]
        t = _joined([torch.bmm(each, each.mT).flatten() for each in squares])
        key = ("pairs of rays", layout.split, rows.dtype)
        pairs = kept(self.topology, key, partial(_different, layout, rows.dtype))
        if weight is not None:
            split = zip(layout.few, weight.split(places), strict=True)
            both = [each.view(*size, 1) * each.view(size[0], 1, size[1]) for size, each in split]
            pairs = pairs * _joined([each.flatten() for each in both])
        return torch.stack(polynomials(t, form.degree, form.basis, pairs), 1)

    def weights(self, form: Separable, dtype: torch.dtype, layout: Layout) -> Weights:
        """The coefficients of the polynomials in each basis."""
        coefficients = form.coefficients.to(dtype).T
        few = coefficients if layout.few else coefficients.detach()
        if not layout.many:
            return Weights(few, coefficients.new_empty(0, form.out))
        n = self.vectors.shape[1] if self.unit else 0
        table = constant(_in_features, few, form.basis, form.degree, n)
        return Weights(few, table @ coefficients)

    def _by_movements(
        self,
        form: Separable,
        table: Tensor,
        on_rays: Tensor | None,
        to: str,
        weight: Tensor | None,
    ) -> Tensor:
        """The same in operations whose sizes depend on the numbers of rays and nodes alone."""
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
        monomial = features(vectors, there, form.degree, unit=False).unsqueeze(2)
        moments = move((monomial * h.unsqueeze(1)).flatten(1), rays.vertex.T) * weights.flatten()
        back = move(moments, rays.vertex).unflatten(1, weights.shape)
        # row by row: a derivative that is recorded cannot tell if columns of no rays are in order
        alone = powers(vectors, there, form.degree).T.clone(memory_format=torch.contiguous_format)
        alone = alone @ own
        found = g * ((monomial * back).sum(1) - h * alone)
        return found if to == "ray" else move(found, rays.vertex.T)


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


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


class MomentValues(LazyValues):
    """The value of a form on rays: only its sums exist."""

    def __init__(self, topology: Topology, total: Callable[[str], Tensor]) -> None:
        super().__init__(topology, "angle", None)
        self.total = total

    def _climb_angles(self, to: str, op: str) -> Tensor:
        if to == "ray" or (to == "node" and ("ray", op) not in self._totals):
            return self.total(to)
        return super()._climb_angles(to, op)
