import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from symgnn.geometry.transformations import Permutation

few = settings(max_examples=25, deadline=None)
dimensions = st.integers(1, 6)
seeds = st.integers(0, 10**6)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@given(count=st.integers(1, 8), seed=seeds)
@few
def test_permutation_relabels_graphs(count, seed):
    generator = rng(seed)
    # as many edges as nodes, where the kind of an attribute is hardest to tell
    edge_index = torch.randint(count, (2, count), generator=generator)
    labels = torch.arange(count)
    data = Data(
        pos=torch.randn(count, 2, generator=generator),
        label=labels,
        names=[str(i) for i in range(count)],
        array=np.arange(count),
        edge_index=edge_index,
        edge_attr=torch.rand(count, 1, generator=generator),
        edge_label_index=edge_index.flip(0),
        face=torch.randint(count, (3, 2), generator=generator),
        y=torch.rand(1, 4),
        energy=torch.tensor(1.0),
    )
    element = Permutation.random(data.pos, generator=generator)
    out = element.apply(data)
    assert torch.equal(out.label, element.order)
    assert torch.equal(out.pos, data.pos[element.order])
    assert torch.equal(out.pos, element(data.pos))
    assert out.names == [str(i) for i in element.order.tolist()]
    assert out.array.tolist() == element.order.tolist()
    for key in ("edge_index", "edge_label_index", "face"):
        # each end is the same node under its new number
        assert torch.equal(out.label[out[key]], data.label[data[key]])
    for key in ("edge_attr", "y", "energy"):
        assert torch.equal(out[key], data[key])
    assert torch.equal(data.label, labels)


def test_permutation_relabels_and_does_not_apply_the_order():
    # a 3-cycle is not its own inverse, so a mix-up of the two shows
    data = Data(pos=torch.rand(3, 1), edge_index=torch.tensor([[0], [1]]))
    out = Permutation(torch.tensor([1, 2, 0])).apply(data)
    assert out.edge_index.tolist() == [[2], [0]]


def test_permutation_refuses():
    with pytest.raises(ValueError, match="order: must hold each of 0"):
        Permutation(torch.tensor([0, 0, 1]))
    element = Permutation(torch.tensor([1, 0]))
    with pytest.raises(ValueError, match="pos: has 3 nodes, but this permutation orders 2"):
        element(torch.rand(3, 2))
    with pytest.raises(ValueError, match="data: has 3 nodes, but this permutation orders 2"):
        element.apply(Data(pos=torch.rand(3, 2)))
    sparse = torch.eye(2).to_sparse_coo()
    with pytest.raises(ValueError, match="data: adj is sparse; pass an edge_index instead"):
        element.apply(Data(pos=torch.rand(2, 2), adj=sparse))
