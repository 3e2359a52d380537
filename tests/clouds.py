"""Clouds and graphs for the tests of the geometry."""

import itertools

import networkx as nx
import torch


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def points(n, seed=0, count=9):
    """A cloud away from the origin and of a size other than 1."""
    x = torch.randn(count, n, generator=rng(seed + 77), dtype=torch.float64)
    return 3 * x + 5


def graph_points(count, n, seed=0):
    return 2 * torch.randn(count, n, generator=rng(seed + 5), dtype=torch.float64) + 3


def directed(graph):
    pairs = [edge for a, b in graph.edges for edge in ((a, b), (b, a))]
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T


def random_tree(count, seed):
    parents = [int(torch.randint(i, (), generator=rng(seed + i))) for i in range(1, count)]
    return nx.Graph(zip(range(1, count), parents, strict=True))


def edge_lengths(pos, edge_index):
    return (pos[edge_index[0]] - pos[edge_index[1]]).norm(dim=1)


def vertex_angles(pos, graph):
    """All angles at nodes between two of their neighbours."""
    found = []
    for node in graph:
        for a, b in itertools.combinations(sorted(graph[node]), 2):
            first, second = pos[a] - pos[node], pos[b] - pos[node]
            # half of it from the difference and the sum of unit vectors: exact near 0 and pi
            first, second = first / first.norm(), second / second.norm()
            found.append(2 * torch.atan2((first - second).norm(), (first + second).norm()))
    return torch.stack(found)
