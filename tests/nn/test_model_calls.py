"""A model takes a Data or Batch, or tensors as PyG's layers do: the same computation."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import FEATURES, bridge_edges, generic_edges, graph
from symgnn.nn import build
from symgnn.nn.egnn_map import EGNNMap
from symgnn.nn.spec import ANSWERS


def batch_of(*edge_indices: torch.Tensor) -> Batch:
    return Batch.from_data_list([graph(edges, 3, k) for k, edges in enumerate(edge_indices)])


def network(architecture: str, **options: object) -> torch.nn.Module:
    torch.manual_seed(0)
    return build(architecture, hidden=8, dimension=3, **FEATURES, **options).double()


def parts(data: Data) -> dict[str, torch.Tensor]:
    return {"edge_attr": data.edge_attr, "batch": data.batch, "u": data.u}


@pytest.mark.parametrize("task", ANSWERS)
@pytest.mark.parametrize("architecture", ["gn", "agn", "combined"])
def test_tensors_give_the_same_numbers_as_a_batch(architecture: str, task: str) -> None:
    data = batch_of(generic_edges(), bridge_edges())
    moves = {"coordinate_map": "neighbour-sum"} if task == "coordinates" else {}
    model = network(architecture, task=task, **moves)
    expected = model(data)
    by_position = model(data.x, data.pos, data.edge_index, **parts(data))
    by_name = model(x=data.x, pos=data.pos, edge_index=data.edge_index, **parts(data))
    assert torch.equal(by_position, expected)
    assert torch.equal(by_name, expected)
    assert torch.equal(
        model(
            pos=data.pos,
            x=data.x,
            topology=model.topology(data),
            u=data.u,
            edge_attr=data.edge_attr,
        ),
        expected,
    )


def test_without_a_batch_there_is_one_graph() -> None:
    data = graph(generic_edges(), 3, 0)
    model = build("dgn", node_features=2).double()
    expected = model(Data(x=data.x, pos=data.pos, edge_index=data.edge_index))
    assert torch.equal(model(data.x, data.pos, data.edge_index), expected)
    assert expected.shape == (1, 1)


def test_node_features_may_be_none() -> None:
    data = graph(generic_edges(), 3, 0)
    model = build("agn").double()
    expected = model(Data(pos=data.pos, edge_index=data.edge_index))
    assert torch.equal(model(None, data.pos, data.edge_index), expected)


def test_types_of_nodes_and_velocities_by_name() -> None:
    data = graph(generic_edges(), 3, 0)
    z, vel = torch.arange(len(data.pos)) % 4, torch.randn_like(data.pos)
    model = build("dgn", node_types=5, coordinate_map=EGNNMap(velocity=True)).double()
    given = Data(z=z, vel=vel, pos=data.pos, edge_index=data.edge_index)
    out = model(z=z, pos=data.pos, edge_index=data.edge_index, vel=vel)
    assert torch.equal(out, model(given))


def test_shifts_of_a_periodic_cell_by_name() -> None:
    data = graph(generic_edges(), 3, 0)
    shift = torch.randn(data.edge_index.shape[1], 3, dtype=torch.float64)
    model = build("dgn").double()
    given = Data(pos=data.pos, edge_index=data.edge_index, edge_shift=shift)
    out = model(pos=data.pos, edge_index=data.edge_index, edge_shift=shift)
    assert torch.equal(out, model(given))
    assert not torch.allclose(out, model(pos=data.pos, edge_index=data.edge_index))
    topology = model.topology(given)
    with pytest.raises(ValueError, match=r"^topology: was made for another edge_shift"):
        model(pos=data.pos, topology=topology, edge_shift=shift + 1)


def test_graph_features_say_how_many_graphs_there_are() -> None:
    """The last graphs of a batch may have no nodes; the rows of u count them."""
    data = batch_of(generic_edges())
    model = network("dgn")
    u = torch.cat([data.u, data.u])
    out = model(data.x, data.pos, data.edge_index, data.edge_attr, data.batch, u=u)
    assert out.shape == (2, 1)
    assert torch.allclose(out[:1], model(data))


WRONG = {
    "x twice": ({"x": "x"}, TypeError, r"^x: is given twice"),
    "no edges": ({"edge_index": None}, TypeError, r"forward takes a Data or Batch, or pos"),
    "no pos": ({"pos": None}, TypeError, r"forward takes a Data or Batch, or pos"),
    "pos": ({"pos": torch.zeros(9)}, ValueError, r"^pos: has shape \[9\]"),
    "edges": ({"edge_index": torch.zeros(3, 2).long()}, ValueError, r"^edge_index: has shape"),
    "a node that is not there": (
        {"edge_index": torch.tensor([[0], [9]])},
        ValueError,
        r"^edge_index: names node 9",
    ),
    "batch": ({"batch": torch.zeros(4).long()}, ValueError, r"^batch: has 4 entries for 9 nodes"),
    "batch of floats": ({"batch": torch.zeros(9)}, ValueError, r"^batch: must be an int64"),
    "edge_attr": ({"edge_attr": torch.zeros(1, 2)}, ValueError, r"^edge_attr: has shape \[1, 2\]"),
    "graphs": ({"batch": torch.arange(9) // 8 * 0 + 1}, ValueError, r"^u: has shape \[1, 2\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parts_are_refused_in_one_line(name: str) -> None:
    data = graph(generic_edges(), 3, 0)
    changed, error, message = WRONG[name]
    changed = {k: data.x if isinstance(v, str) else v for k, v in changed.items()}
    given = {"pos": data.pos, "edge_index": data.edge_index, "edge_attr": data.edge_attr}
    with pytest.raises(error, match=message) as caught:
        network("dgn")(data.x, **{**given, "u": data.u, **changed})
    assert "\n" not in str(caught.value)


def test_a_graph_and_its_parts_are_not_mixed() -> None:
    data = graph(generic_edges(), 3, 0)
    with pytest.raises(TypeError, match=r"^forward takes a Data or Batch, or its parts, not both"):
        network("dgn")(data, batch=torch.zeros(9).long())
    with pytest.raises(TypeError, match=r"^data: is a list; give a PyG Data"):
        network("dgn")([data])


def test_a_topology_without_angles_is_refused() -> None:
    data = graph(generic_edges(), 3, 0)
    few = build("dgn").double().topology(data)
    with pytest.raises(ValueError, match=r"^topology: lacks angles"):
        network("agn")(data.x, data.pos, topology=few, edge_attr=data.edge_attr, u=data.u)
    with pytest.raises(ValueError, match=r"^topology: was made for other edges"):
        network("dgn")(data.x, data.pos, bridge_edges()[:, :4], topology=few)
