"""Models under torch.compile, export, autocast, torch.func and in other types"""

import copy

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch_geometric.data import Batch, Data

import symgnn
from helpers import COMPILES
from nn.manners_cases import small, solids
from symgnn.graphs import Topology
from symgnn.nn import ARCHITECTURES


def prepared(model: symgnn.nn.Model, batch: Batch) -> Batch:
    batch = copy.copy(batch)
    batch.topology = model.topology(batch)
    return batch


@COMPILES
@pytest.mark.parametrize(
    ("name", "psi"),
    [
        ("agn", "neighbour-sum"),
        pytest.param("sdgn", "egcn", marks=pytest.mark.slow),
        pytest.param("cgn", "rigid", marks=pytest.mark.slow),
    ],
)
def test_compile_without_graph_breaks(name: str, psi: str) -> None:
    model = small(name, coordinate_map=psi)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in (ring(6), ring(11)):
        batch = prepared(model, batch)
        expected, got = model(batch), compiled(batch)
        torch.testing.assert_close(got, expected)
        gradient = torch.autograd.grad(got.square().sum(), list(model.parameters()))
        right = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
        for a, b in zip(gradient, right, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@COMPILES
def test_compiled_movements_stay_whole_both_ways() -> None:
    """The compiler would make slow additions of them; an exported program needs no symgnn."""
    model, graphs = small("agn"), []
    batch = prepared(model, solids())

    def look(graph: torch.fx.GraphModule, _: object) -> object:
        graphs.append({str(node.target) for node in graph.graph.nodes})
        return make_boxed_func(graph.forward)

    torch._dynamo.reset()
    model_compiled = torch.compile(model, fullgraph=True, backend=aot_autograd(fw_compiler=look))
    model_compiled(batch).sum().backward()
    assert len(graphs) == 2  # forward and backward
    for targets in graphs:
        assert "symgnn.move.default" in targets
        assert not [name for name in targets if "index_add" in name or "scatter" in name]
    exported = torch.export.export(
        model, (), {"pos": batch.pos, "topology": batch.topology}, strict=True
    )
    assert "symgnn" not in {str(n.target).partition(".")[0] for n in exported.graph.nodes}


@COMPILES
def test_compiled_transforms() -> None:
    """Transforms of torch.func inside what is compiled."""
    model = small("agn", layers=1)
    batch = prepared(model, solids())

    def energy(pos: torch.Tensor) -> torch.Tensor:
        return model(pos=pos, topology=batch.topology).square().sum()

    torch._dynamo.reset()
    forces = torch.func.grad(energy)
    compiled = torch.compile(forces, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(batch.pos), forces(batch.pos), rtol=1e-4, atol=1e-5)
    several = torch.func.vmap(energy)
    stack = torch.stack([batch.pos, 2 * batch.pos])
    compiled = torch.compile(several, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(stack), several(stack), rtol=1e-4, atol=1e-5)


def test_forward_mode_without_torch_func() -> None:
    """Tangents are seen though nothing requires a gradient."""
    model = small("dgn", coordinate_map="neighbour-sum").double().requires_grad_(False)
    batch = prepared(model, solids())
    pos, tangent = batch.pos.double(), torch.randn(batch.pos.shape, dtype=torch.float64)

    def energy(pos: torch.Tensor) -> torch.Tensor:
        return model(pos=pos, topology=batch.topology).square().sum()

    with torch.autograd.forward_ad.dual_level():
        out = energy(torch.autograd.forward_ad.make_dual(pos, tangent))
        found = torch.autograd.forward_ad.unpack_dual(out).tangent
    step = 1e-6
    expected = (energy(pos + step * tangent) - energy(pos - step * tangent)) / (2 * step)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)


@COMPILES
def test_compile_without_a_topology_says_what_to_do() -> None:
    model = small("agn", layers=1)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    with pytest.raises(Exception, match=r"data\.topology = model\.topology\(data\)"):
        compiled(ring(6))


@COMPILES
def test_compile_with_the_default_backend() -> None:
    """Inductor needs a C++ compiler; where there is none, this says so."""
    model = small("agn", layers=1)
    batch = prepared(model, solids())
    torch._dynamo.reset()
    try:
        got = torch.compile(model, fullgraph=True, dynamic=True)(batch)
    except Exception as error:
        if "compiler" in str(error).lower():
            pytest.skip(f"no compiler for inductor: {type(error).__name__}")
        raise
    torch.testing.assert_close(got, model(batch), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("psi", ["identity", "neighbour-sum", "egcn"])
@pytest.mark.parametrize("name", ["dgn", "agn+edges", "cgn"])
def test_export(name: str, psi: str) -> None:
    model, batch = small(name, coordinate_map=psi), solids()
    given = {"pos": batch.pos, "topology": model.topology(batch)}
    exported = torch.export.export(model, (), given)
    moved = {**given, "pos": torch.randn_like(batch.pos)}
    torch.testing.assert_close(exported.module()(**moved), model(**moved))


def test_export_with_any_number_of_nodes() -> None:
    """The sizes of a graph can be left open, and the degrees of its nodes too."""
    model = small("agn")
    small_ring, large_ring = ring(6), ring(11)
    chord = torch.tensor([[0, 5], [5, 0]])
    large_ring.edge_index = torch.cat([large_ring.edge_index, chord], 1)
    given = {"pos": small_ring.pos, "topology": model.topology(small_ring)}
    sizes = torch.export.ShapesCollection()
    for tensor in torch.utils._pytree.tree_leaves(given):
        if isinstance(tensor, torch.Tensor):
            sizes[tensor] = dict.fromkeys(range(tensor.dim()), torch.export.Dim.AUTO)
    exported = torch.export.export(model, (), given, dynamic_shapes=sizes)
    large = {"pos": large_ring.pos, "topology": model.topology(large_ring)}
    torch.testing.assert_close(exported.module()(**large), model(**large))


def ring(n: int) -> Data:
    node = torch.arange(n)
    edges = torch.stack([node, (node + 1) % n])
    pos = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
    return Data(pos=pos, edge_index=torch.cat([edges, edges.flip(0)], 1))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_bfloat16_autocast(name: str) -> None:
    """Geometry stays in float32: far from the origin, bfloat16 would not see the shape at all."""
    model, batch = small(name, coordinate_map="neighbour-sum"), solids()
    if name != "gn":
        batch.pos = batch.pos + 1000
    expected = model(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = model(batch)
        got.float().square().sum().backward()
    scale = expected.abs().max()
    assert (got.float() - expected).abs().max() < 0.05 * scale
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_models_in_other_types(dtype: torch.dtype) -> None:
    model, batch = small("agn", coordinate_map="neighbour-sum"), solids()
    expected = model(batch)
    got = model.to(dtype)(batch)
    assert got.dtype == dtype
    assert (got.float() - expected).abs().max() < 0.05 * expected.abs().max()


def test_coordinates_in_float64_with_a_float32_model() -> None:
    model, batch = small("dgn"), solids()
    expected = model(batch)
    batch.pos = batch.pos.double()
    torch.testing.assert_close(model(batch), expected)


@pytest.mark.parametrize("psi", ["identity", "neighbour-sum", "scale-u", "rigid"])
@pytest.mark.parametrize("aggregation", ["sum", "max"])
@pytest.mark.parametrize("name", ["gn", "sdgn", "agn", "agn-to-edges"])
def test_vmap_over_parameters(name: str, aggregation: str, psi: str) -> None:
    """Several initialisations as one computation: values and gradients."""
    models = []
    for seed in range(3):
        model = small(name, coordinate_map=psi, aggregation=aggregation)
        torch.manual_seed(seed)
        model.reset_parameters()
        models.append(model)
    batch = solids()
    given = {"pos": batch.pos, "topology": models[0].topology(batch)}
    parameters, _ = torch.func.stack_module_state(models)

    def loss(p: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.functional_call(models[0], p, (), given).square().sum()

    gradients, losses = torch.vmap(torch.func.grad_and_value(loss))(parameters)
    for k, model in enumerate(models):
        expected = model(**given).square().sum()
        torch.testing.assert_close(losses[k], expected)
        right = torch.autograd.grad(expected, list(model.parameters()))
        for (key, _), value in zip(model.named_parameters(), right, strict=True):
            torch.testing.assert_close(gradients[key][k], value, rtol=1e-4, atol=1e-5)


def test_forces_and_hessians_by_torch_func() -> None:
    model, graph = small("combined", layers=1).double(), symgnn.data.polytope("simplex", 3)
    pos = graph.pos.double() + 0.1 * torch.randn(4, 3, dtype=torch.float64)
    topology = Topology.of(graph)

    def energy(x: torch.Tensor) -> torch.Tensor:
        return model(pos=x, topology=topology).sum()

    force = torch.func.jacrev(energy)(pos)
    x = pos.clone().requires_grad_()
    torch.testing.assert_close(force, torch.autograd.grad(energy(x), x)[0])
    hessian = torch.func.hessian(energy)(pos).view(12, 12)
    torch.testing.assert_close(hessian, hessian.T)
    assert torch.autograd.gradgradcheck(energy, x)
