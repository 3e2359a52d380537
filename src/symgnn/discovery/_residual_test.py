"""Do the residuals of a rung depend on a transformation that the rung cannot see?

An effect that is small beside what no rung explains is lost in the comparison of errors: a rung
that sees more also has more to learn, and may be worse for it. Here nothing is trained again. The
residuals of an invariant rung stay what they are when every graph is transformed on its own (those
of an equivariant rung go with the map). If the inputs are spread evenly over the orbits and the
targets keep the kind, then graphs and residuals have the same law before and after. The sums of
products of residuals with random functions of the coordinates are therefore compared with those of
transformed copies, and the p-value is exact for any number of graphs.

The groups are compact: rotations about the centroid, reflections, permutations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from symgnn.discovery._channels import handedness
from symgnn.discovery._moving import random_rotations, shuffled
from symgnn.discovery._packing import Pack
from symgnn.discovery._target_rows import TargetRows

#: The kinds that are tested.
TESTED = ("permutation", "rotation", "reflection")
#: Copies that scale the statistic, and at most so many that it is compared with; the comparison
#: ends sooner when so many copies are as large as the data (Besag and Clifford's sequential test).
PILOT, COPIES, ENOUGH = 50, 399, 10
#: Random functions of coordinates.
FUNCTIONS = 32


def residual_test(
    kind: str, pack: Pack, rows: TargetRows, residuals: Tensor, seed: int
) -> float | None:
    """The p-value that residuals do not depend on a kind; None where there is no test.

    Args:
        kind: Of :data:`TESTED`.
        pack: The graphs.
        rows: Their targets.
        residuals: Of a rung that keeps the kind, on held-out graphs, `[R, t]`.
        seed: Of copies and functions.
    """
    generator = torch.Generator().manual_seed(9_000 + seed)
    if kind == "rotation":
        draw = _turning(pack, rows, residuals, generator)
    elif kind == "reflection" and not rows.vectors and rows.place != "edge":
        draw = _mirroring(pack, rows, residuals, generator)
    elif kind == "permutation":
        draw = _reordering(pack, rows, residuals, generator)
    else:
        return None
    return sequential_p(draw)


#: Pairs `[M, a]`, `[M, b]`, of the data (False) or of a new copy (True): the numbers of a block are
#: the sums over M of their products.
Draw = Callable[[bool], list[tuple[Tensor, Tensor]]]


def _sums(pairs: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    return [(one.T @ other).flatten() for one, other in pairs]


def sequential_p(draw: Draw) -> float:
    """The share of copies whose statistic is as large as that of the data.

    The statistic is the largest of the blocks: each is the sum of squares of its numbers, after all
    were scaled by the mean and deviation of copies that are not used again. Sums that are the same
    for all copies but for rounding are left out.
    """
    copies = [_sums(draw(True)) for _ in range(PILOT)]
    pilot = [torch.stack(block) for block in zip(*copies, strict=True)]
    means, deviations = [b.mean(0) for b in pilot], [b.std(0) for b in pilot]
    terms = _sums([(one.abs(), other.abs()) for one, other in draw(False)])
    varies = [d > 1e-9 * t for d, t in zip(deviations, terms, strict=True)]
    if not any(bool(each.any()) for each in varies):
        return 1.0

    def sizes(blocks: Sequence[Tensor]) -> Tensor:
        """The sum of squares of each block `[..., k]`."""
        found = []
        for values, mean, deviation, kept in zip(blocks, means, deviations, varies, strict=True):
            scaled = (values - mean)[..., kept] / deviation[kept]
            found.append(scaled.square().sum(-1))
        return torch.stack(found)

    typical = sizes(pilot)
    middle, width = typical.mean(1), typical.std(1)
    used = width > 0
    if not bool(used.any()):
        return 1.0

    def statistic(blocks: Sequence[Tensor]) -> float:
        return float(((sizes(blocks) - middle) / width)[used].max())

    known, count = statistic(_sums(draw(False))), 0
    for number in range(1, COPIES + 1):
        count += statistic(_sums(draw(True))) >= known * (1 - 1e-12)
        if count == ENOUGH:
            return count / number
    return (1 + count) / (COPIES + 1)


def _elements(pack: Pack, rows: TargetRows) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The row of each element, its weight, its vectors `[M, n]` side by side and its features."""
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
        return row[pack.batch[nodes]], weight, found, pack.nodes[nodes]
    one, other = rows.nodes
    ones = torch.ones(len(number), dtype=torch.float64)
    if rows.place == "node":
        return number, ones, torch.stack([v[one] for v in vectors], 1), pack.nodes[one]
    rays = torch.stack([v[one] - v[other] for v in vectors], 1)
    return number, ones, rays, torch.cat([pack.nodes[one], pack.nodes[other]], 1)


def _turning(p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator) -> Draw:
    row, weight, vectors, features = _elements(p, rows)
    graph = rows.graph[row]
    weighted = residuals[row] * weight.unsqueeze(1)
    width = vectors.shape[1] * p.dimension
    mix = torch.randn(width, FUNCTIONS, generator=generator, dtype=torch.float64)
    of_features = torch.randn(features.shape[1], FUNCTIONS, generator=generator).double()
    of_features = of_features / max(features.shape[1], 1) ** 0.5
    phase = 6.3 * torch.rand(FUNCTIONS, generator=generator, dtype=torch.float64)
    known = features @ of_features + phase
    beside = torch.cat([torch.ones(len(features), 1).double(), features], 1)
    upper = torch.triu_indices(width, width)

    def draw(copy: bool) -> list[tuple[Tensor, Tensor]]:
        x, r = vectors, weighted
        if copy:
            q = random_rotations(p.size, p.dimension, generator)[graph]
            x = torch.einsum("mab,mvb->mva", q, x)
            if rows.vectors:
                r = torch.einsum("mab,mvb->mva", q, r.view(len(r), -1, p.dimension)).flatten(1)
        flat = x.flatten(1)
        linear = (beside.unsqueeze(2) * flat.unsqueeze(1)).flatten(1)
        square = flat[:, upper[0]] * flat[:, upper[1]]
        blocks = [torch.cat([linear, square], 1), torch.cos(flat @ mix + known)]
        if rows.vectors:
            blocks.append(beside)
        return [(r, block) for block in blocks]

    return draw


def _mirroring(p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator) -> Draw:
    whole, local = handedness(p)
    if rows.place == "graph":
        values = torch.cat([whole, p.mean(local)], 1)[rows.graph]
    else:
        values = torch.cat([whole[rows.graph], local[rows.nodes[0]]], 1)
    values = torch.cat([values, values.sign()], 1)

    def draw(copy: bool) -> list[tuple[Tensor, Tensor]]:
        signs = torch.ones(p.size, dtype=torch.float64)
        if copy:
            signs = torch.randint(2, (p.size,), generator=generator).double() * 2 - 1
        return [(residuals * signs[rows.graph].unsqueeze(1), values)]

    return draw


def _reordering(p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator) -> Draw:
    row, weight, vectors, features = _elements(p, rows)
    weighted = residuals[row] * weight.unsqueeze(1)
    if rows.vectors:  # components along the vectors of the node, which no rotation changes
        each = weighted.view(len(weighted), -1, p.dimension)
        weighted = torch.einsum("mwa,mva->mwv", each, vectors).flatten(1)
    sizes = vectors.norm(dim=2)
    beside = torch.cat([torch.ones(len(features), 1).double(), features, sizes], 1)
    known = (weighted.unsqueeze(2) * beside.unsqueeze(1)).flatten(1)
    if rows.place == "graph":
        chosen = torch.zeros(p.size, dtype=torch.bool)
        chosen[rows.graph] = True
        ends = [chosen[p.batch].nonzero().flatten()]
    else:
        ends = list(rows.nodes) if rows.place == "edge" else [rows.nodes[0]]

    def draw(copy: bool) -> list[tuple[Tensor, Tensor]]:
        order = (shuffled(p, generator) if copy else p.order) - 0.5
        places = [place for end in ends for place in (order[end], order[end].square())]
        return [(torch.stack(places, 1), known)]

    return draw
