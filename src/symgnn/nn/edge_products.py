"""Products of the values of two edges that end at the same node, by the angle between them.

    (products e)_i,l = sum over pairs j != k of e_ji * e_ki * P_l(cos theta_jik),   l = 0, ..., L,

in each channel, where theta is the angle between the edges and P_l are Legendre's polynomials. It
is a sum over angles of product form (:mod:`symgnn.nn.separable`) whose factors are the edges
themselves, so it has no parameters, and moments of the edges give it without any list of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn._argument_checks import check_count
from symgnn.geometry.measures import at_least_float32, direction
from symgnn.geometry.symmetry import ANGLES
from symgnn.nn.inputs import Applied, Operator
from symgnn.nn.polynomials import polynomials

if TYPE_CHECKING:
    from symgnn.graphs import Topology
    from symgnn.nn.state import State

#: The basis of the polynomials.
BASIS = "legendre"
#: The name of the input, whatever the degree.
PRODUCTS = "products(e)"


def edge_products(degree: int) -> Operator:
    """The products of edges as an input of nodes, `(degree + 1) * width of e` numbers, by degrees.

    Args:
        degree: L, from 0 to 6.

    Example:
        >>> from symgnn.nn.inputs import d2, v
        >>> spec = symgnn.nn.Spec("mine", edge=[v.source, d2], node=[v, edge_products(2)])
        >>> print(symgnn.nn.build(spec).symmetry)
        E(n), torsions, permutations
    """
    if check_count("degree", degree, 0) > 6:
        raise ValueError(f"degree: is {degree}; give a whole number from 0 to 6")
    return Operator(
        PRODUCTS,
        "node",
        function=Applied(_products, (degree,)),
        symmetry=ANGLES,
        of="ex",
        width_in=Applied(_width, (degree,)),
        fades=True,
    )


def _products(degree: int, _: Tensor, state: State) -> Tensor:
    return state.engine.edge_products(degree, state)


def _width(degree: int, sizes: Mapping[str, int], _: int | None) -> int:
    return (degree + 1) * sizes["e"]


def directions(state: State) -> Tensor:
    """The unit vector from the target of each edge to its source `[E, n]`; 0 without length."""
    key = "edge directions"
    if key not in state.measured:
        state.measured[key] = direction(state.rays)
    found: Tensor = state.measured[key]
    return found


def plain_products(degree: int, e: Tensor, vectors: Tensor, topology: Topology) -> Tensor:
    """The products of all pairs, one by one.

    Args:
        degree: L.
        e: `[E, w]`.
        vectors: The direction of each edge `[E, n]`.
        topology: With the edges.

    Returns:
        `[N, (L + 1) w]`.
    """
    target, nodes = topology.edge_index[1], topology.num_nodes
    order = target.argsort(stable=True)
    degrees = torch.bincount(target, minlength=nodes)
    begin, each = degrees.cumsum(0) - degrees, degrees.index_select(0, target[order])
    first = torch.arange(len(order), device=order.device).repeat_interleave(each)
    start = begin.index_select(0, target[order]).repeat_interleave(each)
    within = torch.arange(len(first), device=order.device)
    within = within - (each.cumsum(0) - each).repeat_interleave(each)
    first, second = order[first], order[start + within]
    different = first != second
    first, second = first[different], second[different]
    e = at_least_float32(e)
    cosine = (vectors.index_select(0, first) * vectors.index_select(0, second)).sum(1, keepdim=True)
    pairs = e.index_select(0, first) * e.index_select(0, second)
    rows = torch.cat([pairs * each for each in polynomials(cosine.to(e.dtype), degree, BASIS)], 1)
    return rows.new_zeros(nodes, rows.shape[1]).index_add(0, target[first], rows)
