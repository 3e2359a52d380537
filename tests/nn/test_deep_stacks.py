"""Gradients at degenerate geometry, and deep stacks"""

import itertools
import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import (
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
from nn.degenerate_cases import EACH_DTYPE, EACH_MODEL, model_of
from symgnn.data import polytope
from symgnn.geometry import angle
from symgnn.nn import EGCN, NeighbourSum, Spec, build, reduce
from symgnn.nn.inputs import a, theta

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
    """Some steps, more with default settings; the slow test below does them in full."""
    default = (coordinate_map, aggregation) == ("neighbour-sum", None)
    found = losses(architecture, coordinate_map, aggregation, 25 if default else 6)
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
