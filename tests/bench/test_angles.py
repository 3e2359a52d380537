"""What the angle update is compared with: the same update, and the products that it needs."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric.data import Batch, Data

from helpers import both_ways
from nn.peers import E_GCL
from symgnn.bench import _egnn_layer as egnn_layer
from symgnn.bench import _products as products
from symgnn.bench import _shapes as shapes
from symgnn.bench._angles_suite import AngleUpdate, Concatenated
from symgnn.bench._products import Product
from symgnn.graphs import Topology
from symgnn.nn import from_peer
from symgnn.nn._engine.policy import using_policy


@pytest.mark.parametrize("shape", shapes.SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("worth", [2**60, 0], ids=["at once", "tiles"])
def test_both_updates_are_the_same(shape, worth) -> None:
    """In values, and in the gradients of all that they read."""
    torch.manual_seed(0)
    batch = shape.batch(quick=True)
    batch.pos = batch.pos.double()
    ours = AngleUpdate(batch, hidden=8).double()
    theirs = Concatenated(ours)
    assert [*ours.parameters()] == [*theirs.parameters()]
    v = torch.randn(batch.num_nodes, 8, dtype=torch.float64, requires_grad=True)
    a = torch.randn(ours.topology.num_angles, 8, dtype=torch.float64, requires_grad=True)
    inputs, found = [v, a, *ours.parameters()], []
    for module in (ours, theirs):
        with using_policy(worth_tiles=worth):
            out = module(v, a)
        found.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    for mine, plain in zip(*found, strict=True):
        most = float(plain.detach().abs().max())
        torch.testing.assert_close(mine, plain, rtol=1e-6, atol=1e-6 * most)


def star() -> Topology:
    """A node with three neighbours: 3 * 2 angles, 4 nodes, 6 edges."""
    edges = both_ways([(0, 1), (0, 2), (0, 3)])
    return Topology.of(Batch.from_data_list([Data(pos=torch.randn(4, 3), edge_index=edges)]))


def test_products_of_an_update_counted_by_hand() -> None:
    found, swishes = products.of_update(star(), hidden=5)
    assert found == [Product(6, 5, 5), Product(4, 5, 15), Product(4, 5, 5)]
    assert swishes == [6]
    # two operations for each of rows, inputs and outputs; once forward, twice backward
    assert sum(product.operations for product in found) == 6 * (6 * 25 + 4 * 75 + 4 * 25)


def test_products_of_the_network_counted_by_hand() -> None:
    found, swishes = products.of_network(star(), embedding=2, hidden=3)
    layer_1 = 6 * 6 + 6 * 6 + 4 * (4 * 3 + 6)
    layer_2 = 6 * 6 + 6 * 6 + 4 * (2 * 9 + 2 * 6 + 6 + 6 + 6 * 3 + 6)
    read_out = 4 * 6
    assert sum(product.operations for product in found) == 6 * (layer_1 + layer_2 + read_out)
    assert swishes == [6, 6, 6, 6, 4, 4, 4]


def test_with_the_counted_products_the_update_can_be_computed() -> None:
    """Written with a map for each source, it has the same values, and torch counts as many."""
    batch = shapes.POLYTOPES[4].batch(quick=True)
    ours = AngleUpdate(batch, hidden=8)
    phi, (first, vertex, second) = ours.update.phi, ours.topology.angle_index
    v = torch.randn(batch.num_nodes, 8, requires_grad=True)
    a = torch.randn(ours.topology.num_angles, 8, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        at_vertex, at_first, at_second, of_angle, of_theta = phi.maps()
        hidden = (v @ at_vertex.T)[vertex] + (v @ at_first.T)[first] + (v @ at_second.T)[second]
        hidden = hidden + a @ of_angle.T + ours.theta * of_theta[:, 0] + phi.bias
        total = torch.zeros_like(v).index_add(0, vertex, torch.nn.functional.silu(hidden))
        value = total @ phi.last.weight.T
        value.square().sum().backward()
    counted, _ = products.of_update(ours.topology, 8)
    assert counter.get_total_flops() == sum(product.operations for product in counted)
    angles = torch.bincount(vertex, minlength=batch.num_nodes).unsqueeze(1)
    torch.testing.assert_close(value + angles * phi.last.bias, ours(v, a), rtol=1e-5, atol=1e-5)


def test_the_published_layer_is_the_published_layer() -> None:
    torch.manual_seed(0)
    ours = egnn_layer.E_GCL(6).double()
    theirs = E_GCL(6, 6, coords_agg="sum").double()
    theirs.load_state_dict(ours.state_dict())
    edges = torch.tensor([[0, 1, 0, 2, 3], [1, 0, 2, 3, 0]])
    h = torch.randn(4, 6, dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64)
    moved = ours(h, x, edges)
    for mine, other in zip(moved, theirs(h, edges.flip(0), x), strict=True):
        torch.testing.assert_close(mine, other)
    for mine, other in zip(moved, from_peer(ours)(h, x, edges), strict=True):
        torch.testing.assert_close(mine, other)
