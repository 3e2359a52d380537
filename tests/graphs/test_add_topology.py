"""The topology as a transform, its limits of memory, and moving it"""

import copy
import dataclasses
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from graphs.topology_cases import few, multigraphs, named
from helpers import (
    FEATURES,
    bridge_edges,
    directed,
    distance,
    generic_edges,
    graph,
    graphs,
    random_model,
    rng,
)
from symgnn.geometry import Permutation
from symgnn.graphs import AddTopology, Topology
from symgnn.graphs.rays import joined, ranks_of

# ------------------------------------------------------------------ as a transform


def loader_outputs(transform, model, **options):
    dataset = [transform(g) for g in graphs(3) + graphs(3, seed=1, one_way=True)]
    with torch.no_grad():
        return torch.cat([model(b) for b in DataLoader(dataset, batch_size=4, **options)])


@pytest.mark.parametrize("workers", [0, 2])
def test_add_topology_in_a_data_loader(workers):
    for architecture in ("dgn", "agn+edges", "agn-to-edges"):
        model = random_model(architecture, coordinate_map="neighbour-sum", **FEATURES)
        plain = loader_outputs(lambda data: data, model)
        found = loader_outputs(AddTopology(), model, num_workers=workers)
        assert torch.equal(plain, found), f"{architecture}: {distance(plain, found)}"


def test_the_model_does_not_sort_what_the_transform_has_sorted(monkeypatch):
    model = random_model("agn+edges", **FEATURES)
    plain = Batch.from_data_list(graphs(3))
    batch = Batch.from_data_list([AddTopology()(data) for data in graphs(3)])
    assert batch.ray_ranks.shape == (batch.num_edges, 2)
    expected = model(plain)

    def unique(*_, **__):
        raise AssertionError("sorted again")

    monkeypatch.setattr(torch.Tensor, "unique", unique)
    assert torch.equal(model(batch), expected)
    with pytest.raises(AssertionError, match="sorted again"):
        model(plain)


@given(multigraphs(), st.randoms(use_true_random=False))
@few
def test_ranks_give_the_same_topology(case, random):
    """Where they are right; and where they are not, in any way, they are not used."""
    edge_index, nodes = case
    expected, ranks = joined(edge_index, nodes), ranks_of(edge_index, nodes)

    def check(other):
        for name, found in joined(edge_index, nodes, other).items():
            same = found is expected[name] is None or torch.equal(found, expected[name])
            assert same, name

    check(ranks)
    wrong = ranks.clone()
    for row in wrong:
        for column in range(2):
            if random.random() < 0.3:
                row[column] = random.choice([-1, 0, 1, 2, 1000, 2**40])
    for other in (wrong, wrong[:-1], wrong[:, :1], ranks + 1, ranks.int(), ranks.flip(1)):
        check(other)


@pytest.mark.parametrize("how", ["attach", "batch"])
def test_an_attached_topology_is_used(how):
    data = graph(bridge_edges(), 3, 0)
    if how == "batch":
        data = AddTopology()(Batch.from_data_list([data, graph(generic_edges(), 3, 1)]))
    else:
        data = AddTopology(attach=True)(data)
    assert isinstance(data.topology, Topology)
    assert Topology.of(data) is data.topology
    plain = copy.copy(data)
    del plain.topology, plain.ray_ranks
    for architecture in ("dgn", "agn+edges"):
        model = random_model(architecture, **FEATURES)
        assert model.topology(data) is data.topology
        assert torch.equal(model(data), model(plain))
        parts = {name: data[name] for name in ("pos", "x", "edge_attr", "u")}
        assert torch.equal(model(**parts, topology=data.topology), model(plain))


def test_an_attached_topology_that_lacks_something_is_completed():
    data = AddTopology(attach=True)(graph(generic_edges(), 3, 0))
    assert data.topology.all_pairs is None
    assert Topology.of(data, pairs=True).all_pairs is not None
    model = random_model("dgn", coordinate_map="egcn", **FEATURES)
    plain = graph(generic_edges(), 3, 0)
    assert torch.equal(model(data), model(plain))
    assert AddTopology(attach=True, pairs=True)(plain).topology.all_pairs is not None


def test_attached_topologies_can_be_batched():
    """A loader over graphs that each carry a topology of their own."""
    chosen = graphs(3)
    model = random_model("agn+edges", **FEATURES)
    expected = model(Batch.from_data_list(chosen))
    attached = [AddTopology(attach=True)(copy.copy(data)) for data in chosen]
    assert torch.equal(model(Batch.from_data_list(attached)), expected)
    assert torch.equal(model(next(iter(DataLoader(attached, batch_size=len(chosen))))), expected)


@pytest.mark.parametrize("attach", [False, True])
def test_a_relabelled_graph_that_has_its_topology(attach):
    """With other numbers, neighbours stand in another order, and the ranks are not used."""
    data = AddTopology(attach=attach)(graph(directed(generic_edges()), 3, 0))
    image = Permutation(torch.randperm(9, generator=rng(1))).apply(data)
    for architecture in ("agn", "agn+edges", "agn-to-edges"):
        model = random_model(architecture, **FEATURES)
        error = distance(model(data), model(image))
        assert error <= 1e-12, f"{architecture}, attach={attach}: {error}"


# ------------------------------------------------------------------ topologies that do not fit


def test_other_coordinates_are_welcome():
    data = AddTopology(attach=True)(graph(generic_edges(), 3, 0))
    other = graph(generic_edges(), 3, 1)
    model = random_model("agn", **FEATURES)
    moved = copy.copy(data)
    moved.pos, moved.x, moved.edge_attr, moved.u = other.pos, other.x, other.edge_attr, other.u
    assert torch.equal(model(moved), model(other))


def test_a_topology_of_another_number_of_nodes_is_refused():
    topology = Topology.of(graph(generic_edges(), 3, 0))
    other = graph(bridge_edges(), 3, 0)
    with pytest.raises(ValueError, match=r"pos: has 10 rows, but the topology has 9 nodes"):
        random_model("agn")(pos=other.pos, topology=topology)


def test_a_topology_of_other_edges_is_refused():
    """With features the number of rows gives it away, without it has to be looked at."""
    model = random_model("agn")
    data = graph(generic_edges(), 3, 0)
    data = AddTopology(attach=True)(Data(pos=data.pos, edge_index=data.edge_index))
    data.edge_index = data.edge_index[:, :20]
    with pytest.raises(ValueError, match=r"(topology|edge_index): .*20"):
        model(data)


@pytest.mark.parametrize("edges", [slice(20), slice(None, None, 2), slice(3, None)])
def test_ranks_of_other_edges_are_not_used(edges):
    model = random_model("agn+edges")
    data = graph(generic_edges(), 3, 0)
    fresh = Data(pos=data.pos, edge_index=data.edge_index[:, edges])
    data = AddTopology()(Data(pos=data.pos, edge_index=data.edge_index))
    data.edge_index = data.edge_index[:, edges]
    assert torch.equal(model(data), model(fresh))
    data.ray_ranks = data.ray_ranks[edges]
    assert torch.equal(model(data), model(fresh))


def test_add_topology_again_makes_it_anew():
    data = AddTopology(attach=True)(graph(generic_edges(), 3, 0))
    data.edge_index = data.edge_index[:, :20]
    data = AddTopology(attach=True)(data)
    assert data.topology.num_edges == 20
    expected = Topology.build(data.edge_index, 9)
    assert named(data.topology) == named(expected)


def test_add_topology_checks_the_graph():
    edges = generic_edges()
    data = graph(edges, 3, 0)
    data.pos[3] = torch.nan
    with pytest.raises(ValueError, match=r"pos: row 3 is"):
        AddTopology()(data)
    with pytest.raises(ValueError, match=r"edge_index: names node 9"):
        AddTopology()(Data(pos=torch.zeros(9, 3), edge_index=edges + 1))


# ------------------------------------------------------------------ moving and storing


def tensors(topology: Topology) -> dict[str, torch.Tensor]:
    leaves, _ = torch.utils._pytree.tree_flatten_with_path(topology)
    return {str(path): leaf for path, leaf in leaves if leaf is not None}


def test_to(topology):
    assert len(tensors(topology)) > 12
    away = topology.to("meta")
    for name, tensor in tensors(away).items():
        assert tensor.device.type == "meta", name
    assert (away.num_angles, away.num_edges) == (topology.num_angles, topology.num_edges)
    data = AddTopology(attach=True)(graph(generic_edges(), 3, 0))
    assert data.to("meta").topology.edge_index.device.type == "meta"


@pytest.mark.parametrize("how", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_and_pickles(topology, how):
    again = tensors(how(topology))
    assert again.keys() == tensors(topology).keys()
    for name, tensor in tensors(topology).items():
        assert torch.equal(tensor, again[name]), name


def test_it_cannot_be_changed_by_accident(topology):
    with pytest.raises(dataclasses.FrozenInstanceError):
        topology.batch = None
