"""Geometry and graphs at their limits: values stay defined, gradients finite, errors clear."""

import functools
import itertools

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import (
    FEATURES,
    both_ways,
    directed,
    distance,
    generic_edges,
    graph,
    random_model,
    rng,
    without_features,
)
from nn.degenerate_cases import DTYPES, EACH_DTYPE, EACH_MODEL, NO_EDGES, model_of
from symgnn.graphs import Topology
from symgnn.nn import ARCHITECTURES, Spec, reduce
from symgnn.nn.inputs import a, d2, e, theta, v

TASKS = (("graph", "mean"), ("node", "max"), ("edge", "sum"), ("coordinates", "mean"))


# ------------------------------------------------------------------ the cases


@functools.cache
def shapes(n: int = 3) -> dict[str, Data]:
    """Graphs in which something is missing, coincides, is aligned or is there twice."""
    edges = generic_edges()
    x = torch.randn(9, n, generator=rng(n), dtype=torch.float64)
    line = torch.arange(9.0, dtype=torch.float64).unsqueeze(1)
    along = torch.tensor([1.0, 2.0, 4.0, 0.5, -1.0, 3.0], dtype=torch.float64)[:n]
    oblique = torch.tensor([0.3, -0.7, 1.1, 0.9, 0.1, 2.0], dtype=torch.float64)[:n]
    pair = x.clone()
    pair[1] = pair[0]
    three = pair.clone()
    three[2] = three[0]
    loops = torch.arange(9).repeat(2, 1)
    cases = {
        "two nodes in one place": (pair, edges),
        "three nodes in one place": (three, edges),
        "all nodes in one place": (torch.full((9, n), 0.3).double(), edges),
        "all nodes at the origin": (torch.zeros(9, n).double(), edges),
        "a line, exactly": (line * along, edges),
        "a line, to rounding": (line * oblique + 0.1, edges),
        "a line, nearly": (line * oblique + 1e-9 * x, edges),
        "isolated nodes": (torch.cat([x, x[:2] + 1]), edges),
        "one edge": (x[:2], torch.tensor([[0], [1]])),
        "a zero-length edge alone": (pair[:2], torch.tensor([[0], [1]])),
        "a path": (x, both_ways([(i, i + 1) for i in range(8)])),
        "a star": (x, torch.tensor([[0] * 8, list(range(1, 9))])),
        "no edges": (x, NO_EDGES),
        "one node": (x[:1], NO_EDGES),
        "no nodes": (x[:0], NO_EDGES),
        "self-loops": (x, torch.cat([edges, loops], 1)),
        "only self-loops": (x, loops),
        "edges twice": (x, torch.cat([edges, edges[:, :9], edges[:, :3]], 1)),
        "edges one way": (x, directed(edges)),
    }
    return {name: Data(pos=pos, edge_index=e) for name, (pos, e) in cases.items()}


def sizes(powers) -> dict[str, Data]:
    """A graph of very small or large coordinates."""
    data = without_features(graph(generic_edges(), 3, 0))
    return {f"size 1e{k}": Data(pos=10.0**k * data.pos, edge_index=data.edge_index) for k in powers}


def infinities(model, data: Data, dtype: torch.dtype) -> list[str]:
    """What is not finite of the output, and of the gradients of coordinates and parameters."""
    data = data.clone()
    data.pos = data.pos.to(dtype).requires_grad_()
    model.zero_grad()
    output = model(data)
    assert output.dtype == dtype
    weight = torch.randn(output.shape, generator=rng(9)).to(dtype)
    (output * weight).sum().backward()
    found = {"output": output, "pos": data.pos.grad}
    found |= {name: p.grad for name, p in model.named_parameters()}
    return [name for name, t in found.items() if t is not None and not t.isfinite().all()]


def assert_finite(model, cases: dict[str, Data], dtype: torch.dtype) -> None:
    """All cases in one batch, and where that fails one by one, to name them."""
    model = model.to(dtype)
    if infinities(model, Batch.from_data_list(list(cases.values())), dtype):
        each = {name: infinities(model, data, dtype) for name, data in cases.items()}
        wrong = {name: found[:3] for name, found in each.items() if found}
        raise AssertionError(f"{model}, {dtype}: not finite: {wrong or 'only together'}")


# ------------------------------------------------------------------ finite values and gradients


@EACH_DTYPE
@EACH_MODEL
def test_shapes(architecture, coordinate_map, dtype):
    for task, aggregation in TASKS:
        if (task, coordinate_map) != ("coordinates", "identity"):
            model = model_of(architecture, coordinate_map, task, aggregation)
            assert_finite(model, shapes(), dtype)


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_shapes_in_other_dimensions(architecture, n):
    for dtype in DTYPES.values():
        model = model_of(architecture, "neighbour-sum", "node", "mean", n)
        assert_finite(model, shapes(n), dtype)


@EACH_DTYPE
@EACH_MODEL
def test_sizes(architecture, coordinate_map, dtype):
    for task, aggregation in (("graph", "mean"), ("node", "sum"), ("coordinates", "mean")):
        if (task, coordinate_map) != ("coordinates", "identity"):
            model = model_of(architecture, coordinate_map, task, aggregation)
            assert_finite(model, sizes((-15, -10, -5, 0, 5, 10, 15)), dtype)


@EACH_DTYPE
def test_far_from_the_origin(dtype):
    """Where all digits go into the place and none into the shape, nodes coincide."""
    for architecture, offset in itertools.product(ARCHITECTURES, (1e4, 1e8, 1e15)):
        data = without_features(graph(generic_edges(), 3, 0))
        data.pos = data.pos + offset
        model = model_of(architecture, "neighbour-sum", "graph", "mean")
        assert_finite(model, {f"{architecture} at {offset}": data}, dtype)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_empty_graphs(architecture):
    """They count in a batch, alone and among others, and give what their biases give."""
    empty, full = shapes()["no nodes"], shapes()["a path"]
    for task, rows in (("graph", [1, 1, 1, 1]), ("node", [0, 9, 0, 0]), ("edge", [0, 16, 0, 0])):
        model = model_of(architecture, "neighbour-sum", task, "mean", outputs=2)
        mixed = model(Batch.from_data_list([empty, full, empty, empty]))
        assert mixed.shape == (sum(rows), 2)
        parts = mixed.split(rows)
        error = distance(parts[1], model(full))
        assert error < 1e-12, f"{task}: {error}"
        alone = model(Batch.from_data_list([empty] * 3))
        assert alone.shape == (3 * rows[0], 2)
        if task == "graph":
            assert distance(alone, parts[0].expand(3, 2)) < 1e-12
        assert_finite(model, {"empty": empty, "also empty": empty}, torch.float64)
    model = model_of(architecture, "neighbour-sum", "coordinates", "mean")
    assert model(Batch.from_data_list([empty] * 2)).shape == (0, 3)


def test_the_reduction_of_nothing_is_zero():
    """Whether sum, mean or max: an isolated node hears nothing."""
    spec = Spec("plain", edge=[v.source], angle=[theta], node=[reduce(e), reduce(a)])
    x = torch.randn(4, 2, dtype=torch.float64, generator=rng())
    pos = torch.randn(4, 3, dtype=torch.float64, generator=rng(1))
    edges = both_ways([(0, 1), (1, 2), (2, 0)])
    for aggregation in ("sum", "mean", "max"):
        options = {"layers": 1, "task": "node", "node_features": 2, "aggregation": aggregation}
        model = random_model(spec, **options)
        lonely = model(Data(pos=pos, edge_index=edges, x=x))[3]
        alone = model(Data(pos=pos[3:], edge_index=NO_EDGES, x=x[3:]))[0]
        assert distance(lonely, alone) < 1e-14, aggregation
        zeros = [
            torch.zeros(w, dtype=torch.float64) for w in model.blocks[0].updates["node"].phi.widths
        ]
        update, readout = (part[0].updates["node"].phi for part in (model.blocks, model.readouts))
        expected = torch.cat(zeros)
        for phi in (update, readout):
            for k, linear in enumerate(phi.linears):
                expected = linear(torch.nn.functional.silu(expected) if k else expected)
        assert distance(lonely, expected) < 1e-14, aggregation


# ------------------------------------------------------------------ conventions


@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
def test_self_loops_have_no_angle(aggregation):
    spec = Spec("angles", angle=[v.vertex, v.first, v.second, theta], node=[v, reduce(a)])
    plain, looped = shapes()["edges one way"], shapes()["edges one way"].clone()
    looped.edge_index = torch.cat([plain.edge_index, torch.arange(9).repeat(2, 1)], 1)
    assert torch.equal(Topology.of(plain).angle_index, Topology.of(looped).angle_index)
    model = random_model(spec, aggregation=aggregation)
    assert torch.equal(model(plain), model(looped))
    # as an edge it is one like the others
    model = random_model("dgn", aggregation=aggregation)
    assert distance(model(plain), model(looped)) > 1e-6
    alone = Topology.of(shapes()["only self-loops"])
    assert (alone.num_angles, alone.num_edges) == (0, 9)


def test_parallel_edges_are_several_edges_and_one_neighbour():
    data = without_features(graph(generic_edges(), 3, 0))
    twice = Data(pos=data.pos, edge_index=data.edge_index.repeat(1, 2))
    angles = Spec("angles", angle=[v.vertex, v.first, v.second, theta], node=[v, reduce(a)])
    for spec in (angles, "agn-raw", "agn"):
        model = random_model(spec)
        assert distance(model(data), model(twice)) < 1e-13, spec
    # on all pairs, parallel edges are their mean
    full = graph(generic_edges(), 3, 0)
    doubled = full.clone()
    doubled.edge_index = full.edge_index.repeat(1, 2)
    doubled.edge_attr = full.edge_attr.repeat(2, 1)
    model = random_model("dgn", coordinate_map="egcn", task="coordinates", **FEATURES)
    assert distance(model(full), model(doubled)) < 1e-12
    lengths = Spec("lengths", edge=[d2], node=[v, reduce(e)])
    assert distance(*(random_model(lengths)(g) for g in (data, twice))) < 1e-13
    assert distance(*(random_model(lengths, aggregation="sum")(g) for g in (data, twice))) > 1e-6
    # a sum over edges twice is twice the sum
    linear = random_model(
        Spec("linear", edge=[d2], node=[reduce(e)]),
        aggregation="sum",
        task="node",
        layers=1,
        mlp_layers=0,
    )
    with torch.no_grad():
        for name, parameter in linear.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    assert distance(2 * linear(data), linear(twice)) < 1e-12


@pytest.mark.parametrize("architecture", ["gn", "dgn", "agn+edges", "agn-to-edges", "combined"])
def test_the_order_of_parallel_edges_does_not_matter(architecture):
    edges = directed(generic_edges())
    data = graph(torch.cat([edges, edges[:, :8], edges[:, :3], edges[:, 5:9].flip(0)], 1), 3, 0)
    for psi in ("neighbour-sum", "egcn"):
        if (architecture, psi) == ("agn-to-edges", "egcn"):
            continue
        for seed in range(3):
            order = torch.randperm(data.num_edges, generator=rng(seed))
            shuffled = data.clone()
            shuffled.edge_index = data.edge_index[:, order]
            shuffled.edge_attr = data.edge_attr[order]
            model = random_model(architecture, coordinate_map=psi, dimension=3, **FEATURES)
            error = distance(model(data), model(shuffled))
            assert error < 1e-12, f"{architecture}, {psi}, order {seed}: {error}"


def test_zero_length_rays_and_aligned_rays_have_the_documented_angle():
    """Seen by a network, not only by the formula."""
    spec = Spec("angles", angle=[theta], node=[reduce(a)])
    model = random_model(spec, layers=1, task="node")
    edges = both_ways([(0, 1), (0, 2)])

    def middle(first, second):
        pos = torch.tensor([[0.0, 0.0], first, second], dtype=torch.float64)
        return model(Data(pos=pos, edge_index=edges))[0]

    zero, straight = middle([1.0, 0.0], [2.0, 0.0]), middle([1.0, 0.0], [-3.0, 0.0])
    assert distance(middle([0.0, 0.0], [2.0, 1.0]), zero) == 0.0
    assert distance(middle([0.0, 0.0], [0.0, 0.0]), zero) == 0.0
    assert distance(middle([0.0, 1.0], [0.0, 5.0]), zero) == 0.0
    assert distance(middle([0.0, 1.0], [0.0, -5.0]), straight) < 1e-14
    assert distance(zero, straight) > 1e-6


def test_maps_leave_coincident_nodes_together():
    """Nodes in one place have no direction to go to: what is drawn together stays so."""
    data = shapes()["all nodes in one place"]
    for psi, architecture in itertools.product(("neighbour-sum", "egcn"), ("dgn", "agn", "cgn")):
        model = model_of(architecture, psi, "coordinates", "mean")
        assert distance(model(data), data.pos) == 0.0, (architecture, psi)
