"""Geometry and graphs at their limits: values stay defined, gradients finite, errors clear."""

import functools
import itertools
import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import (
    FEATURES,
    both_ways,
    bridge_edges,
    directed,
    distance,
    generic_edges,
    graph,
    random_model,
    rng,
    without_features,
)
from symgnn.data import polytope
from symgnn.geometry import angle
from symgnn.graphs import Topology
from symgnn.nn import ARCHITECTURES, EGCN, NeighbourSum, Spec, build, reduce
from symgnn.nn.inputs import a, d2, e, theta, v

MAPS = ("identity", "neighbour-sum", "egcn")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
# egcn over all pairs and angles on edges do not go together
MODELS = [
    (name, psi)
    for name, psi in itertools.product(ARCHITECTURES, MAPS)
    if (name, psi) != ("agn-to-edges", "egcn")
]
EACH_MODEL = pytest.mark.parametrize(
    ("architecture", "coordinate_map"), MODELS, ids=["-".join(m) for m in MODELS]
)
EACH_DTYPE = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
TASKS = (("graph", "mean"), ("node", "max"), ("edge", "sum"), ("coordinates", "mean"))
NO_EDGES = torch.zeros(2, 0, dtype=torch.long)


def model_of(architecture, coordinate_map, task, aggregation, n=3, **options):
    return random_model(
        architecture,
        coordinate_map=coordinate_map,
        task=task,
        aggregation=aggregation,
        dimension=n,
        noise=0.05,
        **options,
    )


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


# ------------------------------------------------------------------ gradients are right


@EACH_MODEL
def test_gradients_of_coordinates(architecture, coordinate_map):
    """Forces, and what trains them: first and second order against finite differences."""
    data = without_features(graph(directed(bridge_edges()), 3, 0))
    model = model_of(architecture, coordinate_map, "graph", "mean", outputs=1)
    topology = model.topology(data)

    def energy(pos):
        return model(pos=pos, topology=topology)

    pos = data.pos.clone().requires_grad_()
    assert torch.autograd.gradcheck(energy, (pos,), fast_mode=True)
    assert torch.autograd.gradgradcheck(energy, (pos,), fast_mode=True, atol=1e-4, rtol=1e-3)


@EACH_DTYPE
@EACH_MODEL
def test_training_on_forces(architecture, coordinate_map, dtype):
    data = without_features(graph(generic_edges(), 3, 0, dtype))
    for aggregation in ("sum", "max"):
        model = model_of(architecture, coordinate_map, "graph", aggregation, outputs=1).to(dtype)
        pos = data.pos.clone().requires_grad_()
        (force,) = torch.autograd.grad(
            model(Data(pos=pos, edge_index=data.edge_index)).sum(), pos, create_graph=True
        )
        force.square().sum().backward()
        slopes = {k: p.grad for k, p in model.named_parameters() if p.grad is not None}
        wrong = [k for k, g in {"pos": pos.grad, **slopes}.items() if not g.isfinite().all()]
        assert not wrong, f"{architecture}, {coordinate_map}, {aggregation}: not finite: {wrong}"
        assert float(force.detach().abs().max()) > 0
        assert max(float(g.abs().max()) for g in slopes.values()) > 0


@pytest.mark.parametrize("architecture", ["agn", "agn-to-edges", "cgn"])
def test_training_on_forces_in_chunks(architecture):
    data = without_features(graph(generic_edges(), 3, 0))
    slopes = []
    for chunk in (None, 30):
        model = model_of(architecture, "neighbour-sum", "graph", "mean", chunk=chunk)
        pos = data.pos.clone().requires_grad_()
        (force,) = torch.autograd.grad(
            model(Data(pos=pos, edge_index=data.edge_index)).sum(), pos, create_graph=True
        )
        force.square().sum().backward()
        slopes.append([p.grad for p in model.parameters() if p.grad is not None])
    errors = [distance(whole, cut) for whole, cut in zip(*slopes, strict=True)]
    assert max(errors) < 1e-12, errors


@pytest.mark.parametrize("straight", [False, True], ids=["0", "pi"])
@pytest.mark.parametrize("small", [1e-2, 1e-4, 1e-6])
def test_gradients_near_aligned_rays(small, straight):
    """The force on a node of a nearly straight or folded corner, in a network of angles."""
    spec = Spec("angles", angle=[theta], node=[reduce(a)])
    model = random_model(spec, layers=1, outputs=1)
    edges = both_ways([(0, 1), (0, 2)])
    turn = math.pi - small if straight else small
    pos = torch.tensor(
        [[0.2, 0.1, -0.3], [1.2, 0.1, -0.3], [0.2 + math.cos(turn), 0.1 + math.sin(turn), -0.3]],
        dtype=torch.float64,
    )

    def energy(x):
        return model(Data(pos=x, edge_index=edges)).sum()

    x = pos.clone().requires_grad_()
    (found,) = torch.autograd.grad(energy(x), x)
    step = 1e-3 * small
    for i, k in itertools.product(range(3), range(3)):
        offset = torch.zeros_like(pos)
        offset[i, k] = step
        with torch.no_grad():
            expected = float(energy(pos + offset) - energy(pos - offset)) / (2 * step)
        error = abs(float(found[i, k]) - expected)
        tolerance = 1e-5 + 1e-15 / step
        assert error < tolerance, f"node {i}, axis {k}: {float(found[i, k])} against {expected}"
    assert float(found.abs().max()) > 1e-5
    # the angle itself is the one that was made
    assert float(angle(pos[1] - pos[0], pos[2] - pos[0])) == pytest.approx(turn, abs=1e-13)


# ------------------------------------------------------------------ deep stacks


def circulant(seed: int) -> Data:
    """Twenty nodes of degree 4, in random places."""
    order = torch.randperm(20, generator=rng(seed)).tolist()
    pairs = [(order[k], order[(k + s) % 20]) for k in range(20) for s in (1, 2)]
    return Data(pos=torch.randn(20, 3, generator=rng(seed)), edge_index=both_ways(pairs))


def losses(architecture, coordinate_map, aggregation, steps):
    """Adam on a regression, 32 layers deep, in float32 and with the default settings."""
    solids = [polytope("orthoplex", 3), polytope("hypercube", 3)]
    chosen = [Data(pos=g.pos, edge_index=g.edge_index) for g in solids] + [
        circulant(0),
        circulant(1),
    ]
    batch = Batch.from_data_list(chosen)
    target = torch.tensor([[1.0], [-1.0], [0.5], [0.0]])
    options = {} if aggregation is None else {"aggregation": aggregation}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build(architecture, layers=32, hidden=4, coordinate_map=coordinate_map, **options)
    topology = model.topology(batch)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    found = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (model(pos=batch.pos, topology=topology) - target).square().mean()
        loss.backward()
        optimiser.step()
        found.append(float(loss.detach()))
    wrong = [k for k, p in model.named_parameters() if not p.isfinite().all()]
    assert not wrong, f"parameters that are not finite: {wrong}"
    return found


DEEP = [
    ("dgn", "neighbour-sum", None),
    ("dgn", "neighbour-sum", "sum"),
    ("dgn", "egcn", None),
    ("agn", "neighbour-sum", None),
    ("agn", "neighbour-sum", "sum"),
]
DEEP_MORE = [("dgn", "egcn", "sum"), ("agn", "egcn", None), ("agn", "egcn", "sum")]


@pytest.mark.parametrize(("architecture", "coordinate_map", "aggregation"), DEEP)
def test_deep_stacks_stay_finite(architecture, coordinate_map, aggregation):
    """With default settings in full, else some steps of what the slow test below does."""
    default = (coordinate_map, aggregation) == ("neighbour-sum", None)
    found = losses(architecture, coordinate_map, aggregation, 100 if default else 6)
    assert all(map(math.isfinite, found)), found


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "coordinate_map", "aggregation"), DEEP + DEEP_MORE)
def test_deep_stacks_stay_finite_for_longer(architecture, coordinate_map, aggregation):
    found = losses(architecture, coordinate_map, aggregation, 100)
    assert all(map(math.isfinite, found)), found


@pytest.mark.parametrize("make", [NeighbourSum, EGCN])
def test_coordinates_do_not_explode(make):
    """After 32 layers no graph is wider than the bound, which is 100 times by default."""
    data = circulant(3)

    def width(x):
        return float((x - x.mean(0)).square().sum(1).mean().sqrt())

    for bound in (None, 100.0, 2.0):
        psi = make() if bound is None else make(max_growth=bound)
        model = random_model(
            "dgn", task="coordinates", coordinate_map=psi, layers=32, aggregation="sum", hidden=4
        ).float()
        with torch.no_grad():
            ratio = width(model(data)) / width(data.pos)
        assert ratio <= (bound or 100.0) * 1.001, f"max_growth={bound}: grew {ratio} times"


# ------------------------------------------------------------------ errors


def fit(**changes):
    """A graph that suits a model with all features, but for what is changed."""
    data = graph(generic_edges(), 3, 0, torch.float32)
    for name, value in changes.items():
        data[name] = value(data[name]) if callable(value) else value
    return data


def put(value, row=4):
    def change(pos):
        pos = pos.clone()
        pos[row, 1] = value
        return pos

    return change


BAD_GRAPHS = {
    "NaN": ({"pos": put(math.nan)}, r"^pos: row 4 is \["),
    "inf": ({"pos": put(-math.inf, 7)}, r"^pos: row 7 is \["),
    "pos flat": ({"pos": lambda p: p.flatten()}, r"^pos: has shape \[27\]"),
    "pos integer": ({"pos": lambda p: p.long()}, r"^pos: is torch.int64"),
    "pos without axes": ({"pos": lambda p: p[:, :0]}, r"^pos: has shape \[N, 0\]"),
    "pos missing": ({"pos": None}, r"^pos: the graph has no coordinates"),
    "pos in 2d": ({"pos": lambda p: p[:, :2]}, r"^pos: has 2 coordinates.*dimension=3"),
    "edges missing": ({"edge_index": None}, r"^edge_index: the graph has no edges"),
    "edges float": ({"edge_index": lambda t: t.float()}, r"^edge_index: is torch.float32"),
    "edges int32": ({"edge_index": lambda t: t.int()}, r"^edge_index: is torch.int32"),
    "edges flat": ({"edge_index": lambda t: t[0]}, r"^edge_index: has shape \[48\]"),
    "edges in threes": (
        {"edge_index": lambda t: t.flatten()[:48].view(3, 16)},
        r"^edge_index: has shape \[3, 16\]",
    ),
    "edges transposed": ({"edge_index": lambda t: t.T}, r"^edge_index: .*\[48, 2\].*\.t\(\)"),
    "edges out of range": ({"edge_index": lambda t: t + 1}, r"^edge_index: names node 9"),
    "edges negative": ({"edge_index": lambda t: t - 1}, r"^edge_index: names node -1"),
    "x missing": ({"x": None}, r"^x: is missing.*node_features=2"),
    "x narrow": ({"x": lambda t: t[:, :1]}, r"^x: has shape \[9, 1\].*\[9, 2\]"),
    "x short": ({"x": lambda t: t[:8]}, r"^x: has shape \[8, 2\].*\[9, 2\]"),
    "x flat": ({"x": lambda t: t[:, 0]}, r"^x: has shape \[9\]"),
    "x integer": ({"x": lambda t: t.long()}, r"^x: is torch.int64"),
    "edge_attr missing": ({"edge_attr": None}, r"^edge_attr: is missing.*edge_features=2"),
    "edge_attr narrow": ({"edge_attr": lambda t: t[:, :1]}, r"^edge_attr: has shape \[48, 1\]"),
    "edge_attr short": ({"edge_attr": lambda t: t[:9]}, r"^edge_attr: has shape \[9, 2\]"),
    "edge_attr flat": ({"edge_attr": lambda t: t[:, 0]}, r"^edge_attr: has shape \[48\]"),
    "u missing": ({"u": None}, r"^u: is missing.*graph_features=2"),
    "u wide": ({"u": lambda t: t.repeat(1, 2)}, r"^u: has shape \[1, 4\]"),
    "u of two graphs": ({"u": lambda t: t.repeat(2, 1)}, r"^u: has shape \[2, 2\]"),
    "u flat": ({"u": lambda t: t[0]}, r"^u: has shape \[2\]"),
}


@pytest.mark.parametrize("architecture", ["gn", "agn"])
@pytest.mark.parametrize(("changes", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_a_graph_that_does_not_fit_is_refused(architecture, changes, message):
    model = random_model(architecture, dimension=3, **FEATURES).float()
    assert model(fit()).isfinite().all()
    with pytest.raises(ValueError, match=message) as error:
        model(fit(**changes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "option"),
    [("x", "node_features"), ("edge_attr", "edge_features"), ("u", "graph_features")],
)
def test_features_that_would_not_be_read_are_refused(name, option):
    model = random_model("agn", **{**FEATURES, option: 0}).float()
    assert model(fit(**{name: None})).isfinite().all()
    with pytest.raises(ValueError, match=rf"^{name}: has 2 features .*{option}=2") as error:
        model(fit())
    assert "\n" not in str(error.value)


def test_angle_features_are_checked():
    data = fit()
    angles = Topology.of(data).num_angles
    model = random_model("agn", angle_features=2, **FEATURES).float()
    assert model(fit(angle_attr=torch.zeros(angles, 2))).isfinite().all()
    for wrong, message in (
        (None, r"^angle_attr: is missing.*angle_features=2"),
        (torch.zeros(angles, 1), rf"^angle_attr: has shape \[{angles}, 1\]"),
        (torch.zeros(angles - 1, 2), rf"^angle_attr: has shape \[{angles - 1}, 2\]"),
    ):
        with pytest.raises(ValueError, match=message):
            model(fit(angle_attr=wrong))
    with pytest.raises(ValueError, match=r"^angle_attr: has 2 features .*angle_features=2"):
        random_model("agn", **FEATURES).float()(fit(angle_attr=torch.zeros(angles, 2)))


def test_edges_between_graphs_are_refused():
    batch = Batch.from_data_list([fit(), fit()])
    batch.edge_index[:, 5] = torch.tensor([2, 11])
    model = random_model("agn", **FEATURES).float()
    with pytest.raises(ValueError, match=r"^edge_index: edge 5 joins nodes \[2, 11\]"):
        model(batch)


def test_things_that_are_no_tensors_are_refused():
    model = random_model("agn", **FEATURES).float()
    with pytest.raises(TypeError, match=r"^pos: is a list"):
        Topology.of(Data(pos=[[0.0]], edge_index=NO_EDGES))
    with pytest.raises(TypeError, match=r"^edge_index: is a list"):
        model(fit(edge_index=[[0, 1], [1, 0]]))
    with pytest.raises(TypeError, match=r"forward takes a Data or Batch"):
        model()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_does_not_vanish(architecture, value):
    """Coordinates are not checked where a topology is attached; then the output has to tell."""
    data = fit(pos=put(value))
    data.topology = Topology.of(fit())
    output = random_model(architecture, dimension=3, **FEATURES).float()(data)
    assert not output.isfinite().all(), f"{architecture}: {value} in, {output.tolist()} out"


BAD_OPTIONS = {
    "architecture": (
        {"architecture": "agm"},
        r"^architecture: 'agm' is not known; did you mean '.*agn'",
    ),
    "architecture near": ({"architecture": "combine"}, r"did you mean 'combined'"),
    "architecture far": (
        {"architecture": "zzz"},
        r"^architecture: 'zzz' is not known; choose from gn, dgn",
    ),
    "aggregation": (
        {"aggregation": "maen"},
        r"^aggregation: 'maen' is not known; did you mean 'mean'",
    ),
    "movement": (
        {"aggregation": {"e-v": "sum"}},
        r"^aggregation: 'e-v' is not known; did you mean 'e->v'",
    ),
    "movement's": (
        {"aggregation": {"e->v": "som"}},
        r"^aggregation: 'som' is not known; did you mean 'sum'",
    ),
    "map": (
        {"coordinate_map": "neighbor-sum"},
        r"^coordinate_map: 'neighbor-sum' is not known; did you mean 'neighbour-sum'",
    ),
    "task": ({"task": "nodes"}, r"^task: 'nodes' is not known; did you mean 'node'"),
    "hidden": ({"hidden": -3}, r"^hidden: is -3"),
    "hidden float": ({"hidden": 8.0}, r"^hidden: is 8.0"),
    "layers": ({"layers": 0}, r"^layers: is 0"),
    "outputs": ({"outputs": 0}, r"^outputs: is 0"),
    "dropout": ({"dropout": 1}, r"^dropout: is 1"),
    "dropout negative": ({"dropout": -0.1}, r"^dropout: is -0.1"),
    "mlp_layers": ({"mlp_layers": -1}, r"^mlp_layers: is -1"),
    "readout_layers": ({"readout_layers": -1}, r"^readout_layers: is -1"),
    "mlp_hidden": ({"mlp_hidden": -1}, r"^mlp_hidden: is -1"),
    "mlp_hidden zero": ({"mlp_hidden": 0}, r"^mlp_hidden: is 0"),
    "node_features": ({"node_features": -1}, r"^node_features: is -1"),
    "dimension": ({"dimension": 0}, r"^dimension: is 0"),
    "dimension of gn": ({"architecture": "gn"}, r"^dimension: .*dimension=3"),
    "dimension of shift": (
        {"coordinate_map": "shift", "task": "coordinates"},
        r"^dimension: Shift .*dimension=3",
    ),
    "chunk": ({"chunk": 0}, r"^chunk: is 0"),
    "scaling": ({"scaling": 2.0}, r"^scaling: AGN does not scale"),
    "scaling negative": ({"architecture": "sdgn", "scaling": -1.0}, r"^scaling: is -1.0"),
    "coordinates": ({"task": "coordinates"}, r"^coordinate_map: is 'identity'"),
    "egcn and angles on edges": (
        {"architecture": "agn-to-edges", "coordinate_map": "egcn"},
        r"^coordinate_map: egcn .*egcn-neighbours",
    ),
}


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message) as error:
        build(**{"architecture": "agn", **options})
    assert "\n" not in str(error.value)


def test_names_may_be_written_in_capitals():
    """Or they are refused: but `MEAN` is not `sum`."""
    data = without_features(graph(generic_edges(), 3, 0))

    def output(**options):
        return random_model("dgn", **options)(data)

    for name in ("mean", "sum", "max"):
        assert torch.equal(output(aggregation=name.upper()), output(aggregation=name)), name
        mixed = {"e->v": name}
        assert torch.equal(output(aggregation={"E->V": name}), output(aggregation=mixed)), name
    assert torch.equal(output(task="Node"), output(task="node"))
    assert torch.equal(output(coordinate_map="Scale"), output(coordinate_map="scale"))
    assert torch.equal(random_model("DGN")(data), random_model("dgn")(data))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1.0, 1e5, 1e10, 1e15])
@pytest.mark.parametrize("coordinate_map", ["scale-u", "shift-u", "rigid-u"])
def test_functions_of_a_large_u_stay_finite(coordinate_map, size, dtype):
    """u grows with squared distances, and its functions with it."""
    for architecture in ("dgn", "combined"):
        model = random_model(
            architecture, task="coordinates", dimension=3, coordinate_map=coordinate_map
        ).to(dtype)
        data = without_features(graph(generic_edges(), 3, 0))
        data.pos = (size * data.pos).to(dtype).requires_grad_()
        output = model(data)
        assert output.isfinite().all(), architecture
        output.div(size).sum().backward()
        assert data.pos.grad.isfinite().all(), architecture


def test_rigid_motions_are_rigid_however_large_the_coefficients_are():
    data = graph(generic_edges(), 3, 0)
    model = random_model(
        "dgn", task="coordinates", coordinate_map="rigid", layers=1, dimension=3, **FEATURES
    )
    for size in (1e-3, 0.05, 0.6, 10, 1e3, 1e10):
        with torch.no_grad():
            model.blocks[0].map.coefficients.copy_(size * torch.randn(6, generator=rng()))
        before, after = torch.pdist(data.pos), torch.pdist(model(data).detach())
        error = float((before - after).abs().max() / before.max())
        assert error < 1e-13 * max(size, 1) + 1e-13, f"{size}: {error}"
