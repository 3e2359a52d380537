"""Rungs for targets that are vectors: they turn with the coordinates, or should.

An equivariant rung sums rays with invariant weights and learns one number for each sum; the
others learn each component from coordinates on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from symgnn.discovery._channels import CHANNELS, Elements
from symgnn.discovery._ladder import AGAIN
from symgnn.discovery._packing import Pack
from symgnn.discovery._random_layers import graph_values, node_values
from symgnn.discovery._ridge import kernels, predictions, standardised
from symgnn.discovery._target_rows import TargetRows
from symgnn.geometry import EUCLIDEAN, EVERYTHING, PERMUTATIONS, SIMILARITIES, Symmetry
from symgnn.geometry.symmetry import REVERSING

#: Each rung, and the maps that vectors made by it go with.
VECTOR_RUNGS: dict[str, Symmetry] = {
    "no vector": EVERYTHING,
    "relative lengths": SIMILARITIES,
    "lengths": EUCLIDEAN,
    "relative distances": SIMILARITIES,
    "distances": EUCLIDEAN,
    "handed": EUCLIDEAN - REVERSING,
    "relative field": PERMUTATIONS | Symmetry(["translation", "dilation"]),
    "field": PERMUTATIONS | Symmetry(["translation"]),
    "relative offsets": PERMUTATIONS | Symmetry(["translation", "dilation"]),
    "offsets": PERMUTATIONS | Symmetry(["translation"]),
    "coordinates": PERMUTATIONS,
}
#: Random weights of rays, and products with invariants of the node.
WEIGHTS, PRODUCTS = 48, 6


def vector_residuals(
    names: Sequence[str],
    pack: Pack,
    rows: TargetRows,
    seed: int,
    lengths: bool,
    folds: int,
    fitted: Tensor | None = None,
) -> Tensor:
    """The targets minus their predictions on held-out graphs, `[R, v n]`.

    Args:
        names: Of :data:`VECTOR_RUNGS`, one or two that are read together.
        pack: The graphs.
        rows: One or more vectors in a row, `[R, v n]`.
        seed: Of weights and folds.
        lengths: Whether vectors grow with the coordinates, as displacements do.
        folds: Of the cross-validation.
        fitted: Which rows are fitted `[R]`, all if not given; the others are predicted too.
    """
    n = pack.dimension
    y = rows.y.view(len(rows.y), -1, n).transpose(1, 2).flatten(0, 1)  # [R n, v]
    fold = rows.folds(folds, seed).repeat_interleave(n)
    grams = [torch.zeros(len(y), len(y), dtype=torch.float64)]
    for name in names:
        if name != "no vector":
            parts = _grams(name, pack, rows, seed, lengths)
            grams = [one + part for one in grams for part in parts]
    if not bool(grams[0].any()):
        return rows.y
    each = None if fitted is None else fitted.repeat_interleave(n)
    off = y - predictions(grams, y, fold, centred=False, fitted=each)
    return off.view(len(rows.y), n, -1).transpose(1, 2).flatten(1)


def turned(rows: TargetRows, linear: Tensor, lengths: bool) -> TargetRows:
    """Vectors that go with the maps of their graphs."""
    matrices = linear[rows.graph]
    if not lengths:  # of a dilation, vectors keep their length
        size = matrices.square().sum((1, 2)).div(matrices.shape[1]).sqrt()
        matrices = matrices / size[:, None, None]
    vectors = rows.y.view(len(rows.y), -1, matrices.shape[1])
    return replace(rows, y=torch.einsum("rab,rvb->rva", matrices, vectors).flatten(1))


def _grams(name: str, pack: Pack, rows: TargetRows, seed: int, lengths: bool) -> list[Tensor]:
    """Kernels of the components of all rows, `[R n, R n]`, of mean 1 on the diagonal."""
    n, again = pack.dimension, name.endswith(AGAIN)
    name = name.removesuffix(AGAIN)
    number = list(VECTOR_RUNGS).index(name) + (500 if again else 0)
    generator = torch.Generator().manual_seed(1_000 * seed + number)
    if not {"lengths", "distances", "handed"} & set(name.split()):  # each component on its own
        scale = torch.ones(len(rows.y), dtype=torch.float64)
        if name.startswith("relative") and lengths:
            scale = pack.radius[rows.graph] / pack.radius.mean()
        found = []
        values = _features(pack, rows) if "field" in name else _scalars(name, pack, rows, generator)
        for gram in kernels(values)[: 1 if "field" in name else None]:
            constant = float(gram.diagonal().mean()) or 1.0
            gram = (gram + constant) * scale.unsqueeze(1) * scale
            found.append(torch.kron(gram, torch.eye(n, dtype=torch.float64)))
    else:
        relative = name.startswith("relative")
        sums = _sums(name, pack, generator, relative, relative and not lengths)
        if rows.place == "graph":
            sums = _of_graphs(pack, sums)[rows.graph]
        else:
            sums = sums[rows.nodes[0]]
        flat = sums.transpose(1, 2).flatten(0, 1)  # [R n, c]
        flat = flat / flat.square().mean(0).sqrt().clamp(min=1e-12)
        found = [flat @ flat.T / flat.shape[1]]
    return [gram / gram.diagonal().mean().clamp(min=1e-300) for gram in found]


def _features(pack: Pack, rows: TargetRows) -> Tensor:
    """Features of nodes, and nothing of coordinates: a field that is the same everywhere."""
    if rows.place == "graph":
        return standardised(pack.mean(pack.nodes)[rows.graph])
    return standardised(pack.nodes[rows.nodes[0]])


def _scalars(name: str, pack: Pack, rows: TargetRows, generator: torch.Generator) -> Tensor:
    """What a network without rotations makes of coordinates and velocities, for each row."""
    parts = CHANNELS[name].measure(pack)
    if pack.vel is not None:
        scale = pack.radius[pack.batch].unsqueeze(1) if name[0] == "r" else 1.0
        nodes = torch.arange(len(pack.pos))
        place = parts[0].values
        both = torch.cat([place, pack.vel / scale], 1)
        parts.append(Elements(pack.batch, (nodes,), both, pack.nodes, linear=True))
    else:
        first = parts[0]
        parts[0] = first._replace(linear=True)
    nodes = node_values(pack, parts, generator)
    whole = graph_values(pack, nodes)[rows.graph]
    return standardised(
        whole if rows.place == "graph" else torch.cat([nodes[rows.nodes[0]], whole], 1)
    )


def _sums(name: str, pack: Pack, generator: torch.Generator, relative: bool, unit: bool) -> Tensor:
    """Sums of rays with random invariant weights, at each node, `[N, c, n]`."""
    if "distances" in name:
        ends = torch.cat([pack.pairs, pack.pairs.flip(0)], 1)
    else:
        ends = pack.edges
    source, target = ends
    radius = pack.radius[pack.batch].unsqueeze(1)
    rays = pack.pos[source] - pack.pos[target]
    length = rays.norm(dim=1, keepdim=True)
    typical = radius[target] if relative else pack.radius.mean()
    known = torch.cat([pack.nodes[source], pack.nodes[target]], 1)
    if ends is pack.edges:
        known = torch.cat([known, pack.links], 1)
    weights = _weights(2 * length / typical, known, generator) / (0.3 + length / typical)
    if unit:
        rays = rays / length.clamp(min=1e-300)
    terms = (weights.unsqueeze(2) * rays.unsqueeze(1)).flatten(1)
    count = len(pack.pos)
    total = terms.new_zeros(count, terms.shape[1]).index_add_(0, target, terms)
    found = [total.view(count, WEIGHTS, -1)]
    scale = radius if unit else 1.0
    own = [pack.centred / scale] + ([pack.vel / scale] if pack.vel is not None else [])
    of_node = torch.cat([torch.ones(count, 1).double(), pack.nodes], 1)
    found += [of_node.unsqueeze(2) * vector.unsqueeze(1) for vector in own]
    sums = torch.cat(found, 1)
    sizes = sums.norm(dim=2) / (1.0 if unit else (radius if relative else pack.radius.mean()))
    invariants = _random(sizes / sizes.std(0).clamp(min=1e-12), PRODUCTS, generator)
    sums = torch.cat([sums, *(sums * invariants[:, k, None, None] for k in range(PRODUCTS))], 1)
    if name == "handed" and pack.dimension == 3:
        other = sums[:, torch.randperm(sums.shape[1], generator=generator)]
        sums = torch.cat([sums, torch.linalg.cross(sums, other, dim=2)], 1)
    elif name == "handed" and pack.dimension == 2:
        sums = torch.cat([sums, torch.stack([-sums[..., 1], sums[..., 0]], 2)], 1)
    return sums


def _of_graphs(pack: Pack, sums: Tensor) -> Tensor:
    """The means over nodes of each graph, with the features of the nodes, `[G, c, n]`."""
    found = [pack.mean(sums.flatten(1)).view(pack.size, *sums.shape[1:])]
    for column in pack.nodes.T:
        weighted = (sums[:, :WEIGHTS] * column[:, None, None]).flatten(1)
        found.append(pack.mean(weighted).view(pack.size, -1, sums.shape[2]))
    return torch.cat(found, 1)


def _weights(length: Tensor, known: Tensor, generator: torch.Generator) -> Tensor:
    """Random functions of a length, times random linear functions of features, `[M, WEIGHTS]`.

    A third of them do not read features.
    """
    rates = 1.5 * torch.randn(1, WEIGHTS, generator=generator, dtype=torch.float64)
    phase = 6.3 * torch.rand(WEIGHTS, generator=generator, dtype=torch.float64)
    mix = torch.randn(known.shape[1], WEIGHTS, generator=generator, dtype=torch.float64)
    mix = mix * (torch.rand(mix.shape, generator=generator) < 2 / max(known.shape[1], 2))
    mix[:, : WEIGHTS // 3] = 0.0
    return torch.cos(length @ rates + phase) * (1 + known @ mix)


def _random(values: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """Random functions of rows, `[M, k] -> [M, number]`."""
    mix = torch.randn(values.shape[1], number, generator=generator, dtype=torch.float64)
    phase = 6.3 * torch.rand(number, generator=generator, dtype=torch.float64)
    return torch.cos(values @ mix / max(values.shape[1], 1) ** 0.5 * 1.5 + phase)
