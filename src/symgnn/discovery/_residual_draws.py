"""Residuals beside functions of the coordinates, of the data and of transformed copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from symgnn.discovery._channels import CHANNELS, handedness
from symgnn.discovery._even_draws import Bridges, random_rotations, shuffled
from symgnn.discovery._packing import Pack
from symgnn.discovery._residual_products import Draw, Products, one_group, with_one
from symgnn.discovery._target_rows import TargetRows

#: Random functions of coordinates, and of dihedral angles.
FUNCTIONS, DIHEDRAL_FUNCTIONS = 32, 24


class _Elements(NamedTuple):
    """The nodes (of edge targets, the edges) that the rows of the targets are made of."""

    row: Tensor  # [M]
    weight: Tensor  # [M], one over their number in the row
    vectors: Tensor  # [M, V, n], coordinates, and velocities if there are any
    features: Tensor  # [M, F]


def _elements(pack: Pack, rows: TargetRows) -> _Elements:
    vectors = [pack.centred / pack.radius.mean()]
    if pack.vel is not None:
        vectors.append(pack.vel / pack.vel.square().mean().sqrt().clamp(min=1e-12))
    number = torch.arange(len(rows.y))
    if rows.place == "graph":
        row = torch.full((pack.size,), -1)
        row[rows.graph] = number
        nodes = (row[pack.batch] >= 0).nonzero().flatten()
        weight = 1 / pack.counts.double()[pack.batch[nodes]]
        found = torch.stack([vector[nodes] for vector in vectors], 1)
        return _Elements(row[pack.batch[nodes]], weight, found, pack.nodes[nodes])
    one, other = rows.nodes
    ones = torch.ones(len(number), dtype=torch.float64)
    if rows.place == "node":
        each = torch.stack([v[one] for v in vectors], 1)
        return _Elements(number, ones, each, pack.nodes[one])
    rays = torch.stack([v[one] - v[other] for v in vectors], 1)
    return _Elements(number, ones, rays, torch.cat([pack.nodes[one], pack.nodes[other]], 1))


def rotated(
    p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator, *, origin: bool = False
) -> Draw:
    """Sums, squares and random functions of coordinates; of vectors also constant fields.

    Args:
        p: The graphs.
        rows: Their targets.
        residuals: Of these.
        generator: Of the rotations.
        origin: Whether these are about the origin, so that places turn too, or about centroids.
    """
    row, weight, vectors, features = _elements(p, rows)
    graph = rows.graph[row]
    weighted = residuals[row] * weight.unsqueeze(1)
    width = vectors.shape[1] * p.dimension
    mix = torch.randn(width, FUNCTIONS, generator=generator, dtype=torch.float64)
    of_features = torch.randn(features.shape[1], FUNCTIONS, generator=generator).double()
    phase = 6.3 * torch.rand(FUNCTIONS, generator=generator, dtype=torch.float64)
    known = features @ of_features / max(features.shape[1], 1) ** 0.5 + phase
    beside = with_one(features)
    upper = torch.triu_indices(width, width)
    each = torch.arange(beside.shape[1])
    places = _places(p, origin)
    n = p.dimension

    def draw(copy: bool) -> list[Products]:
        x, r, place = vectors, weighted, places
        if copy:
            turns = random_rotations(p.size, n, generator)
            q = turns[graph]
            x = torch.einsum("mab,mvb->mva", q, x)
            place = torch.einsum("gab,gvb->gva", turns, places)
            if rows.vectors:
                r = torch.einsum("mab,mvb->mva", q, r.view(len(r), -1, n)).flatten(1)
        flat = x.flatten(1)
        linear = (beside.unsqueeze(2) * flat.unsqueeze(1)).flatten(1)
        square = flat[:, upper[0]] * flat[:, upper[1]]
        random = torch.cos(flat @ mix + known)
        found = [
            Products(r, linear, each.repeat_interleave(width), row, weight),
            Products(r, square, one_group(square.shape[1]), row, weight),
            Products(r, random, one_group(FUNCTIONS)),
        ]
        if rows.vectors:
            found.append(Products(r, beside, each, row, weight))
        if place.shape[1]:
            of_graph = place.flatten(1)[graph]
            linear = (beside.unsqueeze(2) * of_graph.unsqueeze(1)).flatten(1)
            square = of_graph.unsqueeze(2) * of_graph.unsqueeze(1)
            found += [
                Products(r, linear, each.repeat_interleave(n)),
                Products(r, square.flatten(1), one_group(n * n)),
            ]
        return found

    return draw


def _places(p: Pack, origin: bool) -> Tensor:
    """The place of each graph over a typical distance, `[G, 1, n]`; none about the centroid."""
    place = p.mean(p.pos).unsqueeze(1)
    return place / place.square().mean().sqrt().clamp(min=1e-300) if origin else place[:, :0]


def mirrored(p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator) -> Draw | None:
    """Determinants that change sign in a mirror; None for vectors, edges and too few features."""
    if rows.vectors or rows.place == "edge":
        return None
    whole, local = handedness(p)
    if rows.place == "graph":
        parts = [whole[rows.graph], p.mean(local)[rows.graph]]
    else:
        parts = [whole[rows.graph], local[rows.nodes[0]]]
    parts = [part for part in parts if part.shape[1]]
    if not parts:  # as many features as dimensions are needed
        return None
    parts = [*parts, *(part.sign() for part in parts)]

    def draw(copy: bool) -> list[Products]:
        signs = torch.ones(p.size, dtype=torch.float64)
        if copy:
            signs = torch.randint(2, (p.size,), generator=generator).double() * 2 - 1
        r = residuals * signs[rows.graph].unsqueeze(1)
        return [Products(r, part, one_group(part.shape[1])) for part in parts]

    return draw


def reordered(p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator) -> Draw:
    """Places of nodes and their squares, times features and distances."""
    row, weight, vectors, features = _elements(p, rows)
    weighted = residuals[row] * weight.unsqueeze(1)
    if rows.vectors:  # components along the vectors of the node, which no rotation changes
        each = weighted.view(len(weighted), -1, p.dimension)
        weighted = torch.einsum("mwa,mva->mwv", each, vectors).flatten(1)
    beside = torch.cat([with_one(features), vectors.norm(dim=2)], 1)
    if rows.place == "graph":
        chosen = torch.zeros(p.size, dtype=torch.bool)
        chosen[rows.graph] = True
        ends = [chosen[p.batch].nonzero().flatten()]
    else:
        ends = list(rows.nodes) if rows.place == "edge" else [rows.nodes[0]]
    known = (None, None) if rows.vectors else (row, weight)
    columns = torch.arange(beside.shape[1]).repeat(2 * len(ends))

    def draw(copy: bool) -> list[Products]:
        order = (shuffled(p, generator) if copy else p.order) - 0.5
        places = [place for end in ends for place in (order[end], order[end].square())]
        functions = torch.cat([place.unsqueeze(1) * beside for place in places], 1)
        return [Products(weighted, functions, columns, *known)]

    return draw


def twisted(p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator) -> Draw:
    """Cosines of dihedral angles and their squares, times features of the chain."""
    bridges = Bridges(p)
    local = rows.place == "node"
    owner = rows.nodes[0] if local else rows.graph
    size = len(p.pos) if local else p.size
    mix = torch.randn(3, DIHEDRAL_FUNCTIONS, generator=generator, dtype=torch.float64)
    phase = 6.3 * torch.rand(DIHEDRAL_FUNCTIONS, generator=generator, dtype=torch.float64)
    row = torch.arange(len(rows.y))
    weight = torch.ones(len(row), dtype=torch.float64)

    def means(values: Tensor, place: Tensor) -> Tensor:
        total = values.new_zeros(size, values.shape[1]).index_add_(0, place, values)
        times = torch.bincount(place, minlength=size).clamp(min=1).unsqueeze(1)
        return (total / times)[owner]

    def draw(copy: bool) -> list[Products]:
        pos = bridges.turned(p.pos, generator) if copy else p.pos
        part = CHANNELS["dihedrals"].measure(replace(p, pos=pos))[1]
        place = part.owners[0] if local else part.graph
        cosine = part.values[:, :1]
        beside = with_one(part.features)
        single = means(torch.cat([cosine * beside, cosine.square() * beside], 1), place)
        random = torch.cos(part.values * part.values.new_tensor([2.0, 1.0, 1.0]) @ mix + phase)
        return [
            Products(residuals, single, torch.arange(beside.shape[1]).repeat(2), row, weight),
            Products(residuals, means(random, place), one_group(DIHEDRAL_FUNCTIONS)),
        ]

    return draw


#: The draws of this module, of compact groups, by their names.
EVEN_DRAWS: dict[str, Callable[[Pack, TargetRows, Tensor, Generator], Draw | None]] = {
    "permutation": reordered,
    "rotation": rotated,
    "rotation about the origin": partial(rotated, origin=True),
    "reflection": mirrored,
    "torsion": twisted,
}
