"""The ladder: what rungs of the lattice predict, each from the channels that it may read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from symgnn.discovery._channels import CHANNELS
from symgnn.discovery._packing import Pack
from symgnn.discovery._random_layers import edge_values, graph_values, node_values
from symgnn.discovery._ridge import kernels, predictions, standardised
from symgnn.discovery._target_rows import TargetRows
from symgnn.geometry import Symmetry

#: Ends the name of a channel or rung that is read a second time, with other random weights.
AGAIN = " again"
#: Between the names of rungs that are read together, and of one with the order of nodes.
AND, ORDER = " + ", " and order"


class Rung(NamedTuple):
    """Channels that are read together, beside the graph and its features, which all rungs read."""

    name: str
    channels: tuple[str, ...]

    @property
    def symmetry(self) -> Symmetry:
        """The maps that keep all of its channels."""
        names = ("topology", *(name.removesuffix(AGAIN) for name in self.channels))
        kept = [CHANNELS[name].symmetry for name in names]
        return reduce(lambda one, other: one & other, kept)


#: From the most symmetric down. Each has a network with the same symmetry where there is one.
RUNGS: dict[str, Rung] = {
    name: Rung(name, channels)
    for name, channels in {
        "graph alone": (),
        "angles": ("angles",),
        "kappa": ("kappa",),
        "relative lengths": ("relative lengths",),
        "lengths": ("lengths",),
        "affine": ("affine pairs",),
        "directions": ("angles", "dihedrals"),
        "lengths and angles": ("lengths", "angles", "stars"),
        "similarity": ("angles", "relative lengths", "dihedrals", "relative pairs"),
        "distances": ("pairs",),
        "shape": ("lengths", "angles", "stars", "dihedrals", "pairs"),
        "handed similarity": ("relative handedness",),
        "handed angles": ("angles", "dihedrals", "relative handedness"),
        "handed": ("handedness",),
        "handed shape": ("lengths", "angles", "pairs", "handedness"),
        "about the origin": ("pairs", "radii"),
        "relative offsets": ("relative offsets",),
        "offsets": ("offsets",),
        "coordinates": ("coordinates",),
    }.items()
}
#: Folds of the cross-validation.
FOLDS = 5


def channel_rows(name: str, pack: Pack, rows: TargetRows, seed: int) -> Tensor:
    """What a channel gives for each row of the targets, `[R, k]`, standardised."""
    again = name.endswith(AGAIN)
    name = name.removesuffix(AGAIN)
    number = list(CHANNELS).index(name) + (500 if again else 0)
    generator = torch.Generator().manual_seed(1_000 * seed + number)
    parts = CHANNELS[name].measure(pack)
    nodes = node_values(pack, parts, generator)
    if rows.place == "graph":
        found = graph_values(pack, nodes)[rows.graph]
    elif rows.place == "node":
        found = torch.cat([nodes[rows.nodes[0]], graph_values(pack, nodes)[rows.graph]], 1)
    else:
        one, other = nodes[rows.nodes[0]], nodes[rows.nodes[1]]
        ends = torch.cat([one + other, (one - other).abs(), one * other], 1)
        return weighed([ends, *edge_values(pack, parts, rows.nodes, generator)])
    return standardised(found)


def weighed(blocks: Sequence[Tensor]) -> Tensor:
    """Standardised blocks of columns that weigh the same, however many columns each has."""
    each = [found for found in map(standardised, blocks) if found.shape[1]]
    columns = sum(found.shape[1] for found in each)
    empty = torch.zeros(len(blocks[0]), 0, dtype=torch.float64)
    scaled = [found * math.sqrt(columns / (len(each) * found.shape[1])) for found in each]
    return torch.cat([empty, *scaled], 1)


def rung_residuals(
    rung: Rung,
    pack: Pack,
    rows: TargetRows,
    seed: int,
    cache: dict[str, Tensor] | None = None,
    fitted: Tensor | None = None,
) -> Tensor:
    """The targets minus their predictions on held-out graphs, `[R, t]`.

    Args:
        rung: The channels that are read.
        pack: The graphs.
        rows: Their targets.
        seed: Of random weights and folds.
        cache: Of rows of channels.
        fitted: Which rows are fitted `[R]`, all if not given; the others are predicted too.
    """
    cache = {} if cache is None else cache
    blocks = []
    for name in ("topology", *rung.channels):
        if name not in cache:
            cache[name] = channel_rows(name, pack, rows, seed)
        found = cache[name]
        if found.shape[1]:  # every channel weighs the same, however many numbers it has
            blocks.append(found / math.sqrt(found.shape[1]))
    together = torch.cat([torch.zeros(len(rows.y), 0, dtype=torch.float64), *blocks], 1)
    together = together * math.sqrt(max(together.shape[1], 1) / max(len(blocks), 1))
    folds = rows.folds(FOLDS, seed)
    return rows.y - predictions(kernels(together), rows.y, folds, fitted=fitted)
