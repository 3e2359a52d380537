"""Separable, chiral and conformal blocks where others run: ensembles and inductor."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

import symgnn
from helpers import COMPILES, train_ensemble
from symgnn.nn import Model, build
from symgnn.train import Ensemble

#: Names and whether nodes read handedness.
CASES = [
    ("agn-separable", False),
    ("agn-to-edges-separable", True),
    ("cgn-separable", True),
    ("dimenet-separable", False),
]


def solids() -> Batch:
    """A cube and an octahedron, with moved vertices."""
    graphs = [symgnn.data.polytope(name, 3).clone() for name in ("hypercube", "orthoplex")]
    random = torch.Generator().manual_seed(0)
    for k, graph in enumerate(graphs):
        graph.pos = (graph.pos + 0.1 * torch.randn(graph.pos.shape, generator=random)).double()
        graph.y = torch.tensor([k])
    return Batch.from_data_list(graphs)


def make(name: str, chiral: bool) -> Model:
    return build(name, chiral=chiral, dimension=3, hidden=4, outputs=2).double()


def loss(out: Tensor, data: Data) -> Tensor:
    return nn.functional.cross_entropy(out, data.y)


@pytest.mark.parametrize(("name", "chiral"), CASES)
def test_a_member_learns_as_a_network_alone(name: str, chiral: bool) -> None:
    data = solids()
    together = Ensemble(partial(make, name, chiral), 3)
    train_ensemble(together, data, loss, 5)
    torch.manual_seed(1)
    model = make(name, chiral)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(5):
        optimiser.zero_grad()
        loss(model(data), data).backward()
        optimiser.step()
    torch.testing.assert_close(together(data)[1], model(data))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "chiral"), CASES)
def test_inductor(name: str, chiral: bool) -> None:
    """It needs a C++ compiler."""
    try:
        check_compiled(name, chiral, "inductor")
    except Exception as error:
        if "compiler" in str(error).lower():
            pytest.skip(f"no compiler for inductor: {type(error).__name__}")
        raise


@COMPILES
@pytest.mark.parametrize(("name", "chiral"), CASES[2:])
def test_compiled_graphs(name: str, chiral: bool) -> None:
    """What inductor is given, run as it is."""
    check_compiled(name, chiral, "aot_eager")


def check_compiled(name: str, chiral: bool, backend: str) -> None:
    """Outputs and gradients of the compiled network are those of the network."""
    model, data = make(name, chiral), solids()
    data.topology = model.topology(data)
    wanted = torch.autograd.grad(
        model(data).square().sum(), list(model.parameters()), allow_unused=True
    )
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    out = compiled(data)
    torch.testing.assert_close(out, model(data), rtol=1e-9, atol=1e-10)
    found = torch.autograd.grad(out.square().sum(), list(model.parameters()), allow_unused=True)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["agn-separable", "dimenet-separable"])
def test_channels_alone(name: str) -> None:
    """More or fewer products than other values have numbers, against the listed angles."""
    data = solids()
    for channels in (3, 7):
        torch.manual_seed(0)
        options = {"hidden": 4, "channels": channels, "aggregation": "sum"}
        model = build(name, **options).double()
        shapes = {p.shape for key, p in model.named_parameters() if key.endswith("coefficients")}
        assert shapes == {(channels, 4)}
        listed = build(name, engine="reference", **options).double()
        listed.load_state_dict(model.state_dict())
        torch.testing.assert_close(model(data), listed(data), rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="channels: is 3, but AGN is not separable"):
        build("agn", channels=3)
