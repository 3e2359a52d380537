"""Networks of a rung with random weights: what they make of a graph is a list of numbers.

A channel's elements go through one random layer and are summed at their nodes; the sums of a node
go through a second one, and both are averaged over the graph. A linear map of the result is a
network of the rung in which only the last layer is trained.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from symgnn.discovery._channels import Elements
from symgnn.discovery._packing import Pack

#: Random functions of the first and of the second layer.
FIRST, SECOND = 64, 48
#: Elements that are in memory at once.
CHUNK = 400_000


def node_values(pack: Pack, parts: list[Elements], generator: Generator) -> Tensor:
    """What the elements of a channel give at each node, `[N, k]`.

    The first layer's functions are averaged over the elements of a node (and summed, over the
    average number of terms), the second layer's are functions of these.
    """
    nodes, found = len(pack.pos), []
    for part in parts:
        values = _standardised(part.values)
        known = torch.cat([values, part.features], 1).float()
        if known.shape[1] == 0:
            continue
        mix, phase = _first_layer(values.shape[1], part.features.shape[1], generator)
        total = torch.zeros(nodes, FIRST)
        times = torch.zeros(nodes)
        for start in range(0, len(known), CHUNK):
            rows = slice(start, start + CHUNK)
            made = torch.cos(known[rows] @ mix + phase)
            for owner in part.owners:
                total.index_add_(0, owner[rows], made)
                times.index_add_(0, owner[rows], torch.ones(len(made)))
        found.append(total / times.mean().clamp(min=1e-6))
        if part.linear:
            direct = torch.zeros(nodes, part.values.shape[1])
            found.append(direct.index_add_(0, part.owners[0], part.values.float()))
    if not found:
        return torch.zeros(nodes, 0)
    first = torch.cat(found, 1)
    scaled = _standardised(first)
    mix = torch.randn(scaled.shape[1], SECOND, generator=generator) / math.sqrt(scaled.shape[1])
    second = torch.cos(1.5 * scaled @ mix + 2 * math.pi * torch.rand(SECOND, generator=generator))
    return torch.cat([first, second], 1)


def graph_values(pack: Pack, nodes: Tensor) -> Tensor:
    """The mean over the nodes of each graph, and the sum over the average number, `[G, 2 k]`."""
    total = nodes.new_zeros(pack.size, nodes.shape[1]).index_add_(0, pack.batch, nodes)
    counts = pack.counts.float().unsqueeze(1)
    if bool((pack.counts == pack.counts[0]).all()):
        return total / counts
    return torch.cat([total / counts.clamp(min=1), total / counts.mean()], 1)


def _first_layer(values: int, features: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Weights of several scales, so that smooth and rough functions are among them."""
    scales = torch.logspace(math.log10(0.3), math.log10(3.0), FIRST)
    of_values = torch.randn(values, FIRST, generator=generator) * scales / math.sqrt(max(values, 1))
    reads = torch.rand(FIRST, generator=generator) < 0.6  # the others do not see features
    of_features = torch.randn(features, FIRST, generator=generator) / math.sqrt(max(features, 1))
    of_features = of_features * (reads if values else torch.ones(FIRST))
    phase = 2 * math.pi * torch.rand(FIRST, generator=generator)
    return torch.cat([of_values * math.sqrt(max(values, 1)), of_features]), phase


def _standardised(values: Tensor) -> Tensor:
    centred = values - values.mean(0)
    spread = centred.square().mean(0).sqrt()
    return centred / torch.where(spread > 1e-12, spread, 1.0)


def edge_values(
    pack: Pack, parts: list[Elements], ends: Tensor, generator: Generator
) -> list[Tensor]:
    """What a channel measures on given edges alone, and through one random layer, `[R, k]` each.

    Args:
        pack: The graphs.
        parts: The elements of a channel; those that are not edges are passed over.
        ends: The nodes of each given edge `[2, R]`.
        generator: Of the weights.
    """
    nodes = len(pack.pos)
    key = pack.edges[1] * nodes + pack.edges[0]
    place = torch.searchsorted(key, ends[1] * nodes + ends[0]).clamp(max=len(key) - 1)
    found = []
    for part in parts:
        if not part.edges:
            continue
        values = _standardised(part.values)
        mix, phase = _first_layer(values.shape[1], part.features.shape[1], generator)
        known = torch.cat([values, part.features], 1)[place].float()
        found += [values[place].float(), torch.cos(known @ mix + phase)]
    return found
