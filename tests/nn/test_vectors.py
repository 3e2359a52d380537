"""Vectors of nodes and graphs: they turn with the coordinates, and do not move with them."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from helpers import COMPILES, FEATURES, both_ways, bridge_edges, generic_edges, graph, random_model
from symgnn.audit import audit
from symgnn.data import polytopes
from symgnn.graphs import knn_graph
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, build
from symgnn.train import Ensemble

TASKS = ("node-vectors", "graph-vectors")
PEERS = ("egnn", "schnet", "dimenet", "dimenet++", "isogcn")


def cloud(seed: int = 0, n: int = 3, nodes: int = 8, k: int = 3) -> Data:
    generator = torch.Generator().manual_seed(seed)
    pos = torch.randn(nodes, n, generator=generator, dtype=torch.float64)
    return Data(pos=pos, edge_index=knn_graph(pos, k))


def turn(n: int, seed: int = 0, proper: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    q = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0]
    if proper == (torch.det(q) < 0):
        q[:, 0] = -q[:, 0]
    return q


def changed(data: Data, **values: Tensor) -> Data:
    out = data.clone()
    for name, value in values.items():
        out[name] = value
    return out


def made(name: str, task: str, n: int = 3, **options: object) -> torch.nn.Module:
    torch.manual_seed(1)
    options = {"aggregation": "mean", "init": "torch", **options}
    return build(name, task=task, hidden=6, dimension=n, **options).double()


# ------------------------------------------------------------------ symmetry


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "gn"])
def test_vectors_turn_and_do_not_move(name: str, task: str, n: int) -> None:
    for psi, outputs in itertools.product(("identity", "shift", "neighbour-sum"), (1, 2)):
        model = made(name, task, n, coordinate_map=psi, outputs=outputs)
        data, q = cloud(n=n), turn(n)
        before = model(data)
        rows = 8 if task == "node-vectors" else 1
        assert before.shape == ((rows, n) if outputs == 1 else (rows, outputs, n))
        assert before.abs().max() > 1e-6
        after = model(changed(data, pos=data.pos @ q.T + 3.0))
        torch.testing.assert_close(after, before @ q.T, rtol=0, atol=1e-9)
        assert {"translation", "rotation", "reflection"} <= model.symmetry.kinds


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", PEERS)
def test_vectors_of_peers(name: str, task: str) -> None:
    torch.manual_seed(1)
    model = build(name, task=task, outputs=2, hidden=8, layers=2).double()
    data, q = cloud(), turn(3)
    if name in ("schnet", "dimenet", "dimenet++"):
        data.z = torch.arange(8) % 3 + 1
    before = model(data)
    assert before.shape == (8 if task == "node-vectors" else 1, 2, 3)
    after = model(changed(data, pos=data.pos @ q.T - 2.0))
    assert (after - before @ q.T).abs().max() < 1e-9 * before.abs().max()
    assert str(model.symmetry) == "E(n), permutations"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["agn", "sdgn", "cgn"])
def test_plain_rays_grow_with_the_coordinates_and_unit_rays_do_not(name: str, task: str) -> None:
    data = cloud()
    larger = changed(data, pos=7.0 * data.pos)
    model = made(name, task)
    assert "dilation" in model.symmetry
    torch.testing.assert_close(model(larger), 7.0 * model(data), rtol=1e-9, atol=1e-12)
    model = made(name, task, rays="unit")
    assert str(model.symmetry) == "E(n), permutations"
    torch.testing.assert_close(model(larger), model(data), rtol=1e-9, atol=1e-12)
    q = turn(3)
    after = model(changed(data, pos=data.pos @ q.T + 1.0))
    torch.testing.assert_close(after, model(data) @ q.T, rtol=0, atol=1e-9)


def test_a_node_with_one_neighbour_is_not_bound_to_its_edge() -> None:
    """In water, the force that bends the molecule is at right angles to the bonds."""
    pos = torch.tensor([[0.0, 0, 0], [1, 0, 0], [-0.2, 0.9, 0]], dtype=torch.float64)
    water = Data(pos=pos, edge_index=both_ways([(0, 1), (0, 2)]))
    one, two = made("agn", "node-vectors", layers=1), made("agn", "node-vectors", layers=2)
    across = torch.tensor([0.0, 1, 0], dtype=torch.float64)  # to the bond of node 1
    assert (one(water)[1] @ across).abs() < 1e-12
    assert (two(water)[1] @ across).abs() > 1e-4


def test_velocities_of_the_input_are_read() -> None:
    """Also where no coordinate map is left, and where a node has no neighbours."""
    alone = Data(pos=torch.zeros(1, 3).double(), edge_index=torch.zeros(2, 0, dtype=torch.long))
    for task, layers in itertools.product(TASKS, (1, 2)):
        model = made("egnn", task, layers=layers, velocity=True)
        with pytest.raises(ValueError, match="vel: is missing"):
            model(alone)
        assert model(changed(alone, vel=torch.ones(1, 3).double())).abs().min() > 1e-6
        data, q = cloud(), turn(3)
        data.vel = torch.randn(8, 3, generator=torch.Generator().manual_seed(3)).double()
        after = model(changed(data, pos=data.pos @ q.T + 1.0, vel=data.vel @ q.T))
        torch.testing.assert_close(after, model(data) @ q.T, rtol=0, atol=1e-9)
        assert audit(model, data, vectors="vel", elements=2).agrees


SOME = [
    ("dgn", "identity", "node-vectors", {}),
    ("agn", "rigid", "node-vectors", {"layers": 1}),
    ("agn", "neighbour-sum", "graph-vectors", {}),
    ("agn", "identity", "node-vectors", {"rays": "unit"}),
    ("sdgn", "identity", "graph-vectors", {"rays": "unit"}),
    ("gn", "identity", "node-vectors", {}),
]
ALL = [
    *((name, "identity", *rest) for name, *rest in itertools.product(ARCHITECTURES, TASKS)),
    *(("agn", psi, task) for psi, task in itertools.product(COORDINATE_MAPS, TASKS)),
]
ALL = [(*case, {"rays": rays}) for case in ALL for rays in ("plain", "unit")]


@pytest.mark.parametrize(
    "case",
    [*SOME, *(pytest.param(case, marks=pytest.mark.slow) for case in ALL)],
    ids=lambda case: "-".join(map(str, (*case[:3], *case[3].values()))),
)
def test_measured_is_derived(case: tuple) -> None:
    name, psi, task, options = case
    options = {"coordinate_map": psi, "task": task, "dimension": 3, "outputs": 2, **options}
    model = random_model(name, noise=0.3, aggregation="sum", **options, **FEATURES).float()
    report = audit(model, graph(bridge_edges(), 3, 0), elements=2)
    (output,) = report.outputs
    assert str(output) == f"vector per {task.removesuffix('-vectors')}"
    assert report.agrees, f"{model}\n{report.agrees}\n{report}"
    kinds = [k for k, finding in report.findings.items() if finding.verdict != "unmeasured"]
    assert {"translation", "rotation", "reflection", "dilation"} <= set(kinds)
    assert {k for k in kinds if k in report.symmetry} == {k for k in kinds if k in model.symmetry}


def test_repr_says_what_vectors_are_equivariant_to() -> None:
    text = repr(build("agn", task="node-vectors", hidden=4))
    assert text.endswith("equivariant to similarities, permutations")
    assert "task='node-vectors'" in text
    assert repr(build("dgn", task="graph-vectors")).endswith("equivariant to E(n), permutations")


# ------------------------------------------------------------------ degenerate geometry


@pytest.mark.parametrize("rays", ["plain", "unit"])
@pytest.mark.parametrize("task", TASKS)
def test_degenerate_graphs_have_zero_vectors_and_finite_derivatives(task: str, rays: str) -> None:
    model = made("dgn", task, rays=rays)
    edges = generic_edges()
    random = torch.randn(9, 3, generator=torch.Generator().manual_seed(0)).double()
    pair = random.clone()
    pair[1] = pair[0]
    none = torch.zeros(2, 0, dtype=torch.long)
    places = torch.full((9, 3), 0.25, dtype=torch.float64)
    cases = {
        "in one place": (places, edges, True),
        "a single node": (places[:1], none, True),
        "no edges": (random, none, task == "node-vectors"),
        "two nodes in one place": (pair, edges, False),
        "a single edge": (random[:2], torch.tensor([[0], [1]]), False),
    }
    for name, (pos, edge_index, zero) in cases.items():
        pos = pos.clone().requires_grad_()
        out = model(Data(pos=pos, edge_index=edge_index))
        assert out.isfinite().all(), name
        assert bool((out == 0).all()) == zero, name
        (first,) = torch.autograd.grad(out.square().sum() + out.sum(), pos, create_graph=True)
        assert first.isfinite().all(), name
        if first.requires_grad and edge_index.numel():
            wanted = [pos, *model.parameters()]
            second = torch.autograd.grad(first.square().sum(), wanted, allow_unused=True)
            assert all(g is None or g.isfinite().all() for g in second), name


def test_an_empty_graph_in_a_batch() -> None:
    empty = Data(pos=torch.zeros(0, 3).double(), edge_index=torch.zeros(2, 0, dtype=torch.long))
    batch = Batch.from_data_list([empty, cloud(), empty])
    assert made("agn", "node-vectors")(batch).shape == (8, 3)
    found = made("agn", "graph-vectors")(batch)
    assert found.shape == (3, 3)
    assert (found[[0, 2]] == 0).all()


# ------------------------------------------------------------------ as any other model


@pytest.mark.parametrize("task", TASKS)
def test_seeds_autocast_and_types(task: str) -> None:
    batch = Batch.from_data_list(polytopes(3)[:3])

    def make() -> torch.nn.Module:
        return build("dgn", task=task, hidden=4, outputs=2, aggregation="sum", init="torch")

    found = Ensemble(make, [3, 4, 5])(batch)
    for k, seed in enumerate((3, 4, 5)):
        torch.manual_seed(seed)
        torch.testing.assert_close(found[k], make()(batch), rtol=1e-4, atol=1e-5)
    model = make()
    expected = model(batch)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(batch)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, expected, rtol=0.1, atol=0.1)
    # neither coordinates nor weights are rounded to the type of the other
    assert made("dgn", task)(changed(cloud(), pos=cloud().pos.float())).dtype == torch.float64
    assert build("dgn", task=task)(cloud()).dtype == torch.float64


@COMPILES
def test_compile_and_export() -> None:
    torch.manual_seed(0)
    batch = Batch.from_data_list(polytopes(3)[:3])
    model = build("dgn", task="graph-vectors", hidden=4, outputs=2, init="torch")
    expected = model(batch)
    batch.topology = model.topology(batch)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    torch.testing.assert_close(compiled(batch), expected, rtol=1e-4, atol=1e-5)
    exported = torch.export.export(model, (), {"pos": batch.pos, "topology": batch.topology})
    again = exported.module()(pos=batch.pos, topology=batch.topology)
    torch.testing.assert_close(again, expected, rtol=1e-4, atol=1e-5)


def test_vectors_are_refused_where_they_are_not_defined() -> None:
    with pytest.raises(ValueError, match=r"aggregation: pool is 'max'.*'sum' or 'mean'"):
        build("dgn", task="graph-vectors", aggregation="max")
    build("dgn", task="node-vectors", aggregation="max")
    with pytest.raises(ValueError, match=r"rays: is 'unit', but task='graph' gives no vectors"):
        build("dgn", rays="unit")
    with pytest.raises(ValueError, match=r"rays: 'units' is not known; did you mean 'unit'"):
        build("dgn", task="node-vectors", rays="units")
    with pytest.raises(ValueError, match=r"SchNet has no read-out for 'edge'; .*node-vectors"):
        build("schnet", task="edge")
