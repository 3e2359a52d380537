"""The types of nodes, `z`: read in every block, or refused."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from helpers import COMPILES, train_ensemble
from nn.peers import molecules
from symgnn.nn import ARCHITECTURES, PEERS, EGNNMap, Spec, build
from symgnn.nn.inputs import d2, e, reduce, v
from symgnn.train import Ensemble

BLOCKS = [*ARCHITECTURES, "egnn", "isogcn"]
OWN = Spec("own", edge=[v.source, d2], node=[v, reduce(e)])


def pair(z: int, x: Tensor | None = None) -> Data:
    """Two atoms of one type."""
    pos = torch.tensor([[0.0, 0.0, 0.0], [0.7, 0.1, -0.4]])
    edges = torch.tensor([[0, 1], [1, 0]])
    return Data(pos=pos, edge_index=edges, z=torch.full((2,), z), x=x)


@pytest.mark.parametrize("task", ["graph", "node", "edge"])
@pytest.mark.parametrize("block", [*BLOCKS, OWN], ids=str)
def test_types_are_told_apart_in_every_block(block: str | Spec, task: str) -> None:
    torch.manual_seed(0)
    model = build(block, node_types=10, task=task, dimension=3, hidden=8)
    out = {z: model(pair(z)) for z in (1, 8)}
    assert float((out[1] - out[8]).detach().abs().max()) > 1e-5
    model(pair(8)).sum().backward()
    assert model.types.weight.grad is not None
    assert (model.types.weight.grad.abs().sum(1) > 0).tolist() == [k == 8 for k in range(10)]


@pytest.mark.parametrize("block", [*BLOCKS, OWN], ids=str)
def test_types_that_are_not_read_are_refused(block: str | Spec) -> None:
    model = build(block, dimension=3)
    with pytest.raises(ValueError, match=r"^z: holds the types of 2 nodes, .*node_types='atoms'"):
        model(pair(8))
    with pytest.raises(ValueError, match=r"node_types=201, or set z to None$"):
        model(pair(200))
    data = pair(8)
    data.z = None
    assert model(data).isfinite().all()
    parts = {"pos": data.pos, "topology": model.topology(data)}
    with pytest.raises(ValueError, match=r"^z: holds"):
        model(**parts, z=pair(8).z)


def test_types_are_the_vector_that_a_column_would_have() -> None:
    """An embedding is a linear map of one-hot columns: here of x, after the features there are."""
    batch = molecules()
    features = torch.randn(14, 2, generator=torch.Generator().manual_seed(1)).double()
    torch.manual_seed(3)
    embedded = build("agn", node_features=2, node_types=9, hidden=4).double()
    batch.x = features
    out = embedded(batch)
    table = embedded.types.weight
    assert table.shape == (9, 4)
    plain = build("agn", node_features=6, hidden=4).double()
    plain.load_state_dict({k: p for k, p in embedded.state_dict().items() if "types" not in k})
    batch.x, batch.z = torch.cat([features, table[batch.z]], 1), None
    torch.testing.assert_close(plain(batch), out)


def test_columns_for_each_type_stand_for_them() -> None:
    """As symgnn's readers and PyG's QM9 give them, beside z."""
    model = build("dgn", node_features=3)
    batch = Batch.from_data_list([pair(1), pair(8)])
    batch.x = torch.nn.functional.one_hot((batch.z == 8).long(), 3).float()
    assert model(batch).isfinite().all()
    batch.x = torch.stack([torch.rand(4), batch.z.float(), torch.rand(4)], 1)
    assert model(batch).isfinite().all()
    batch.x = torch.tensor([[1.0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1]])
    assert model(batch).isfinite().all()
    same = torch.tensor([[1.0, 0, 0]] * 3 + [[0, 1, 0]])
    for wrong in (torch.ones(4, 3), torch.rand(4, 3), same):
        batch.x = wrong
        with pytest.raises(ValueError, match=r"^z: holds the types of 4 nodes"):
            model(batch)


def test_velocities_that_are_not_read_are_refused() -> None:
    data = pair(1)
    data.z, data.vel = None, torch.ones(2, 3)
    with pytest.raises(ValueError, match=r"^vel: holds velocities, .*EGNNMap\(velocity=True\)"):
        build("dgn")(data)
    psi = EGNNMap(velocity=True)
    assert build("dgn", coordinate_map=psi, task="coordinates")(data).isfinite().all()
    data.x = data.vel.norm(dim=1, keepdim=True)
    assert build("dgn", node_features=1)(data).isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": None}, "^z: is missing"),
        ({"z": torch.tensor([1, 12])}, "^z: holds 12; the model knows the types 0 to 9"),
        ({"z": torch.tensor([-1, 1])}, "^z: holds -1; the model knows the types 0 to 9"),
        ({"z": torch.ones(2)}, r"^z: is torch\.float32 \[2\]; it must be whole numbers"),
        ({"z": torch.ones(2, 1).long()}, r"^z: is torch\.int64 \[2, 1\]"),
        ({"x": torch.ones(2, 3)}, "^x: has 3 features that the model would not read"),
    ],
)
def test_types_are_checked(change: dict, message: str) -> None:
    data = pair(1)
    for name, value in change.items():
        data[name] = value
    with pytest.raises(ValueError, match=message):
        build("dgn", node_types=10)(data)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int32])
def test_whole_numbers_of_any_type(kind: torch.dtype) -> None:
    model, data = build("dgn", node_types="atoms"), pair(8)
    assert model.types.num_embeddings == 119
    out = model(data)
    data.z = data.z.to(kind)
    assert torch.equal(model(data), out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node_types": 0}, "node_types: is 0; give a whole number of at least 1"),
        ({"node_types": 2.5}, r"node_types: is 2\.5; give a whole number"),
        ({"node_types": "atom"}, "node_types: 'atom' is not known; did you mean 'atoms'"),
    ],
)
def test_the_option_is_checked(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build("dgn", **options)


@pytest.mark.parametrize("name", ["schnet", "dimenet", "dimenet++"])
def test_networks_with_types_of_their_own(name: str) -> None:
    model = build(name, node_types=7, hidden=8, layers=1)
    assert model.network.types == 7
    assert model.types is None
    with pytest.raises(ValueError, match="node_types: is 7, but types is 8; give one"):
        build(name, node_types=7, types=8)
    assert set(PEERS) == {"egnn", "isogcn", "schnet", "dimenet", "dimenet++"}


@COMPILES
def test_types_under_transforms() -> None:
    """Chunks, vmap over initialisations, and the compiler."""
    batch = molecules(torch.float64)

    def make(chunk: int | None = None):  # type: ignore[no-untyped-def]
        return build("agn", node_types=9, hidden=4, chunk=chunk).double()

    def loss(out: Tensor, data: Batch) -> Tensor:
        return (out - 1).square().mean()

    together, alone = Ensemble(make, 3), Ensemble(make, [1])
    losses = train_ensemble(together, batch, loss, 2)
    torch.testing.assert_close(train_ensemble(alone, batch, loss, 2)[:, 0], losses[:, 1])
    torch.manual_seed(5)
    model = make()
    torch.manual_seed(5)
    torch.testing.assert_close(make(chunk=7)(batch), model(batch))
    batch.topology = model.topology(batch)
    torch._dynamo.reset()
    fast = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    torch.testing.assert_close(fast(batch), model(batch))


def test_types_are_drawn_anew() -> None:
    model = build("dgn", node_types=5)
    before = model.types.weight.detach().clone()
    model.reset_parameters()
    assert not torch.equal(model.types.weight, before)
