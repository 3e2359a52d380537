"""Cases of the tests test_topology, test_add_topology."""

import torch
from hypothesis import settings
from hypothesis import strategies as st

from symgnn.graphs import Topology

few = settings(max_examples=40, deadline=None)


@st.composite
def multigraphs(draw):
    """Directed graphs with self-loops, parallel edges and isolated nodes: `(edge_index, N)`."""
    nodes = draw(st.integers(1, 9))
    numbers = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(numbers, numbers), max_size=25))
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T.contiguous(), nodes


# ------------------------------------------------------------------ batches


def named(topology: Topology, offset: int = 0) -> set[tuple[int, ...]]:
    return {tuple(row) for row in (topology.angle_index.T + offset).tolist()}
