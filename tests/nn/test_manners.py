"""What users of PyTorch and PyG expect of a module."""

import copy
import io
import pickle

import pytest
import torch

import symgnn
from nn.manners_cases import small, solids
from symgnn.nn import ARCHITECTURES, AGNConv, build

MAPS = ["identity", "neighbour-sum", "egcn-neighbours", "egcn", "scale-u", "rigid"]


def test_the_first_example_of_the_library() -> None:
    model = build(
        "agn", node_features=0, hidden=32, layers=2, aggregation="sum", task="graph", outputs=5
    )
    assert model(solids()).shape == (5, 5)
    assert str(model.symmetry) == "similarities, torsions, redrawings, angle flexes, permutations"


def test_repr_is_short_and_names_the_symmetry() -> None:
    assert repr(build("agn", hidden=8, outputs=2)) == (
        "AGN(layers=2, hidden=8, task='graph', outputs=2, parameters=3954), "
        "invariant to similarities, torsions, redrawings, angle flexes, permutations"
    )
    assert repr(build("dgn", task="coordinates", coordinate_map="egcn", layers=1)).endswith(
        "equivariant to E(n), permutations"
    )
    assert repr(AGNConv(4, 8)) == (
        "AGNConv(4, 8), invariant to similarities, torsions, redrawings, angle flexes, permutations"
    )


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_deepcopy_pickle_and_state_dict_give_the_same_model(name: str) -> None:
    model, batch = small(name, coordinate_map="neighbour-sum"), solids()
    expected = model(batch)
    assert torch.equal(copy.deepcopy(model)(batch), expected)
    assert torch.equal(pickle.loads(pickle.dumps(model))(batch), expected)
    other = small(name, coordinate_map="neighbour-sum")
    other.reset_parameters()
    assert not torch.allclose(other(batch), expected)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(batch), expected)


@pytest.mark.parametrize("psi", symgnn.nn.COORDINATE_MAPS)
def test_reset_parameters_is_a_fresh_start(psi: str) -> None:
    """Every parameter is drawn anew, as when the model was built."""
    model = small("dgn", coordinate_map=psi, layers=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    torch.manual_seed(5)
    model.reset_parameters()
    for name, parameter in model.named_parameters():
        assert (parameter != 7).all(), name
    assert torch.isfinite(model(solids())).all()


@pytest.mark.parametrize("psi", MAPS)
@pytest.mark.parametrize(
    "task", ["graph", "node", "edge", "coordinates", "node-vectors", "graph-vectors"]
)
@pytest.mark.parametrize("name", ["gn", "sdgn", "agn-to-edges", "agn-raw", "combined"])
def test_every_parameter_is_used(name: str, task: str, psi: str) -> None:
    """DistributedDataParallel stops at parameters that get no gradient."""
    if (task, psi) == ("coordinates", "identity") or (name, psi) == ("agn-to-edges", "egcn"):
        pytest.skip("not a model")
    model = small(name, task=task, coordinate_map=psi, layers=3)
    model(solids()).square().sum().backward()
    unused = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert not unused
