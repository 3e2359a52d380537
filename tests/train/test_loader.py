"""Batches: every graph once, in an order of seed and epoch, however many devices there are."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch

from symgnn.data import polytopes
from symgnn.nn import build
from symgnn.train.loader import Batches, Graphs, loader

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
    batches = Batches(20, 20, seed=1)
    first = list(batches)
    assert list(batches) == first
    batches.epoch = 1
    assert list(batches) != first
    assert list(Batches(20, 20, seed=2)) != first
    assert list(Batches(20, 20)) == [list(range(20))]


def test_neighbours_are_sorted_once_and_outside_the_model() -> None:
    model = build("agn", hidden=4, outputs=5)
    graphs = Graphs(polytopes(3), angles=model.needs_angles, drop=["name"])
    batches = loader(graphs, Batches(5, 3), model.topology)
    outputs = torch.cat([model(batch) for batch in batches])
    rays = dict(graphs.rays)
    assert all(batch.topology.ray_index is not None for batch in batches)
    assert all(graphs.rays[k] is rays[k] for k in range(5))
    torch.testing.assert_close(outputs, model(Batch.from_data_list(polytopes(3))))
