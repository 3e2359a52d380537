"""Are the inputs spread over the orbit? A randomisation test, and a classifier's accuracy.

For a compact group the coordinates x and g x have the same law if, and only if, x is spread evenly
over its orbits. Then the data and their randomised copies can be exchanged, and the place of the
data among the copies gives a p-value that is exact for any number of graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from symgnn.discovery._channels import CHANNELS, handedness
from symgnn.discovery._even_draws import Bridges, random_rotations, shuffled
from symgnn.discovery._moving import moved
from symgnn.discovery._packing import Pack, pack
from symgnn.discovery._random_layers import graph_values, node_values
from symgnn.discovery._ridge import kernels, predictions, standardised
from symgnn.discovery._told_apart import told_apart

#: Randomised copies of the data.
COPIES = 199
#: At most so many graphs have their torsion angles drawn anew.
TORSION_GRAPHS = 200
#: At most so many graphs train and test the classifier; fewer of flexes, which take long.
MOST_GRAPHS, MOST_FLEXED = 500, 300
#: What the classifier reads to tell a graph from its image.
SEEN: dict[str, tuple[str, ...]] = {
    "permutation": ("order",),
    "translation": ("coordinates",),
    "rotation": ("offsets",),
    "reflection": ("relative handedness",),
    "dilation": ("lengths", "pairs"),
    "inversion": ("lengths", "angles", "pairs"),
    "special-conformal": ("lengths", "angles", "pairs"),
    "affine": ("lengths", "angles", "pairs"),
    "torsion": ("dihedrals", "pairs"),
    "flex": ("angles", "pairs"),
    "redrawing": ("lengths", "pairs"),
}
#: A network is trained too to tell graphs from turned ones, where there are so many graphs.
NETWORK_GRAPHS, NETWORK_STEPS = 200, 250
COMPACT = ("permutation", "rotation", "reflection", "torsion")


@dataclass(frozen=True)
class SpreadFinding:
    """Whether inputs are spread over the orbits of a kind of transformation."""

    accuracy: float  # of telling held-out graphs from transformed ones; 0.5 if spread evenly
    interval: tuple[float, float]  # 90 %
    p_value: float | None  # exact, that they are spread; None if the group is not compact
    how: str


def spread_of(
    kind: str,
    packed: Pack,
    graphs: Sequence[Data],
    seed: int,
    even: Sequence[float] | None = None,
) -> SpreadFinding:
    """Test one kind; `even` is the result of the randomisation test, for compact groups."""
    accuracy, count = classifier_accuracy(kind, packed, graphs, seed)
    error = 1.645 * math.sqrt(max(accuracy * (1 - accuracy), 0.25 / count) / count)
    interval = max(0.0, accuracy - error), min(1.0, accuracy + error)
    by = ""
    if kind == "rotation" and len(graphs) >= NETWORK_GRAPHS:
        found = told_apart(graphs, steps=NETWORK_STEPS, seed=seed, progress=False)
        if found.accuracy > accuracy:
            accuracy, interval, by = found.accuracy, found.interval, "accuracy of a network; "
    if even is None:
        how = "not a compact group: against random elements of symgnn.geometry, no p-value"
        return SpreadFinding(accuracy, interval, None, how)
    how = f"{by}exact randomisation test, {even[1]:.0f} copies"
    return SpreadFinding(accuracy, interval, even[0], how)


def classifier_accuracy(
    kind: str, packed: Pack, graphs: Sequence[Data], seed: int
) -> tuple[float, int]:
    """The accuracy on graphs and images of folds that were left out, and how many there are."""
    most = MOST_FLEXED if kind == "flex" else MOST_GRAPHS
    if packed.size > most:
        graphs = graphs[:most]
        packed = pack(graphs, torch.Generator().manual_seed(seed))
    image, _ = moved(kind, packed, graphs, seed + 1)
    both = together(packed, image)
    blocks = []
    for name in SEEN[kind]:
        generator = torch.Generator().manual_seed(seed)
        parts = CHANNELS[name].measure(both)
        blocks.append(graph_values(both, node_values(both, parts, generator)))
    values = standardised(torch.cat(blocks, 1))
    generator = torch.Generator().manual_seed(seed)
    # a graph and its image are in one fold: otherwise the one would be told by the other
    folds = (torch.randperm(packed.size, generator=generator) % 5).repeat(2)
    label = torch.ones(2 * packed.size, 1, dtype=torch.float64)
    label[packed.size :] = -1
    scores = predictions(kernels(values), label, folds)
    right = (scores > 0) == (label > 0)
    return float(right.double().mean()), len(label)


def together(one: Pack, other: Pack) -> Pack:
    """Two packs as one."""
    nodes = len(one.pos)
    edges: dict[str, Any] = {}
    for name in ("edges", "angles", "pairs", "chains"):
        edges[name] = torch.cat([getattr(one, name), getattr(other, name) + nodes], 1)
    for name in ("pos", "hops", "nodes", "links", "order"):
        edges[name] = torch.cat([getattr(one, name), getattr(other, name)])
    batch = torch.cat([one.batch, other.batch + one.size])
    return Pack(batch=batch, size=one.size + other.size, **edges)


def randomisation_test(
    kind: str, packed: Pack, graphs: Sequence[Data], seed: int
) -> tuple[float, int]:
    """The exact p-value that inputs are spread evenly, and the number of copies."""
    generator = torch.Generator().manual_seed(seed + 2)
    summaries: dict[str, Callable[[Pack, Sequence[Data], Generator], tuple[Tensor, Tensor]]] = {
        "rotation": _rotated,
        "rotation about the origin": partial(_rotated, origin=True),
        "reflection": _mirrored,
        "permutation": _relabelled,
        "torsion": _twisted,
    }
    original, copies = summaries[kind](packed, graphs, generator)
    return randomisation_p(original, copies), len(copies)


def randomisation_p(original: Tensor, copies: Tensor) -> float:
    """`(1 + count) / (B + 1)`: how many copies are as far from the mean of all as the original.

    `original [k]`, `copies [B, k]`. The statistic treats the original and the copies alike, so the
    p-value is exact where these can be exchanged.
    """
    every = torch.cat([original.unsqueeze(0), copies])
    centred = every - every.mean(0)
    spread = centred.square().mean(0).sqrt()
    varies = spread > 1e-12 * every.abs().amax(0).clamp(min=1e-300)
    size = (centred[:, varies] / spread[varies]).square().sum(1)
    count = int((size[1:] >= size[0] * (1 - 1e-12)).sum())
    return (1 + count) / (len(copies) + 1)


def _node_functions(
    p: Pack, generator: Generator, size: float
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Means over graphs of random functions of coordinates of a typical size, and features."""
    features = p.nodes
    mix = torch.randn(p.dimension, 48, generator=generator, dtype=torch.float64)
    mix = mix * torch.logspace(-0.3, 0.3, 48, dtype=torch.float64) / size
    of_features = torch.randn(features.shape[1], 48, generator=generator, dtype=torch.float64)
    phase = 6.3 * torch.rand(48, generator=generator, dtype=torch.float64)
    known = features @ of_features / max(features.shape[1], 1) ** 0.5 + phase
    weight = (1 / p.counts.double())[p.batch].unsqueeze(1)

    def summary(x: Tensor) -> Tensor:
        return (weight * torch.cos(x @ mix + known)).sum(0)

    return summary, weight


def _rotated(
    p: Pack, graphs: Sequence[Data], generator: Generator, origin: bool = False
) -> tuple[Tensor, Tensor]:
    """Of coordinates about the centroids, or about the origin, where places turn too."""
    x = p.pos if origin else p.centred
    size = p.pos.square().sum(1).mean().sqrt() if origin else p.radius.mean()
    summary, _ = _node_functions(p, generator, float(size))
    found = []
    for _ in range(COPIES):
        q = random_rotations(p.size, p.dimension, generator)
        found.append(summary(torch.einsum("na,nba->nb", x, q[p.batch])))
    return summary(x), torch.stack(found)


def _mirrored(p: Pack, graphs: Sequence[Data], generator: Generator) -> tuple[Tensor, Tensor]:
    """Of numbers that change sign in a mirror and with nothing else."""
    whole, local = handedness(p)
    values = torch.cat([whole, p.mean(local)], 1)
    values = torch.cat([values, values.sign()], 1)
    signs = torch.randint(2, (COPIES, p.size), generator=generator).double() * 2 - 1
    return values.mean(0), signs @ values / p.size


def _relabelled(p: Pack, graphs: Sequence[Data], generator: Generator) -> tuple[Tensor, Tensor]:
    _, weight = _node_functions(p, generator, 1.0)
    around = torch.bincount(p.edges[1], minlength=len(p.pos)).double().unsqueeze(1)
    known = torch.cat([p.centred / p.radius.mean(), p.nodes, around], 1)
    known = torch.cat([known, p.centred.norm(dim=1, keepdim=True)], 1) * weight

    def summary(order: Tensor) -> Tensor:
        place = torch.stack([order - 0.5, (order - 0.5).square()])
        return (place @ known).flatten()

    found = [summary(shuffled(p, generator)) for _ in range(COPIES)]
    return summary(p.order), torch.stack(found)


def _twisted(p: Pack, graphs: Sequence[Data], generator: Generator) -> tuple[Tensor, Tensor]:
    """Of dihedral angles, with all bridges turned in every copy."""
    some = graphs[:TORSION_GRAPHS]
    small = p if len(some) == len(graphs) else pack(some, generator, features=False)
    bridges = Bridges(small)
    mix = torch.randn(3, 24, generator=generator, dtype=torch.float64)
    phase = 6.3 * torch.rand(24, generator=generator, dtype=torch.float64)

    def summary(pos: Tensor) -> Tensor:
        part = CHANNELS["dihedrals"].measure(replace(small, pos=pos))[1]
        made = torch.cos(part.values * part.values.new_tensor([2.0, 1.0, 1.0]) @ mix + phase)
        total = made.new_zeros(small.size, 24).index_add_(0, part.graph, made)
        times = torch.bincount(part.graph, minlength=small.size).clamp(min=1).unsqueeze(1)
        return (total / times).mean(0)

    found = [summary(bridges.turned(small.pos, generator)) for _ in range(COPIES)]
    return summary(small.pos), torch.stack(found)
