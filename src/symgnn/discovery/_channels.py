"""Channels: measured quantities of the elements of a graph, with the maps that keep each.

A channel lists elements (nodes, edges, angles, pairs, chains), the numbers that are measured on
each, and the features of its nodes. What a rung of the ladder may read is a set of channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from symgnn.discovery._packing import Pack
from symgnn.geometry import (
    AFFINE,
    ANGLES,
    EUCLIDEAN,
    EVERYTHING,
    LENGTHS,
    MOEBIUS,
    PERMUTATIONS,
    SIMILARITIES,
    STARS,
    Symmetry,
)
from symgnn.geometry.measures import angle, inverted_rays, kappa_of_inverted
from symgnn.geometry.symmetry import REVERSING


class Elements(NamedTuple):
    """Elements with the numbers that are read on each."""

    graph: Tensor  # [M], the number of its graph
    owners: tuple[Tensor, ...]  # nodes that it belongs to, [M] each
    values: Tensor  # [M, k], measured
    features: Tensor  # [M, F], of its nodes and edges
    linear: bool = False  # whether the values are also read as they are
    edges: bool = False  # whether these are the edges of the pack, in their order


class Channel(NamedTuple):
    """A quantity and the maps that keep it."""

    name: str
    symmetry: Symmetry
    measure: Callable[[Pack], list[Elements]]


def _distance(x: Tensor, elements: Tensor) -> Tensor:
    return (x[elements[0]] - x[elements[1]]).norm(dim=1, keepdim=True)


def _sum_and_product(one: Tensor, other: Tensor) -> Tensor:
    """Features of two nodes that do not depend on their order."""
    return torch.cat([one + other, one * other], 1)


def _topology(p: Pack) -> list[Elements]:
    ones = p.pos.new_ones(len(p.pos), 1)  # their sum is the number of nodes
    nodes = Elements(p.batch, (torch.arange(len(p.pos)),), ones, p.nodes, linear=True)
    source, target = p.edges
    both = torch.cat([p.nodes[source], p.nodes[target], p.links], 1)
    edges = Elements(p.batch[target], (target,), p.pos.new_zeros(len(target), 0), both, edges=True)
    return [nodes, edges]


def _edges(p: Pack, values: Tensor) -> Elements:
    source, target = p.edges
    both = torch.cat([p.nodes[source], p.nodes[target], p.links], 1)
    return Elements(p.batch[target], (target,), values, both, edges=True)


def _lengths(p: Pack) -> list[Elements]:
    return [_edges(p, _distance(p.pos, p.edges))]


def _relative_lengths(p: Pack) -> list[Elements]:
    lengths = _distance(p.pos, p.edges)
    graph = p.batch[p.edges[1]]
    longest = lengths.new_zeros(p.size).scatter_reduce(0, graph, lengths[:, 0], "amax")
    longest = torch.where(longest > 0, longest, 1.0)
    return [_edges(p, lengths / longest[graph].unsqueeze(1))]


def _angle_elements(p: Pack, values: Tensor) -> Elements:
    j, i, k = p.angles
    features = torch.cat([p.nodes[i], _sum_and_product(p.nodes[j], p.nodes[k])], 1)
    return Elements(p.batch[i], (i,), values, features)


def _vertex_angles(p: Pack) -> Tensor:
    j, i, k = p.angles
    return angle(p.pos[j] - p.pos[i], p.pos[k] - p.pos[i]).unsqueeze(1)


def _angles(p: Pack) -> list[Elements]:
    return [_angle_elements(p, _vertex_angles(p))]


def _stars(p: Pack) -> list[Elements]:
    j, i, k = p.angles
    a, b = _distance(p.pos, torch.stack([i, j])), _distance(p.pos, torch.stack([i, k]))
    values = torch.cat([_vertex_angles(p), a + b, (a - b).abs()], 1)
    return [_angle_elements(p, values)]


def _kappas(p: Pack) -> list[Elements]:
    j, i, k = p.angles
    vertex = torch.cat([i, i])
    rays = torch.cat([p.pos[j] - p.pos[i], p.pos[k] - p.pos[i]])
    inverted = inverted_rays(rays, vertex, len(p.pos))
    values = kappa_of_inverted(inverted[: len(i)], inverted[len(i) :], i, len(p.pos))
    return [_angle_elements(p, values.unsqueeze(1))]


def _dihedrals(p: Pack) -> list[Elements]:
    """The cosine of the turn of a chain about its middle edge, and its two angles."""
    j, i, k, l = p.chains
    axis = p.pos[k] - p.pos[i]
    unit = axis / axis.norm(dim=1, keepdim=True).clamp(min=1e-300)
    one, other = p.pos[j] - p.pos[i], p.pos[l] - p.pos[k]
    flat = [x - (x * unit).sum(1, keepdim=True) * unit for x in (one, other)]
    sizes = [x.norm(dim=1, keepdim=True).clamp(min=1e-12) for x in flat]
    cosine = ((flat[0] / sizes[0]) * (flat[1] / sizes[1])).sum(1, keepdim=True)
    bends = [angle(axis, one).unsqueeze(1), angle(-axis, other).unsqueeze(1)]
    values = torch.cat([cosine, bends[0] + bends[1], (bends[0] - bends[1]).abs()], 1)
    ends = _sum_and_product(p.nodes[j], p.nodes[l])
    features = torch.cat([ends, _sum_and_product(p.nodes[i], p.nodes[k])], 1)
    return [
        Elements(p.batch[i], (i, k), torch.cat([cosine, cosine], 1), features),
        Elements(p.batch[i], (i, k), values, features),
    ]


def _pair_elements(p: Pack, x: Tensor) -> list[Elements]:
    hops = (p.hops.unsqueeze(1) == torch.arange(1, 4)).double()
    one, other = p.pairs
    features = torch.cat([_sum_and_product(p.nodes[one], p.nodes[other]), hops], 1)
    pairs = Elements(p.batch[one], (one, other), _distance(x, p.pairs), features)
    centred = x - p.mean(x)[p.batch]
    out = centred.norm(dim=1, keepdim=True)
    return [pairs, Elements(p.batch, (torch.arange(len(x)),), out, p.nodes)]


def _pairs(p: Pack) -> list[Elements]:
    return _pair_elements(p, p.pos)


def _relative_pairs(p: Pack) -> list[Elements]:
    return _pair_elements(p, p.centred / p.radius[p.batch].unsqueeze(1))


def whitened(p: Pack) -> Tensor:
    """Coordinates in which each cloud has mean 0 and unit covariance, `[N, n]`."""
    x = p.centred / p.radius[p.batch].unsqueeze(1)
    outer = p.mean((x.unsqueeze(2) * x.unsqueeze(1)).flatten(1)).view(p.size, p.dimension, -1)
    values, vectors = torch.linalg.eigh(outer)
    scale = torch.where(values > 1e-6, values.clamp(min=1e-6).rsqrt(), 0.0)
    along = torch.einsum("na,nab->nb", x, vectors[p.batch]) * scale[p.batch]
    return torch.einsum("nb,nab->na", along, vectors[p.batch])


def _affine_pairs(p: Pack) -> list[Elements]:
    return _pair_elements(p, whitened(p))


def _radii(p: Pack) -> list[Elements]:
    nodes = torch.arange(len(p.pos))
    return [Elements(p.batch, (nodes,), p.pos.norm(dim=1, keepdim=True), p.nodes)]


def _coordinates(p: Pack, x: Tensor) -> list[Elements]:
    each = torch.arange(len(x))
    nodes = Elements(p.batch, (each,), x, p.nodes)
    source, target = p.edges
    ends = torch.cat([x[source], x[target]], 1)
    # sums of coordinates and rays with features for weights: dipoles, rises of directed edges
    rays = _times(p.links, x[source] - x[target])
    at_nodes = rays.new_zeros(len(x), rays.shape[1]).index_add_(0, target, rays)
    moments = torch.cat([x, _times(p.nodes, x), at_nodes], 1)
    return [nodes, _edges(p, ends), Elements(p.batch, (each,), moments, x[:, :0], linear=True)]


def _times(features: Tensor, x: Tensor) -> Tensor:
    """Every feature times every coordinate, `[M, F], [M, n] -> [M, F n]`."""
    return (features.unsqueeze(2) * x.unsqueeze(1)).flatten(1)


def _offsets(p: Pack) -> list[Elements]:
    return _coordinates(p, p.centred)


def _relative_offsets(p: Pack) -> list[Elements]:
    return _coordinates(p, p.centred / p.radius[p.batch].unsqueeze(1))


def _raw(p: Pack) -> list[Elements]:
    return _coordinates(p, p.pos)


#: At most so many determinants, of the whole graph and at each node.
GLOBAL, LOCAL = 120, 12


def _chosen(columns: int, n: int, most: int) -> Tensor:
    """Sets of n columns `[k, n]`; spread over all of them where there are too many."""
    every = torch.combinations(torch.arange(columns), n)
    return every[torch.linspace(0, len(every) - 1, min(most, len(every))).long()]


def _determinants(rays: Tensor, weights: Tensor, owner: Tensor, owners: int, most: int) -> Tensor:
    """Determinants of n sums of rays, each with the weights of another column.

    `rays [M, n]`, `weights [M, c]`, `owner [M]` -> `[owners, k]`.
    """
    terms = (weights.unsqueeze(2) * rays.unsqueeze(1)).flatten(1)
    moments = terms.new_zeros(owners, terms.shape[1]).index_add_(0, owner, terms)
    moments = moments.view(owners, weights.shape[1], rays.shape[1])
    return torch.linalg.det(moments[:, _chosen(weights.shape[1], rays.shape[1], most)])


def _radial(distance: Tensor) -> Tensor:
    """Functions of a distance of about 1, `[M, 1] -> [M, 3]`."""
    return torch.cat([torch.ones_like(distance), distance, torch.exp(-distance.square())], 1)


def handedness(p: Pack, unit: bool = True) -> tuple[Tensor, Tensor]:
    """Numbers that change sign in a mirror: of graphs `[G, k]` and of nodes `[N, k]`.

    They are determinants of weighted moments, of all nodes about the centroid and of the
    neighbours about a node. The weights are features and functions of distances over the radius of
    the graph; with `unit`, so are the coordinates.
    """
    radius = p.radius[p.batch].unsqueeze(1)
    x = p.centred / radius
    known = torch.cat([_radial(x.norm(dim=1, keepdim=True))[:, 1:], p.nodes], 1)
    counts = p.counts.double().unsqueeze(1) ** p.dimension
    whole = _determinants(x, known, p.batch, p.size, GLOBAL) / counts
    source, target = p.edges
    rays = x[source] - x[target]
    known = torch.cat([_radial(rays.norm(dim=1, keepdim=True)), p.nodes[source]], 1)
    local = _determinants(rays, known, target, len(x), LOCAL)
    if not unit:
        size = (p.radius / p.radius.mean()).unsqueeze(1) ** p.dimension
        whole, local = whole * size, local * size[p.batch]
    return whole, local


def _signed_root(values: Tensor, n: int) -> Tensor:
    return values.sign() * values.abs() ** (1 / n)


def _hands(p: Pack, unit: bool) -> list[Elements]:
    whole, local = handedness(p, unit)
    nodes = torch.arange(len(p.pos))
    local = _signed_root(local, p.dimension)
    both = torch.cat([whole, _signed_root(whole, p.dimension)], 1)
    graphs = Elements(p.batch, (nodes,), both[p.batch], p.nodes[:, :0], linear=True)
    return [graphs, Elements(p.batch, (nodes,), local, p.nodes)]


def _handed(p: Pack) -> list[Elements]:
    return _hands(p, False)


def _relative_handed(p: Pack) -> list[Elements]:
    return _hands(p, True)


def _index(p: Pack) -> list[Elements]:
    nodes = torch.arange(len(p.pos))
    return [Elements(p.batch, (nodes,), p.order.unsqueeze(1), p.nodes)]


CHANNELS: dict[str, Channel] = {
    channel.name: channel
    for channel in (
        Channel("topology", EVERYTHING, _topology),
        Channel("lengths", LENGTHS, _lengths),
        Channel("relative lengths", LENGTHS | Symmetry(["dilation"]), _relative_lengths),
        Channel("angles", ANGLES, _angles),
        Channel("stars", EUCLIDEAN | STARS, _stars),
        Channel("kappa", MOEBIUS | STARS, _kappas),
        Channel("dihedrals", SIMILARITIES | Symmetry(["redrawing"]), _dihedrals),
        Channel("pairs", EUCLIDEAN, _pairs),
        Channel("relative pairs", SIMILARITIES, _relative_pairs),
        Channel("affine pairs", AFFINE, _affine_pairs),
        Channel("handedness", EUCLIDEAN - REVERSING, _handed),
        Channel("relative handedness", SIMILARITIES - REVERSING, _relative_handed),
        Channel("radii", PERMUTATIONS | Symmetry(["rotation", "reflection"]), _radii),
        Channel("offsets", PERMUTATIONS | Symmetry(["translation"]), _offsets),
        Channel(
            "relative offsets",
            PERMUTATIONS | Symmetry(["translation", "dilation"]),
            _relative_offsets,
        ),
        Channel("coordinates", PERMUTATIONS, _raw),
        Channel("order", EVERYTHING - PERMUTATIONS, _index),
    )
}
