"""Cases of the tests test_isometric, test_isometric_degenerate."""

import numpy as np
import torch

from helpers import distance, rng
from symgnn.graphs import Topology, knn_graph

EXACT = 1e-10


NO_EDGES = torch.zeros(2, 0, dtype=torch.long)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64).to(dtype)


def topology_of(edge_index, pos):
    return Topology.build(edge_index, len(pos), angles=False)


def cloud(n, seed, count=14):
    pos = normal(count, n, seed=seed + 10**7)  # no field is a coordinate
    return pos, topology_of(knn_graph(pos, n + 3), pos)


def relative(found, expected):
    """The largest error, by the largest entry expected."""
    expected = expected.detach().expand_as(found)
    return distance(found, expected) / float(expected.abs().max().clamp(min=1e-300))


def by_loops(pos, edge_index, weight, rtol=1e-10):
    """The vectors of the edges, node by node from the formula."""
    vectors = np.zeros((edge_index.shape[1], pos.shape[1]))
    pos, weight, (source, target) = pos.numpy(), weight.numpy(), edge_index.numpy()
    for i in range(len(pos)):
        ends = [k for k in (target == i).nonzero()[0] if (pos[source[k]] != pos[i]).any()]
        rays = {k: pos[source[k]] - pos[i] for k in ends}
        moment = sum((weight[k] * np.outer(r, r) / (r @ r) for k, r in rays.items()), 0.0)
        for k, r in rays.items():
            vectors[k] = np.linalg.pinv(moment, rcond=rtol) @ (weight[k] * r / (r @ r))
    return torch.from_numpy(vectors)
