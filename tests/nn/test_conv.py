"""Layers in PyG's calling style, and inputs that are refused"""

import pytest
import torch
from torch_geometric.data import Batch, Data

from nn.manners_cases import small, solids
from symgnn.graphs import Topology, knn_graph
from symgnn.nn import ARCHITECTURES, AGNConv, Conv, DGNConv, GNConv, build


def cloud(sizes: tuple[int, ...] = (9, 14), k: int = 3, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for n in sizes:
        pos = torch.randn(n, 3, generator=generator)
        graphs.append(Data(pos=pos, edge_index=knn_graph(pos, k)))
    return Batch.from_data_list(graphs)


@pytest.mark.parametrize("psi", ["identity", "neighbour-sum"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_conv_is_called_like_a_layer_of_pyg(name: str, psi: str) -> None:
    batch = cloud()
    torch.manual_seed(0)
    conv = Conv(name, 4, 6, edge_dim=2, dimension=3, coordinate_map=psi).double()
    x = torch.randn(batch.num_nodes, 4, dtype=torch.float64)
    edge_attr = torch.randn(batch.num_edges, 2, dtype=torch.float64)
    pos = batch.pos.double()
    both = conv(x, pos, batch.edge_index, edge_attr, batch.batch)
    h = both if psi == "identity" else both[0]
    assert h.shape == (batch.num_nodes, 6)
    if psi != "identity":
        assert both[1].shape == pos.shape
        assert not torch.allclose(both[1], pos)
    # one by one gives the same as the batch
    first, second = batch.batch == 0, batch.batch == 1
    for part, mask in ((0, first), (1, second)):
        edges = batch.batch[batch.edge_index[0]] == part
        index = batch.edge_index[:, edges] - int(mask.nonzero()[0])
        one = conv(x[mask], pos[mask], index, edge_attr[edges])
        torch.testing.assert_close(one if psi == "identity" else one[0], h[mask])


def test_conv_without_features_and_without_edges() -> None:
    pos = torch.randn(5, 2)
    none = torch.empty(2, 0, dtype=torch.long)
    assert DGNConv(0, 3)(None, pos, none).shape == (5, 3)
    assert GNConv(0, 3, dimension=2)(None, pos, none).shape == (5, 3)


def test_conv_in_sequence_shares_a_topology() -> None:
    batch = cloud()
    topology = Topology.of(batch)
    first, second = AGNConv(0, 8), AGNConv(8, 4)
    h = first(None, batch.pos, batch.edge_index, batch=batch.batch)
    shared = first(None, batch.pos, batch.edge_index, topology=topology)
    torch.testing.assert_close(shared, h)
    assert second(h, batch.pos, batch.edge_index, topology=topology).shape == (23, 4)


def test_conv_refuses_features_it_would_drop() -> None:
    batch = cloud()
    with pytest.raises(ValueError, match="edge_attr: has 2 features that the model would not read"):
        AGNConv(0, 8)(None, batch.pos, batch.edge_index, torch.randn(batch.num_edges, 2))


def test_dropout_only_while_training() -> None:
    model, batch = small("agn", dropout=0.5), solids()
    assert not torch.equal(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))


def test_input_is_left_as_it_was() -> None:
    batch = solids()
    keys, pos = list(batch.keys()), batch.pos.clone()
    small("agn", coordinate_map="neighbour-sum")(batch)
    assert list(batch.keys()) == keys
    assert torch.equal(batch.pos, pos)


def test_data_and_parts_together_are_refused() -> None:
    with pytest.raises(TypeError, match="not both"):
        small("dgn")(solids(), x=torch.ones(50, 2))


def test_edge_weights_are_refused() -> None:
    batch = solids()
    batch.edge_weight = torch.ones(batch.num_edges)
    with pytest.raises(ValueError, match="edge_weight: is not read"):
        small("dgn")(batch)


def test_graph_features_of_one_axis() -> None:
    batch = solids()
    batch.u = torch.ones(15)
    with pytest.raises(ValueError, match=r"u: has shape \[15\]; store it as \[1, F\]"):
        small("dgn", graph_features=3)(batch)


def test_conv_refuses_a_topology_of_another_graph() -> None:
    batch, conv = cloud(), DGNConv(0, 3)
    topology = Topology.of(batch)
    with pytest.raises(ValueError, match="topology: was made for other edges"):
        conv(None, batch.pos, batch.edge_index[:, :4], topology=topology)
    with pytest.raises(ValueError, match="topology: was made for another batch"):
        conv(None, batch.pos, batch.edge_index, batch=1 - batch.batch, topology=topology)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"out_channels": 4.5}, "out_channels: is 4.5"),
        ({"in_channels": -1}, "in_channels: is -1"),
        ({"hidden": 0}, "hidden: is 0"),
        ({"chunk": 0}, "chunk: is 0"),
        ({"dropout": 1.0}, "dropout: is 1.0"),
        ({"aggregation": None}, "aggregation: None"),
    ],
)
def test_conv_refuses_options_that_make_no_sense(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AGNConv(**{"in_channels": 2, "out_channels": 3, **options})


def test_conv_checks_the_dimension_and_names_its_own_options() -> None:
    batch = cloud()
    with pytest.raises(ValueError, match=r"pos: has 3 coordinates; .* dimension=2"):
        GNConv(0, 3, dimension=2)(None, batch.pos, batch.edge_index)
    with pytest.raises(ValueError, match=r"x: is missing, .* in_channels=2"):
        DGNConv(2, 3)(None, batch.pos, batch.edge_index)


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_half_types_count_beyond_their_own_range(aggregation: str) -> None:
    """70000 is infinite in float16; the mean over as many nodes is not 0."""
    torch.manual_seed(0)
    model = build(
        "dgn", node_features=4, hidden=4, graph_state=False, layers=1, aggregation=aggregation
    )
    pos = torch.zeros(70000, 1)
    none = torch.empty(2, 0, dtype=torch.long)
    data = Data(pos=pos, edge_index=none, x=torch.full((70000, 4), 0.01))
    expected = model(data)
    data.x = data.x.half()
    got = model.half()(data).float()
    if aggregation == "mean":
        torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-3)
    assert torch.isfinite(got).all()
