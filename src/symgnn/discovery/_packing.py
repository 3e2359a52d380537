"""Many graphs as one set of arrays, with the pairs, angles and chains of nodes in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from symgnn.discovery._listed_elements import MOST_ELEMENTS, angles_of, chains_of, pairs_of

#: At most so many numbers describe the features of a node or an edge.
MOST_FEATURES = 8


@dataclass(frozen=True)
class Pack:
    """Graphs one after the other.

    The elements of a graph are lists of its nodes: edges `[2, E]` (in both directions, each once),
    angles `[3, A]` (first, vertex, second; each once), pairs `[2, P]` (each once) and chains of
    three edges `[4, C]` (each once). None depends on coordinates.
    """

    pos: Tensor  # [N, n], float64
    batch: Tensor  # [N], the number of each node's graph
    size: int  # the number of graphs
    edges: Tensor  # [2, E]
    angles: Tensor  # [3, A]
    pairs: Tensor  # [2, P]
    hops: Tensor  # [P], edges between the nodes of a pair; 4 for more than 3
    chains: Tensor  # [4, C]
    nodes: Tensor  # [N, F], standardised features and the degree
    links: Tensor  # [E, F], standardised features of edges
    order: Tensor  # [N], the place of each node in its graph, from 0 to 1
    vel: Tensor | None = None  # [N, n], velocities, which turn with the coordinates
    sampled: tuple[str, ...] = ()  # sets of which only some are taken

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return self.pos.shape[1]

    @cached_property
    def counts(self) -> Tensor:
        """The number of nodes of each graph, `[G]`."""
        return torch.bincount(self.batch, minlength=self.size)

    @cached_property
    def starts(self) -> Tensor:
        """The number of the first node of each graph, `[G]`."""
        return self.counts.cumsum(0) - self.counts

    @cached_property
    def centred(self) -> Tensor:
        """Coordinates minus the centroid of each graph, `[N, n]`."""
        return self.pos - self.mean(self.pos)[self.batch]

    @cached_property
    def radius(self) -> Tensor:
        """The root mean square distance to the centroid, `[G]`; 1 where it is 0."""
        square = self.mean(self.centred.square().sum(1, keepdim=True)).squeeze(1)
        return torch.where(square > 0, square, 1.0).sqrt()

    def mean(self, values: Tensor) -> Tensor:
        """The mean over the nodes of each graph, `[N, k] -> [G, k]`."""
        total = values.new_zeros(self.size, values.shape[1]).index_add_(0, self.batch, values)
        return total / self.counts.clamp(min=1).unsqueeze(1)


def pack(graphs: Sequence[Data], generator: Generator, features: bool = True) -> Pack:
    """Put graphs together.

    Args:
        graphs: Graphs with `pos` and `edge_index`.
        generator: Chooses among elements where there are too many.
        features: Whether `x`, `z` and `edge_attr` are read.
    """
    parts: dict[str, list[Tensor]] = {name: [] for name in ("edges", "angles", "pairs", "chains")}
    hops, order, links, first = [], [], [], 0
    sampled: set[str] = set()
    for graph in graphs:
        count = graph.pos.shape[0]
        edges, attributes = both_ways(graph, features)
        angles, some_angles = angles_of(edges, count, generator)
        chains, some_chains = chains_of(edges, count, generator)
        pairs, between, some_pairs = pairs_of(edges, count, generator)
        some = {"angles": some_angles, "chains": some_chains, "pairs": some_pairs}
        sampled |= {name for name, drawn in some.items() if drawn}
        found = {"edges": edges, "angles": angles, "chains": chains, "pairs": pairs}
        for name, elements in found.items():
            if name != "edges" and elements.shape[1] > MOST_ELEMENTS:
                kept = torch.randperm(elements.shape[1], generator=generator)[:MOST_ELEMENTS]
                elements = elements[:, kept]
                between = between[kept] if name == "pairs" else between
                sampled.add(name)
            parts[name].append(elements + first)
        hops.append(between)
        links.append(attributes)
        order.append(torch.arange(count, dtype=torch.float64) / max(count - 1, 1))
        first += count
    pos = torch.cat([graph.pos.double() for graph in graphs])
    sizes = torch.tensor([graph.pos.shape[0] for graph in graphs])
    edges = torch.cat(parts["edges"], 1)
    degree = torch.bincount(edges[1], minlength=len(pos)).double().unsqueeze(1)
    nodes = [degree] + ([node_features(graphs)] if features else [])
    return Pack(
        pos=pos,
        batch=torch.arange(len(graphs)).repeat_interleave(sizes),
        size=len(graphs),
        edges=edges,
        angles=torch.cat(parts["angles"], 1),
        pairs=torch.cat(parts["pairs"], 1),
        hops=torch.cat(hops),
        chains=torch.cat(parts["chains"], 1),
        nodes=reduced(torch.cat(nodes, 1)),
        links=reduced(torch.cat(links)),
        order=torch.cat(order),
        vel=torch.cat([g.vel.double() for g in graphs])
        if graphs[0].get("vel") is not None
        else None,
        sampled=tuple(sorted(sampled)),
    )


def both_ways(graph: Data, features: bool) -> tuple[Tensor, Tensor]:
    """Edges in both directions, sorted by target and then source, with their features.

    Features of an edge from j to i: those of its two directions, half their sum and half their
    difference, and whether the graph has the one direction (1), the other (-1) or both (0).
    """
    index = graph.edge_index
    attributes = graph.edge_attr if features and graph.get("edge_attr") is not None else None
    if attributes is None:
        attributes = torch.zeros(index.shape[1], 0)
    attributes = attributes.reshape(index.shape[1], -1).double()
    keep = index[0] != index[1]
    index, attributes = index[:, keep], attributes[keep]
    count, width = graph.pos.shape[0], attributes.shape[1]
    there = torch.ones(len(attributes), 1, dtype=torch.float64)
    known = torch.cat([attributes, attributes, there, there], 1)
    back = torch.cat([attributes, -attributes, there, -there], 1)
    key = torch.cat([index[1] * count + index[0], index[0] * count + index[1]])
    unique, number = key.unique(return_inverse=True)
    total = known.new_zeros(len(unique), known.shape[1])
    total.index_add_(0, number, torch.cat([known, back]))
    times = total[:, 2 * width].unsqueeze(1).clamp(min=1)
    found = torch.cat([total[:, : 2 * width], total[:, -1:]], 1) / times
    return torch.stack([unique % count, unique // count]), found


def node_features(graphs: Sequence[Data]) -> Tensor:
    """`x`, and a column for each type in `z`."""
    total = sum(graph.pos.shape[0] for graph in graphs)
    found = [torch.zeros(total, 0, dtype=torch.float64)]
    if graphs[0].get("x") is not None:
        found.append(torch.cat([g.x.reshape(g.pos.shape[0], -1) for g in graphs]).double())
    if graphs[0].get("z") is not None:
        types = torch.cat([g.z.reshape(-1) for g in graphs])
        found.append((types.unsqueeze(1) == types.unique()).double())
    return torch.cat(found, 1)


def reduced(values: Tensor) -> Tensor:
    """Standardised columns without constant ones; of more than eight, the principal components."""
    if not values.numel():
        return values.new_zeros(len(values), 0)
    centred = values - values.mean(0)
    spread = centred.square().mean(0).sqrt()
    varies = spread > 1e-9 * values.abs().amax(0).clamp(min=1e-300)
    scaled = centred[:, varies] / spread[varies]
    if scaled.shape[1] <= MOST_FEATURES:
        return scaled
    _, rows = torch.linalg.eigh(scaled.T @ scaled)
    main = scaled @ rows[:, -MOST_FEATURES:]
    return main / main.square().mean(0).sqrt().clamp(min=1e-12)
