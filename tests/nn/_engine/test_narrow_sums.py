"""Sums of product form where nodes have few numbers, against those through factors of the rays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from helpers import FEATURES, bridge_edges, graph, random_model
from symgnn.nn import Model
from symgnn.nn._engine import moments as moments_module
from symgnn.nn._engine import narrow_sums as narrow_module
from symgnn.nn._engine import unchunked_engine as engine_module

TOLERANCE = 1e-10
KINDS = (
    *("agn-separable", "cgn-separable", "combined-separable"),
    *("coincident points", "envelope", "tied"),
)


def made(kind: str, dimension: int, degree: int, **features: int) -> tuple[Model, Data]:
    """A network of one layer, and a graph with vertices of several degrees."""
    data = graph(bridge_edges(), dimension, 0)
    widths = FEATURES | features
    data.x = data.x if widths["node_features"] else None
    data.u = data.u if widths["graph_features"] else None
    if kind == "coincident points":
        data.pos[data.edge_index[0, 0]] = data.pos[data.edge_index[1, 0]]
    options = {"envelope": True, "cutoff": 5.0} if kind == "envelope" else {}
    name = kind if kind.endswith("separable") else "agn-separable"
    options |= {"degree": degree, "dimension": dimension, "layers": 1, "aggregation": "sum"}
    return random_model(name, tied=kind == "tied", **options, **widths), data


def derivatives(model: Model, data: Data) -> list[Tensor]:
    """The output, its derivatives by everything, and those of their squares."""
    data = data.clone()
    data.pos.requires_grad_()
    leaves = [data.pos, *model.parameters()]
    if data.x is not None:
        leaves.append(data.x.requires_grad_())

    def grad(out: Tensor, **options: bool) -> list[Tensor]:
        found = torch.autograd.grad(out, leaves, allow_unused=True, **options)
        pairs = zip(leaves, found, strict=True)
        return [torch.zeros_like(leaf) if g is None else g for leaf, g in pairs]

    out = model(data)
    first = grad(out.square().sum(), create_graph=True)
    return [out, *first, *grad(sum(each.square().sum() for each in first))]


def counted(monkeypatch: pytest.MonkeyPatch, name: str = "narrow_sums") -> list[int]:
    """A list that grows with each narrow sum."""
    calls: list[int] = []
    narrow: Callable[..., Tensor] = getattr(moments_module, name)

    def count(*given: object) -> Tensor:
        calls.append(1)
        return narrow(*given)

    monkeypatch.setattr(moments_module, name, count)
    return calls


@pytest.mark.parametrize("few", [0.0, 1.0, 1e9], ids=["moments", "both", "pairs"])
@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_same_as_through_rays(
    kind: str, dimension: int, few: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, first and second derivatives."""
    monkeypatch.setattr(moments_module, "FEW", few)
    model, data = made(kind, dimension, degree=3)
    calls = counted(monkeypatch)
    found = derivatives(model, data)
    assert calls
    monkeypatch.setattr(engine_module, "narrow_factors", lambda given: None)
    calls.clear()
    wanted = derivatives(model, data)
    assert not calls
    same(found, wanted)


def same(found: list[Tensor], wanted: list[Tensor]) -> None:
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        error = (one - other).abs().max() / other.abs().max().clamp(min=1.0)
        assert error < TOLERANCE, f"{number}: off by {error:.1e}"


@pytest.mark.parametrize("few", [0.0, 1.0, 1e9], ids=["moments", "both", "pairs"])
@pytest.mark.parametrize("kind", KINDS)
def test_nodes_that_are_alike(kind: str, few: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes without features, unless values of their graphs differ."""
    monkeypatch.setattr(moments_module, "FEW", few)
    calls = counted(monkeypatch, "equal_sums")
    derivatives(*made(kind, 3, degree=3, node_features=0))
    assert not calls
    model, data = made(kind, 3, degree=3, node_features=0, graph_features=0)
    found = derivatives(model, data)
    assert calls
    monkeypatch.setattr(engine_module, "equal_factors", lambda given: None)
    calls.clear()
    wanted = derivatives(model, data)
    assert not calls
    same(found, wanted)


@pytest.mark.parametrize("few", [0.0, 1.0, 1e9], ids=["moments", "both", "pairs"])
@pytest.mark.parametrize("dimension", [1, 3])
def test_sums_to_rays_of_nodes_that_are_alike(
    dimension: int, few: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments_module, "FEW", few)
    calls = counted(monkeypatch, "equal_ray_sums")
    widths = {"node_features": 0, "graph_features": 0, "edge_features": 0}
    model, data = made("agn-to-edges-separable", dimension, 3, **widths)
    data.edge_attr = None
    found = derivatives(model, data)
    assert calls
    monkeypatch.setattr(engine_module, "equal_factors", lambda given: None)
    calls.clear()
    wanted = derivatives(model, data)
    assert not calls
    same(found, wanted)


@pytest.mark.parametrize(
    ("name", "features", "used"),
    [
        ("agn-separable", 4, True),
        ("agn-separable", 5, False),  # 5 times 6 is more than 4 times 6 channels
        ("agn+edges-separable", 2, False),  # rays add something of their own
        ("agn+distances-separable", 2, False),
    ],
)
def test_where_it_is_used(
    name: str, features: int, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert narrow_module.WORTH == 4
    data = graph(bridge_edges(), 3, 0)
    data.x = torch.randn(data.num_nodes, features, dtype=data.pos.dtype)
    options = {**FEATURES, "node_features": features}
    calls = counted(monkeypatch)
    random_model(name, layers=1, hidden=6, **options)(data)
    assert bool(calls) == used
