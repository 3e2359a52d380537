"""At the start of training, values and gradients are of the size of 1, however deep the network."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from symgnn.graphs import KNNGraph, Topology
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, Averages, Spec, averages, build, reduce
from symgnn.nn.inputs import Reduction, v
from symgnn.nn.state import State, Values
from symgnn.train import Signals, signals

#: The bounds of the root mean square of every update, and of the ratio of gradients.
LOW, HIGH, RATIO = 0.3, 3.0, 10.0
#: The number of neighbours, and of nodes of a graph.
DEGREES = {2: 14, 8: 20, 50: 53}


def graphs(degree: int, dimension: int = 3) -> list[Data]:
    random = torch.Generator().manual_seed(degree)
    nodes = DEGREES[degree]
    return [
        KNNGraph(k=degree)(Data(pos=3 * torch.randn(nodes, dimension, generator=random)))
        for _ in range(3)
    ]


def found(architecture: str, train: list[Data], seed: int = 0, **options: object) -> Signals:
    torch.manual_seed(seed)
    known = averages(train, architecture)
    settings = {"hidden": 16, "outputs": 8, "dimension": train[0].pos.shape[1], **options}
    model = build(architecture, averages=known, **settings)  # type: ignore[arg-type]
    return signals(model, Batch.from_data_list(train))


def check(measured: Signals) -> None:
    rows = [row for row in measured.rows if row.update != "coordinates"]
    wrong = [row for row in rows if not LOW <= row.value <= HIGH]
    assert not wrong, f"{wrong}\n{measured}"
    first, last = (measured.of_layer(measured.layers[k]) for k in (0, -1))
    assert first < RATIO * last, f"gradients {first}, {last}\n{measured}"
    assert last < RATIO * first, f"gradients {first}, {last}\n{measured}"
    assert measured.problem is None


@pytest.mark.parametrize("layers", [1, 2, 4, 16])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_depths_and_aggregations(architecture: str, aggregation: str, layers: int) -> None:
    check(found(architecture, graphs(8), layers=layers, aggregation=aggregation))


@pytest.mark.parametrize("coordinate_map", COORDINATE_MAPS)
@pytest.mark.parametrize("architecture", ["dgn", "combined", "cgn"])
def test_coordinate_maps(architecture: str, coordinate_map: str) -> None:
    for layers in (2, 6):
        check(found(architecture, graphs(8), layers=layers, coordinate_map=coordinate_map))


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("architecture", ["gn", "dgn", "sdgn", "agn"])
def test_degrees(architecture: str, degree: int) -> None:
    for seed, layers in enumerate((1, 4, 8)):
        if degree < 50 or layers < 8:
            check(found(architecture, graphs(degree), seed, layers=layers))


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("mlp_layers", [0, 1, 3])
def test_dimensions_and_depths_of_mlps(dimension: int, mlp_layers: int) -> None:
    check(found("combined", graphs(8, dimension), layers=3, mlp_layers=mlp_layers))


def test_the_torch_start_is_outside() -> None:
    """So these tests can fail: PyTorch's weights and plain sums explode."""
    train = graphs(50)
    torch.manual_seed(0)
    model = build("dgn", layers=8, residual=False, init="torch", outputs=8)
    measured = signals(model, Batch.from_data_list(train))
    assert measured.problem is not None
    with pytest.raises(AssertionError):
        check(measured)


def test_sums_still_count() -> None:
    """A sum is divided by the average of the training graphs, not by its own number of terms."""
    spec = Spec("sum", node=[v], graph=[reduce(v)])
    for terms in (4.0, 8.0):
        model = build(spec, averages=Averages({"node->graph": terms}), layers=1, outputs=2)
        update = model.readouts[0].updates["graph"]
        (given,) = (each for each in update.inputs if isinstance(each, Reduction))
        for nodes in (3, 6):
            topology = Topology.build(torch.empty(2, 0).long(), nodes)
            state = State(topology, torch.zeros(nodes, 3))
            state.v = Values(topology, "node", torch.ones(nodes, 1))
            assert float(update.reduced(given, state)[0, 0]) == nodes / terms


def test_averages_are_in_the_state_and_the_repr() -> None:
    train = graphs(8)
    model = build("dgn", averages=averages(train), outputs=2)
    other = build("dgn", averages=averages(graphs(2)), outputs=2)
    batch = Batch.from_data_list(train)
    assert not torch.allclose(other(batch), model(batch))
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(batch), model(batch))
    assert "averages(edge->node 8" in repr(model)
