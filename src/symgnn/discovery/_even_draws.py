"""Elements of compact groups that are spread evenly (by Haar measure), for all graphs at once.

They are rotations, orders of the nodes, and torsions. The torsions about one bridge are the circle
in three dimensions, the flip of a side in the plane, and the rotations that fix the axis in others.
One independent element for each bridge leaves nothing of the torsion angles that a graph had.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from symgnn.discovery._packing import Pack


def random_rotations(count: int, dimension: int, generator: Generator) -> Tensor:
    """Rotations that are spread evenly, `[count, n, n]`."""
    noise = torch.randn(count, dimension, dimension, generator=generator).double()
    q, r = torch.linalg.qr(noise)
    q = q * torch.where(torch.diagonal(r, dim1=1, dim2=2) < 0, -1.0, 1.0).unsqueeze(1)
    q[:, :, 0] *= torch.linalg.det(q).sign().unsqueeze(1)
    return q


def shuffled(pack: Pack, generator: Generator) -> Tensor:
    """The places of the nodes in their graph in random order, `[N]`."""
    noise = torch.rand(len(pack.pos), generator=generator, dtype=torch.float64)
    order = torch.argsort(pack.batch.double() * 2 + noise)
    return pack.order[order.argsort()]


class _Round(NamedTuple):
    """One bridge of each of several graphs."""

    first: Tensor  # [K], one end
    second: Tensor  # [K], the other
    nodes: Tensor  # [M], all nodes of these graphs
    place: Tensor  # [M], from 0 to K - 1: the bridge that each belongs to
    beyond: Tensor  # [M], whether a node is on the side of the second end


class Bridges:
    """The bridges of the graphs of a pack that have two nodes or more on both sides."""

    def __init__(self, pack: Pack) -> None:
        self.rounds: list[_Round] = []
        self.graphs = torch.zeros(pack.size, dtype=torch.bool)  # those that have such a bridge
        sides = [_sides_of_bridges(edges, count) for edges, count in _each_graph(pack)]
        for number in range(max((len(each) for each in sides), default=0)):
            parts: list[list[Tensor]] = [[] for _ in range(5)]
            for graph, each in enumerate(sides):
                if len(each) <= number:
                    continue
                self.graphs[graph] = True
                (one, other), beyond = each[number]
                start, count = int(pack.starts[graph]), int(pack.counts[graph])
                found = (
                    torch.tensor([start + one]),
                    torch.tensor([start + other]),
                    torch.arange(start, start + count),
                    torch.full((count,), len(parts[0])),
                    beyond,
                )
                for part, values in zip(parts, found, strict=True):
                    part.append(values)
            self.rounds.append(_Round(*(torch.cat(part) for part in parts)))

    def turned(self, pos: Tensor, generator: Generator) -> Tensor:
        """Coordinates after an even torsion about every bridge, `[N, n]`; either side may move."""
        pos = pos.clone()
        for each in self.rounds:
            pivot = pos[each.second]
            axis = pivot - pos[each.first]
            matrix = _about(axis, generator)
            other = torch.rand(len(axis), generator=generator) < 0.5
            moves = each.beyond ^ other[each.place]
            nodes, place = each.nodes[moves], each.place[moves]
            rays = pos[nodes] - pivot[place]
            pos[nodes] = pivot[place] + torch.einsum("mab,mb->ma", matrix[place], rays)
        return pos


def _about(axis: Tensor, generator: Generator) -> Tensor:
    """Even random rotations that fix an axis (in the plane: reflections, half of them none).

    `[K, n] -> [K, n, n]`; where an axis has no length, nothing is turned.
    """
    count, n = axis.shape
    length = axis.norm(dim=1, keepdim=True)
    basis = torch.linalg.qr((axis / length.clamp(min=1e-300)).unsqueeze(2), mode="complete").Q
    inner = random_rotations(count, n - 1, generator)
    if n == 2:
        inner = torch.randint(2, (count, 1, 1), generator=generator).double() * 2 - 1
    along, across = basis[:, :, :1], basis[:, :, 1:]
    matrix = along @ along.transpose(1, 2) + across @ inner @ across.transpose(1, 2)
    eye = torch.eye(n, dtype=axis.dtype).expand(count, n, n)
    return torch.where(length.unsqueeze(2) > 0, matrix, eye)


def _each_graph(pack: Pack) -> list[tuple[list[list[int]], int]]:
    """The edges of each graph, counted from its first node, and its number of nodes."""
    order = pack.batch[pack.edges[1]]
    sizes = torch.bincount(order, minlength=pack.size).tolist()
    parts = (pack.edges - pack.starts[order]).split(sizes, dim=1)
    return [(edges.T.tolist(), n) for edges, n in zip(parts, pack.counts.tolist(), strict=True)]


def _sides_of_bridges(edges: list[list[int]], count: int) -> list[tuple[tuple[int, int], Tensor]]:
    """Each bridge with two nodes or more on both sides, and which nodes are beyond it, `[N]`."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    found = []
    for one, other in sorted(nx.bridges(graph)):
        if graph.degree(one) < 2 or graph.degree(other) < 2:
            continue
        cut = nx.restricted_view(graph, [], [(one, other)])
        beyond = torch.zeros(count, dtype=torch.bool)
        beyond[sorted(nx.node_connected_component(cut, other))] = True
        found.append(((one, other), beyond))
    return found
