"""The graphs are of the sizes that they are said to have, and the same each time."""

import pytest
import torch

from symgnn.bench import _shapes as shapes
from symgnn.graphs import Topology


def test_sizes() -> None:
    # where two neighbours tie in single precision, there is an edge more
    superpixels = shapes.SUPERPIXELS.batch()
    assert (superpixels.num_graphs, superpixels.num_nodes) == (128, 128 * 70)
    assert superpixels.num_edges == pytest.approx(8 * superpixels.num_nodes, rel=1e-4)
    tours = shapes.TOURS.make(False)
    assert [graph.num_nodes for graph in tours][:: len(tours) - 1] == [50, 500]
    edges, nodes = (
        sum(getattr(graph, name) for graph in tours) for name in ("num_edges", "num_nodes")
    )
    assert edges == pytest.approx(25 * nodes, rel=1e-4)
    assert shapes.POLYTOPES[4].batch().num_graphs == 6


def test_molecules_are_like_molecules() -> None:
    batch = shapes.MOLECULES.batch()
    assert (batch.num_graphs, batch.num_nodes) == (512, 512 * 18)
    degree = torch.bincount(batch.edge_index[1])
    assert int(degree.min()) == 1
    assert int(degree.max()) == 4
    # QM9 has 2.07 edges into an atom, and 3.3 angles at one, on average
    assert 1.9 < batch.num_edges / batch.num_nodes < 2.1
    assert 2.5 < Topology.of(batch).num_angles / batch.num_nodes < 4.0
    length = (batch.pos[batch.edge_index[0]] - batch.pos[batch.edge_index[1]]).norm(dim=1)
    assert float(length.median()) == pytest.approx(1.0)


@pytest.mark.parametrize("shape", shapes.SHAPES, ids=lambda shape: shape.name)
def test_they_are_the_same_each_time(shape: shapes.Shape) -> None:
    one, other = shape.batch(quick=True), shape.batch(quick=True)
    assert torch.equal(one.pos, other.pos)
    assert torch.equal(one.edge_index, other.edge_index)
