"""Each way of computing fast gives what the reference path gives: values and two derivatives."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from symgnn.nn import AGN, ARCHITECTURES, COORDINATE_MAPS, After, Engine, Model, Network, build
from symgnn.nn._engine import first_half, tiles
from symgnn.nn._engine.policy import using_policy
from symgnn.nn._engine.unchunked_engine import UnchunkedEngine
from symgnn.nn.state import Reference

#: Each pass: the policy under which it runs, and what the engine is told.
PASSES: dict[str, tuple[dict[str, int], int | None]] = {
    "few rows": ({}, None),
    "many rows": ({"few": 0}, None),
    "tiles": ({"few": 0, "worth_tiles": 0, "tile": 100}, None),
    "chunks": ({}, 7),
}
AGGREGATIONS: dict[str, Any] = {
    "sum": "sum",
    "mean": "mean",
    "max": "max",
    "mixed": {"e->v": "max", "a->v": "sum", "a->e": "mean", "x->u": "max", "pool": "sum"},
}


def batch() -> Batch:
    """Directed graphs with self-loops, parallel edges, and a node alone, with all features."""
    random = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    graphs = []
    for nodes in (5, 7, 1, 6):
        edges = (torch.rand(nodes, nodes, generator=random) < 0.4).nonzero().T
        edges = torch.cat([edges, edges[:, :2]], 1)
        graphs.append(
            Data(
                pos=normal(nodes, 3),
                edge_index=edges,
                x=normal(nodes, 2),
                edge_attr=normal(edges.shape[1], 3),
                u=normal(1, 2),
            )
        )
    return Batch.from_data_list(graphs)


def network(architecture: Any, **options: Any) -> Model:
    torch.manual_seed(1)
    widths = {"node_features": 2, "edge_features": 3, "graph_features": 2, "dimension": 3}
    settings = {"hidden": 6, "outputs": 2, "mlp_hidden": 9, **widths, **options}
    model = build(architecture, **settings).double()
    with torch.no_grad():  # some maps start as the identity
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def derivatives(model: nn.Module, data: Batch) -> list[Tensor]:
    """The outputs, their gradients, and the gradients of the squares of these."""
    data = data.clone()
    inputs = [
        data.pos,
        *(data[key] for key in ("x", "edge_attr", "u") if data.get(key) is not None),
    ]
    inputs = [*(value.requires_grad_() for value in inputs), *model.parameters()]
    out = model(data)
    weights = torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).view_as(out)
    once = torch.autograd.grad((out * weights).sum(), inputs, create_graph=True, allow_unused=True)
    once = [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, once, strict=True)]
    square = sum(grad.square().sum() for grad in once)
    twice = torch.autograd.grad(square, inputs, allow_unused=True)
    twice = [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, twice, strict=True)]
    return [out.detach(), *(grad.detach() for grad in (*once, *twice))]


def check(model: Model, data: Batch, name: str) -> None:
    """All passes against the reference path, relative to the largest of the numbers compared."""
    model.engine = Reference()
    expected = derivatives(model, data)
    policy, chunk = PASSES[name]
    model.engine = Engine(chunk)
    with using_policy(**policy):
        found = derivatives(model, data)
    count = (len(expected) - 1) // 2
    for part in (slice(0, 1), slice(1, 1 + count), slice(1 + count, None)):
        largest = max(float(value.abs().max()) for value in expected[part] if value.numel())
        for one, other in zip(found[part], expected[part], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10 * max(largest, 1.0))


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_architectures(architecture: str, aggregation: str, name: str) -> None:
    model = network(
        architecture, aggregation=AGGREGATIONS[aggregation], coordinate_map="neighbour-sum"
    )
    check(model, batch(), name)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("coordinate_map", COORDINATE_MAPS)
def test_coordinate_maps(coordinate_map: str, name: str) -> None:
    check(network("combined", coordinate_map=coordinate_map), batch(), name)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("architecture", ["gn", "dgn", "agn+edges", "agn-to-edges", "cgn"])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_last_maps_that_fold(architecture: str, layers: int, name: str) -> None:
    """With fewer hidden numbers than results, last maps are folded into the next layer."""
    options = {"mlp_hidden": 4, "mlp_layers": layers, "layers": 3, "task": "node"}
    check(network(architecture, **options), batch(), name)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("domain", ["angle", "edge", "node", "graph"])
def test_gates_and_residuals(domain: str, name: str) -> None:
    after = {domain: After(activation=True, gate=True, residual=True)}
    first, second = AGN, AGN.replace(name="after", after=after)
    widths = dict.fromkeys(("node_features", "edge_features", "graph_features"), 6)
    data = batch()
    for key in ("x", "edge_attr", "u"):
        data[key] = data[key].repeat(1, 3)[:, :6]
    if domain == "angle":
        check(network(Network("two", second, first=[first]), **widths), data, name)
    else:
        check(network(second, **widths), data, name)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("architecture", ["dgn", "combined", "agn+edges", "combined-separable"])
def test_envelopes(architecture: str, name: str) -> None:
    """Values that fade out towards a cutoff, with a plain result and with one that is added to."""
    for residual in (False, True):
        model = network(architecture, envelope=True, cutoff=2.5, residual=residual)
        check(model, batch(), name)


@pytest.mark.parametrize("nodes", [6, 25])
@pytest.mark.parametrize(
    "architecture", ["agn-separable", "combined-separable", "cgn-separable", "agn+edges-separable"]
)
def test_layers_of_product_form(architecture: str, nodes: int) -> None:
    """Layers read the same geometry: no part of a derivative may be counted twice."""
    pos = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    edges = torch.ones(nodes, nodes).fill_diagonal_(0).nonzero().T
    data = Batch.from_data_list([Data(pos=pos, edge_index=edges)])
    features = {"node_features": 0, "edge_features": 0, "graph_features": 0}
    check(network(architecture, layers=3, **features), data, "few rows")


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("peer", ["egnn", "schnet", "dimenet", "dimenet++", "isogcn"])
def test_peers(peer: str, name: str) -> None:
    data = batch()
    data.u = None
    options: dict[str, Any] = {"graph_features": 0, "hidden": 6, "mlp_hidden": None}
    if peer in ("schnet", "dimenet", "dimenet++"):
        data.z = torch.arange(data.num_nodes) % 5
        data.x = data.edge_attr = None
        options |= {"node_features": 0, "edge_features": 0}
    elif peer == "isogcn":
        data.edge_attr = None
        options["edge_features"] = 0
    check(network(peer, **options), data, name)


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    calls: list[int] = []
    function = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *a, **k: calls.append(1) or function(*a, **k))
    return calls


def test_each_pass_is_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the comparisons above would compare something else."""
    model, data = network("agn"), batch()
    few = counted(monkeypatch, first_half, "_few_angles")
    concatenated = counted(monkeypatch, UnchunkedEngine, "_concatenated")
    many = counted(monkeypatch, first_half, "rows_below")
    in_tiles = counted(monkeypatch, tiles, "forward")
    seen = {}
    for name, (policy, chunk) in PASSES.items():
        context: AbstractContextManager = using_policy(**policy) if policy else nullcontext()
        model.engine = Engine(chunk)
        with context:
            model(data)
        seen[name] = (bool(few), bool(concatenated), bool(many), bool(in_tiles))
        for calls in (few, concatenated, many, in_tiles):
            calls.clear()
    assert seen["few rows"] == (True, True, False, False)
    assert seen["many rows"] == (False, False, True, False)
    assert seen["tiles"][3]
    model.engine = Reference()
    model(data)
    assert not few
    assert not concatenated
    assert not many


def test_the_engine_is_an_option() -> None:
    data = batch()
    fast, plain = network("agn"), network("agn", engine="reference")
    assert (repr(fast.engine), repr(plain.engine)) == ("fast", "reference")
    torch.testing.assert_close(fast(data), plain(data), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="engine: is 'quick'; choose from fast, reference"):
        network("agn", engine="quick")
    with pytest.raises(ValueError, match="chunk: is 5, but the reference engine"):
        network("agn", engine="reference", chunk=5)


def test_the_reference_path_runs_everywhere() -> None:
    """Under vmap and derivatives of torch.func, as it is written."""
    model, data = network("combined", engine="reference"), batch()
    topology = model.topology(data)
    given = {key: data[key] for key in ("x", "edge_attr", "u")}

    def energy(pos: Tensor) -> Tensor:
        return model(pos=pos, topology=topology, **given).sum()

    several = torch.stack([data.pos, 2 * data.pos])
    forces = torch.vmap(torch.func.grad(energy))(several)
    for pos, force in zip(several, forces, strict=True):
        pos = pos.clone().requires_grad_()
        (expected,) = torch.autograd.grad(energy(pos), pos)
        torch.testing.assert_close(force, expected)


def test_the_topology_may_be_an_argument_of_a_transform() -> None:
    """torch.func.grad wraps all tensors of all arguments."""
    model, data = network("combined"), batch()
    given = {key: data[key] for key in ("x", "edge_attr", "u")}

    def energy(pos: Tensor, topology: Any) -> Tensor:
        return model(pos=pos, topology=topology, **given).sum()

    topology = model.topology(data)
    pos = data.pos.clone().requires_grad_()
    (expected,) = torch.autograd.grad(energy(pos, topology), pos)
    torch.testing.assert_close(torch.func.grad(energy)(data.pos, topology), expected)
