"""The angles, chains and pairs of nodes of one graph; of a large graph, those of a random part.

A list of all pairs, or of all chains of three edges, of a graph with thousands of nodes would not
fit into memory.
"""

from __future__ import annotations

import torch
from scipy import sparse
from torch import Generator, Tensor

#: At most so many elements of a set (angles, pairs, chains) per graph; others are drawn at random.
MOST_ELEMENTS = 4_000
#: At most so many elements are listed; of more, so many are drawn, of which not all are elements.
MOST_LISTED, MOST_DRAWN = 1_000_000, 20_000
#: At most so many chains are kept of those that are listed.
MOST_CHAINS = 20 * MOST_ELEMENTS
#: So many nodes have their pairs listed, where there are too many pairs.
FIRST_NODES = 200


def angles_of(edges: Tensor, count: int, generator: Generator) -> tuple[Tensor, bool]:
    """Two neighbours j < k of each vertex i, as rows j, i, k, and whether only some are listed.

    Args:
        edges: In both directions, sorted by target, `[2, E]`.
        count: The number of nodes.
        generator: Chooses angles where there are too many.
    """
    source, target = edges
    degree = torch.bincount(target, minlength=count)
    start = degree.cumsum(0) - degree
    vertex, place, some = _places(degree.square(), generator)
    first = start[vertex] + place // degree[vertex]
    second = start[vertex] + place % degree[vertex]
    keep = first < second
    return torch.stack([source[first[keep]], vertex[keep], source[second[keep]]]), some


def chains_of(edges: Tensor, count: int, generator: Generator) -> tuple[Tensor, bool]:
    """Nodes j - i - k - l along edges, all different, once from either end, as `[4, C]`; and
    whether only some are listed.
    """
    source, target = edges
    degree = torch.bincount(target, minlength=count)
    start = degree.cumsum(0) - degree
    middle = edges[:, source < target]
    neighbours = degree[middle]  # [2, M], of either end
    number, place, some = _places(neighbours[0] * neighbours[1], generator)
    i, k = middle[:, number]
    j = source[start[i] + place // neighbours[1][number]]
    l = source[start[k] + place % neighbours[1][number]]
    keep = (j != k) & (l != i) & (l != j)
    return torch.stack([j, i, k, l])[:, keep][:, :MOST_CHAINS], some


def pairs_of(edges: Tensor, count: int, generator: Generator) -> tuple[Tensor, Tensor, bool]:
    """Pairs of nodes `[2, P]`, how many edges are between them (4 for more than 3), and whether
    only those of some nodes are listed.
    """
    if count * count <= 2 * MOST_LISTED:
        pairs = torch.triu_indices(count, count, offset=1)
        hops = _hops_from(edges, count, torch.arange(count))
        return pairs, hops[pairs[0], pairs[1]], False
    nodes = torch.randperm(count, generator=generator)[:FIRST_NODES]
    others = max(1, MOST_ELEMENTS // FIRST_NODES)
    far = torch.randint(count - 1, (len(nodes), others), generator=generator)
    far = far + (far >= nodes.unsqueeze(1))  # any other node
    between = _hops_from(edges, count, nodes).gather(1, far).flatten()
    return torch.stack([nodes.repeat_interleave(others), far.flatten()]), between, True


def _hops_from(edges: Tensor, count: int, nodes: Tensor) -> Tensor:
    """The edges from some nodes to all, 0 to itself and 4 for more than 3, `[k, N]`."""
    ones = torch.ones(edges.shape[1]).numpy()
    joined = sparse.csr_array((ones, (edges[0].numpy(), edges[1].numpy())), shape=(count, count))
    hops = torch.full((len(nodes), count), 4)
    rows = torch.arange(len(nodes))
    reach = torch.zeros(len(nodes), count)
    reach[rows, nodes] = 1.0
    for hop in (1, 2, 3):
        further = torch.from_numpy(reach.numpy() @ joined) > 0
        hops[further & (reach == 0) & (hops == 4)] = hop
        reach = ((reach > 0) | further).float()
    hops[rows, nodes] = 0
    return hops


def _places(counts: Tensor, generator: Generator) -> tuple[Tensor, Tensor, bool]:
    """The items of lists of given lengths, one list after the other: of each item its list and its
    place in it; and whether these are only some, drawn at random since there are too many.
    """
    ends = counts.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    some = total > MOST_LISTED
    items = torch.arange(total)
    if some:
        items = torch.randint(total, (MOST_DRAWN,), generator=generator).unique()
    number = torch.searchsorted(ends, items, right=True)
    return number, items - (ends - counts)[number], some
