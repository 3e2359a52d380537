"""What users of PyTorch and PyG expect of a module."""

import copy
import io
import pickle

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch_geometric.data import Batch, Data

import symgnn
from symgnn.graphs import Topology, knn_graph
from symgnn.nn import ARCHITECTURES, AGNConv, Conv, DGNConv, GNConv, build

MAPS = ["identity", "neighbour-sum", "egcn-neighbours", "egcn", "scale-u", "rigid"]


def solids() -> Batch:
    return Batch.from_data_list(symgnn.data.polytopes(3))


def cloud(sizes: tuple[int, ...] = (9, 14), k: int = 3, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for n in sizes:
        pos = torch.randn(n, 3, generator=generator)
        graphs.append(Data(pos=pos, edge_index=knn_graph(pos, k)))
    return Batch.from_data_list(graphs)


def small(name: str, **options: object) -> symgnn.nn.Model:
    torch.manual_seed(0)
    settings = {"dimension": 3, "hidden": 8, "outputs": 5, "aggregation": "sum", **options}
    return build(name, **settings)  # type: ignore[arg-type]


def prepared(model: symgnn.nn.Model, batch: Batch) -> Batch:
    batch = copy.copy(batch)
    batch.topology = model.topology(batch)
    return batch


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


@pytest.mark.parametrize(
    ("name", "psi"), [("agn", "neighbour-sum"), ("sdgn", "egcn"), ("cgn", "rigid")]
)
def test_compile_without_graph_breaks(name: str, psi: str) -> None:
    model = small(name, coordinate_map=psi)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in (ring(6), ring(11), ring(17)):
        batch = prepared(model, batch)
        expected, got = model(batch), compiled(batch)
        torch.testing.assert_close(got, expected)
        gradient = torch.autograd.grad(got.square().sum(), list(model.parameters()))
        right = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
        for a, b in zip(gradient, right, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


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


def test_compile_without_a_topology_says_what_to_do() -> None:
    model = small("agn", layers=1)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    with pytest.raises(Exception, match=r"data\.topology = model\.topology\(data\)"):
        compiled(ring(6))


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
