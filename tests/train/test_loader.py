"""Batches: every graph once, in an order of seed and epoch, however many devices there are."""

from copy import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch

from helpers import graphs
from symgnn.data import polytopes
from symgnn.graphs import AddTopology
from symgnn.nn import build
from symgnn.train._loader import Batches, GraphDataset, loader

sizes = st.integers(1, 40)


@given(count=sizes, size=st.integers(1, 12), world=st.integers(1, 5), epoch=st.integers(0, 3))
def test_devices_share_the_batches_of_one(count: int, size: int, world: int, epoch: int) -> None:
    def batches(rank: int, world: int) -> list[list[int]]:
        found = Batches(count, size, seed=3, rank=rank, world=world)
        found.epoch = epoch
        assert len(list(found)) == len(found)
        return list(found)

    whole = batches(0, 1)
    assert sorted(k for batch in whole for k in batch) == list(range(count))
    shares = [batches(rank, world) for rank in range(world)]
    for batch, *parts in zip(whole, *shares, strict=True):
        assert all(parts)  # nobody is left without a graph
        assert sorted(k for part in parts for k in part if k >= 0) == sorted(batch)


@given(count=sizes, size=st.integers(1, 12))
def test_incomplete_batches_are_dropped_but_never_all(count: int, size: int) -> None:
    found = list(Batches(count, size, drop_last=True))
    assert found
    assert all(len(batch) == min(size, count) for batch in found)


def test_each_epoch_has_an_order_of_its_own() -> None:
    batches = Batches(20, 19, seed=1)
    first = list(batches)
    assert list(batches) == first
    batches.epoch = 1
    assert list(batches) != first
    assert list(Batches(20, 19, seed=2)) != first
    assert list(Batches(20, 20)) == [list(range(20))]
    assert list(Batches(20, 20, seed=1)) == [list(range(20))]  # one batch needs no order


@pytest.mark.parametrize("one_way", [False, True])
def test_batches_are_those_of_pyg(one_way: bool) -> None:
    """Graphs of several sizes, one of them without edges, in any order."""
    source = graphs(3, 0, one_way)
    alone = copy(source[0])
    alone.edge_index, alone.edge_attr = alone.edge_index[:, :0], alone.edge_attr[:0]
    source.append(alone)
    for data in source:
        data.y, data.name = torch.randn(1, 2), "some"
    ready = GraphDataset(source, angles=True, dtype=torch.float64, drop=["u"])
    for numbers in ([0, 1, 2, 3], [3, 1], [2], [3], [1, 1]):
        found = ready.__getitems__(numbers)
        expected = Batch.from_data_list([AddTopology()(copy(source[k])) for k in numbers])
        assert {*found.keys()} == {*expected.keys()} - {"name", "u"} | {"spare"}
        for name in {*found.keys()} - {"spare"}:
            assert torch.equal(found[name], expected[name]), name
        assert found.num_graphs == expected.num_graphs
    assert ready[-2].spare
    assert torch.equal(ready[-2].pos, source[1].pos)


def test_the_topology_is_made_outside_the_model() -> None:
    model = build("agn", hidden=4, outputs=5)
    ready = GraphDataset(polytopes(3), angles=model.needs_angles)
    batches = list(loader(ready, Batches(5, 3), model.topology))
    assert all(batch.topology.ray_index is not None for batch in batches)
    outputs = torch.cat([model(batch) for batch in batches])
    expected = model(Batch.from_data_list(polytopes(3)))
    size = float(expected.detach().abs().max())
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-6 * size)


def test_workers_give_the_same_batches() -> None:
    ready = GraphDataset(polytopes(3))
    model = build("dgn")
    alone, helped = (loader(ready, Batches(5, 2, seed=1), model.topology, n) for n in (0, 1))
    for batch, other in zip(alone, helped, strict=True):
        assert torch.equal(batch.pos, other.pos)
        assert torch.equal(batch.topology.edge_index, other.edge_index)
