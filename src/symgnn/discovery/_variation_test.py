"""Christie and Aston's test: do near graphs have near targets, also after random transformations?

The permutation variant of the asymmetric variation test ("Estimating maximal symmetries of
regression functions via subgroup lattices", arXiv 2303.13616). Nothing is trained. If a target
`y = f(x) + noise` with continuous f keeps a group of isometries, then `|y_i - y_j|` over
`distance(x_i, x_j)` stays bounded as it was when every graph is moved by an element of its own. If
not, graphs with different targets come near to each other, and the largest ratio grows.

The data are split at random many times. In one half the largest ratio `|y_i - y_j| / (s + d(x_i,
x_j))` is taken as it is, in the other half after transformations; the p-value is the share of
splits in which the second is not larger. The offset s is for noise: see :func:`offset`.

The distance is that between the clouds of nodes, with their features, as distributions: the
maximum mean discrepancy of a Gaussian kernel, by random Fourier features. It does not depend on the
order of nodes, and rigid motions keep it. The test is therefore one of translations, rotations and
reflections, of targets of graphs; edges are not read.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from symgnn.discovery._packing import Pack
from symgnn.discovery._target_rows import TargetRows

#: Random splits, the functions by which clouds are compared, and at most so many graphs.
SPLITS, FUNCTIONS, MOST_GRAPHS = 99, 64, 300
#: The kinds that keep the distance.
ISOMETRIES = ("translation", "rotation", "reflection")


def variation_test(kind: str, pack: Pack, rows: TargetRows, seed: int) -> float | None:
    """The p-value that the targets keep a kind; None where the distance cannot be computed.

    Args:
        kind: Of transformations; a p-value is given for :data:`ISOMETRIES`.
        pack: The graphs.
        rows: Their targets; a p-value is given for targets of graphs that are no vectors.
        seed: Of splits, transformations and functions.
    """
    if kind not in ISOMETRIES or rows.place != "graph" or rows.vectors:
        return None
    generator = torch.Generator().manual_seed(7_000 + seed)
    chosen = torch.randperm(pack.size, generator=generator)[:MOST_GRAPHS]
    present = torch.zeros(pack.size, dtype=torch.bool)
    present[rows.graph] = True  # graphs without targets have no row
    chosen = chosen[present[chosen]].sort().values
    if len(chosen) < 8:
        return None
    target = torch.zeros(pack.size, rows.y.shape[1], dtype=torch.float64)
    target[rows.graph] = rows.y
    cloud = _Clouds(pack, chosen, generator)
    y = target[chosen]
    ratio_offset = offset(torch.cdist(cloud.values(cloud.x), cloud.values(cloud.x)), _gaps(y))
    count = 0
    for _ in range(SPLITS):
        half = torch.randperm(len(chosen), generator=generator) < len(chosen) // 2
        image = moved_clouds(kind, cloud, generator)
        before = largest(cloud.values(cloud.x, half), y[half], ratio_offset)
        after = largest(cloud.values(image, ~half), y[~half], ratio_offset)
        count += after <= before
    return (1 + count) / (SPLITS + 1)


def largest(values: Tensor, y: Tensor, ratio_offset: float) -> float:
    """The largest `|y_i - y_j| / (s + d_ij)` over pairs; copies of one graph are left out."""
    distance = torch.cdist(values, values)
    pairs = distance > 0
    if not bool(pairs.any()):
        return 0.0
    return float((_gaps(y)[pairs] / (ratio_offset + distance[pairs])).max())


def offset(distance: Tensor, gaps: Tensor) -> float:
    """The s of the ratio: where the upper hull of `|y_i - y_j|` over `d_ij` meets the axis.

    The line goes from the pair of the largest ratio to the next corner of the hull; s is 0 if it
    meets the axis on the right of 0. With noise the nearest graphs have the largest ratios, and s
    keeps these from deciding alone.
    """
    pairs = distance > 0
    d, y = distance[pairs], gaps[pairs]
    if not len(d):
        return 0.0
    first = int((y / d).argmax())
    further = d > d[first]
    if not bool(further.any()):
        return 0.0
    slope = float(((y[further] - y[first]) / (d[further] - d[first])).max())
    return max(0.0, float(y[first]) / slope - float(d[first])) if slope > 0 else 0.0


def _gaps(y: Tensor) -> Tensor:
    """`|y_i - y_j|`, `[G, t] -> [G, G]`."""
    return torch.cdist(y, y)


class _Clouds:
    """The nodes of some graphs, and what random functions make of them."""

    def __init__(self, pack: Pack, graphs: Tensor, generator: Generator) -> None:
        number = torch.full((pack.size,), -1)
        number[graphs] = torch.arange(len(graphs))
        keep = number[pack.batch] >= 0
        self.batch, self.size = number[pack.batch][keep], len(graphs)
        self.x, self.features = pack.pos[keep], pack.nodes[keep]
        self.radius = pack.radius[graphs]
        self.counts = torch.bincount(self.batch, minlength=self.size).clamp(min=1)
        scale = self.radius.square().mean().sqrt()
        n, known = self.x.shape[1], self.features.shape[1]
        self.mix = torch.randn(n, FUNCTIONS, generator=generator, dtype=torch.float64) / scale
        of_features = torch.randn(known, FUNCTIONS, generator=generator, dtype=torch.float64)
        phase = 2 * math.pi * torch.rand(FUNCTIONS, generator=generator, dtype=torch.float64)
        self.known = (self.features @ of_features + phase).float()

    def values(self, x: Tensor, graphs: Tensor | None = None) -> Tensor:
        """The mean of the functions over the nodes of each graph, `[G, FUNCTIONS]`."""
        batch, known, size, counts = self.batch, self.known, self.size, self.counts
        if graphs is not None:
            keep = graphs[batch]
            place = graphs.cumsum(0) - 1
            x, batch, known = x[keep], place[batch[keep]], known[keep]
            size, counts = int(graphs.sum()), counts[graphs]
        made = torch.cos((x @ self.mix).float() + known)
        total = made.new_zeros(size, FUNCTIONS).index_add_(0, batch, made)
        return total.double() / counts.unsqueeze(1) * math.sqrt(2 / FUNCTIONS)


def moved_clouds(kind: str, cloud: _Clouds, generator: Generator) -> Tensor:
    """Coordinates after a random element for each graph, as `symgnn.geometry` draws them."""
    n, size = cloud.x.shape[1], cloud.size
    direction = torch.randn(size, n, generator=generator, dtype=torch.float64)
    direction = direction / direction.norm(dim=1, keepdim=True).clamp(min=1e-300)
    if kind == "translation":
        length = cloud.radius * (0.5 + 1.5 * torch.rand(size, generator=generator).double())
        return cloud.x + (length.unsqueeze(1) * direction)[cloud.batch]
    if kind == "reflection":  # of every second graph: the group has two halves
        direction = direction * (torch.rand(size, 1, generator=generator) < 0.5)
        normal = direction[cloud.batch]
        return cloud.x - 2 * (cloud.x * normal).sum(1, keepdim=True) * normal
    q, r = torch.linalg.qr(torch.randn(size, n, n, generator=generator, dtype=torch.float64))
    q = q * torch.where(torch.diagonal(r, dim1=1, dim2=2) < 0, -1.0, 1.0).unsqueeze(1)
    q[:, :, 0] *= torch.linalg.det(q).sign().unsqueeze(1)
    return torch.einsum("na,nba->nb", cloud.x, q[cloud.batch])
