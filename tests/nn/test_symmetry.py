"""The symmetry that a model derives for itself, measured: what it claims holds, the rest does not.

Claims are checked in float64 to 1e-9 of the spread of the outputs; what is not claimed has to be
violated by more than 1e-4 of it, so that no claim is weaker than it could be.
"""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from helpers import (
    FEATURES,
    Trial,
    bridge_edges,
    directed,
    distance,
    generic_edges,
    graph,
    graphs,
    random_model,
    rng,
    trial,
    without_features,
)
from nn.symmetry_cases import BROKEN, KEPT, assert_broken, assert_kept, check
from symgnn.geometry import (
    KINDS,
    Affine,
    Permutation,
)
from symgnn.graphs import Topology
from symgnn.nn import (
    ARCHITECTURES,
    COORDINATE_MAPS,
    OTHER_MAPS,
    Conv,
)

EVERY_MAP = {**COORDINATE_MAPS, **OTHER_MAPS}
TASKS = ("graph", "node", "edge", "coordinates")


AGGREGATIONS = ("sum", "max", {"e->v": "max", "a->v": "sum", "a->u": "max", "pool": "sum"})


def exists(architecture: str, coordinate_map: str, task: str) -> bool:
    """Whether there is such a model: two combinations are refused."""
    if task == "coordinates" and coordinate_map == "identity":
        return False
    return (architecture, coordinate_map) != ("agn-to-edges", "egcn")


# ------------------------------------------------------------------ what is claimed is kept

SWEEP = [
    pytest.param(name, psi, task, 2 + k % 4, id=f"{name}-{psi}-{task}-{2 + k % 4}d")
    for k, (task, psi, name) in enumerate(itertools.product(TASKS, EVERY_MAP, ARCHITECTURES))
    if exists(name, psi, task)
]


@pytest.mark.parametrize(("architecture", "coordinate_map", "task", "n"), SWEEP)
def test_claims_hold(architecture, coordinate_map, task, n):
    model = random_model(
        architecture, coordinate_map=coordinate_map, task=task, dimension=n, **FEATURES
    )
    assert "permutation" in model.symmetry
    assert_kept(model, n=n)


@given(
    architecture=st.sampled_from(sorted(ARCHITECTURES)),
    coordinate_map=st.sampled_from(sorted(EVERY_MAP)),
    task=st.sampled_from(TASKS),
    n=st.integers(1, 5),
    layers=st.integers(1, 3),
    mlp_layers=st.integers(0, 2),
    aggregation=st.sampled_from(["mean", *AGGREGATIONS]),
    chunk=st.sampled_from([None, 1, 30]),
    one_way=st.booleans(),
    seed=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_claims_hold_for_any_options(architecture, coordinate_map, task, n, seed, one_way, **rest):
    if not exists(architecture, coordinate_map, task):
        return
    options = {"task": task, "coordinate_map": coordinate_map, "dimension": n, **rest}
    model = random_model(architecture, seed=seed, **options, **FEATURES)
    assert_kept(model, options, n, seed, one_way)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_claims_hold_without_features(architecture):
    chosen = [without_features(g) for g in graphs(3)]
    for task, psi in (("graph", "identity"), ("coordinates", "neighbour-sum")):
        model = random_model(architecture, task=task, coordinate_map=psi, dimension=3)
        check(Trial(model.symmetry, chosen), model)


@pytest.mark.parametrize("aggregation", AGGREGATIONS, ids=["sum", "max", "mixed"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_claims_hold_for_every_aggregation(architecture, aggregation):
    for psi, task in (("identity", "graph"), ("neighbour-sum", "coordinates")):
        options = {"aggregation": aggregation, "coordinate_map": psi, "task": task}
        model = random_model(architecture, dimension=3, **options, **FEATURES)
        assert_kept(model, options)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_claims_hold_in_one_dimension(architecture):
    for psi, task in itertools.product(("identity", "scale-u", "neighbour-sum"), TASKS):
        if exists(architecture, psi, task):
            options = {"coordinate_map": psi, "task": task, "dimension": 1}
            model = random_model(architecture, **options, **FEATURES)
            assert_kept(model, options, n=1)


@pytest.mark.parametrize("architecture", ["agn", "agn+edges", "agn-to-edges", "combined", "cgn"])
def test_chunks_change_nothing(architecture):
    options = {"coordinate_map": "neighbour-sum", "dimension": 3, **FEATURES}
    whole = random_model(architecture, **options)
    batch = Batch.from_data_list(graphs(3, one_way=True))
    for chunk in (1, 30, 10_000):
        cut = random_model(architecture, chunk=chunk, **options)
        error = distance(whole(batch), cut(batch))
        assert error <= 1e-12, f"{architecture}, chunk={chunk}: {error}"
        assert cut.symmetry == whole.symmetry
    assert_kept(random_model(architecture, chunk=30, **options), "in chunks", one_way=True)


@pytest.mark.parametrize("psi", ["identity", "scale", "neighbour-sum", "egcn-neighbours"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_claims_of_a_layer_hold(architecture, psi):
    """Of a `Conv`: its node features are invariant, its coordinates equivariant."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = Conv(architecture, 2, 3, edge_dim=2, coordinate_map=psi, dimension=3, hidden=6)
        layer = layer.double()
        for parameter in layer.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)

    def part(number):
        def call(batch):
            out = layer(batch.x, batch.pos, batch.edge_index, batch.edge_attr, batch.batch)
            return out if psi == "identity" else out[number]

        return call

    measured = trial(tuple(layer.symmetry), 3, one_way=True)
    tasks = ["node"] if psi == "identity" else ["node", "coordinates"]
    for number, task in enumerate(tasks):
        errors = measured.changes(part(number), task)
        wrong = {kind: error for kind, error in errors.items() if not error <= KEPT}
        assert not wrong, f"{layer}, {psi}, {task}: claimed but not kept, relative errors {wrong}"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_graph_does_not_feel_the_others_of_its_batch(architecture):
    chosen = graphs(3, one_way=True)
    for task in TASKS:
        model = random_model(
            architecture, task=task, coordinate_map="neighbour-sum", dimension=3, **FEATURES
        )
        alone = torch.cat([model(g) for g in chosen])
        error = distance(model(Batch.from_data_list(chosen)), alone)
        assert error <= 1e-12, f"{architecture}, {task}: {error}"


def test_sdgn_keeps_dilations_without_edges_too():
    """All pairs are read there, so the scale has to come from elsewhere."""
    model = random_model("sdgn", task="coordinates", coordinate_map="egcn")
    pos = torch.randn(6, 3, generator=rng(), dtype=torch.float64)
    none = torch.empty(2, 0, dtype=torch.long)
    before = model(Data(pos=pos, edge_index=none))
    after = model(Data(pos=3 * pos, edge_index=none)) / 3
    assert "dilation" in model.symmetry
    assert distance(before, after) <= 1e-9
    assert distance(before, pos) > 1e-3


def test_angle_features_are_relabelled_with_the_angles():
    data = graph(directed(generic_edges()), 3, 0)
    features = {**FEATURES, "angle_features": 2}
    index = Topology.of(data).angle_index
    values = torch.randn(index.shape[1], 2, generator=rng(), dtype=torch.float64)
    named = dict(zip(map(tuple, index.T.tolist()), values, strict=True))
    order = torch.randperm(data.num_nodes, generator=rng(1))
    data.angle_attr = values
    image = Permutation(order).apply(data)
    renumbered = order[Topology.of(image).angle_index].T.tolist()
    assert torch.equal(image.angle_attr, torch.stack([named[tuple(row)] for row in renumbered]))
    for chunk in (None, 30):
        model = random_model("agn", dimension=3, chunk=chunk, **features)
        before, after = model(data), model(image)
        error = distance(before, after)
        assert error <= 1e-12, f"chunk={chunk}: {error}"
        # and they are read
        image.angle_attr = image.angle_attr.flip(0)
        assert distance(model(image), after) > 1e-6
        image.angle_attr = image.angle_attr.flip(0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_parameter_matters(architecture):
    """What nobody reads has no parameters, so each one that there is gets a gradient."""
    data = graph(bridge_edges(), 3, 0)
    for psi, task in itertools.product(EVERY_MAP, ("graph", "coordinates")):
        if exists(architecture, psi, task):
            model = random_model(
                architecture, coordinate_map=psi, task=task, dimension=3, **FEATURES
            )
            model(data).square().sum().backward()
            unread = [k for k, p in model.named_parameters() if p.grad is None]
            assert not unread, f"{architecture}, {psi}, {task}: no gradient for {unread}"


# ------------------------------------------------------------------ what is not claimed is broken

MOVING = ("neighbour-sum", "egcn", "egcn-neighbours")
MAPS = [psi for psi in EVERY_MAP if psi != "identity"]
UNCLAIMED = [
    (name, psi, task)
    for psi, tasks in (
        ("identity", TASKS),
        *((psi, ("graph", "coordinates") if psi in MOVING else ("coordinates",)) for psi in MAPS),
    )
    for name, task in itertools.product(ARCHITECTURES, tasks)
    if exists(name, psi, task)
]


@pytest.mark.parametrize(
    ("architecture", "coordinate_map", "task"), UNCLAIMED, ids=["-".join(c) for c in UNCLAIMED]
)
def test_everything_else_is_broken(architecture, coordinate_map, task):
    options = {"coordinate_map": coordinate_map, "task": task, "dimension": 3}

    def make(seed):
        return random_model(architecture, seed=seed, noise=0.4, **options, **FEATURES)

    kinds = [kind for kind in KINDS if kind not in make(0).symmetry]
    assert kinds, f"{architecture}: claims everything"
    assert_broken(make, kinds, (architecture, options))


NAMED = [
    ("gn", "identity", "graph", "translation"),
    ("gn", "identity", "graph", "rotation"),
    ("dgn", "identity", "graph", "dilation"),
    ("dgn", "identity", "graph", "inversion"),
    ("agn", "identity", "graph", "inversion"),
    ("agn", "identity", "graph", "special-conformal"),
    ("dgn", "neighbour-sum", "graph", "flex"),
    ("dgn", "neighbour-sum", "graph", "torsion"),
    ("agn", "neighbour-sum", "graph", "torsion"),
    ("dgn", "shift", "coordinates", "rotation"),
    ("agn", "shift-u", "coordinates", "rotation"),
    ("dgn", "scale", "coordinates", "translation"),
    ("agn", "scale-u", "coordinates", "translation"),
    ("dgn", "rigid", "coordinates", "rotation"),
    ("dgn", "rigid-u", "coordinates", "translation"),
]


@pytest.mark.parametrize(
    ("architecture", "coordinate_map", "task", "kind"), NAMED, ids=["-".join(c) for c in NAMED]
)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_named_violations(architecture, coordinate_map, task, kind, n):
    options = {"coordinate_map": coordinate_map, "task": task, "dimension": n}

    def make(seed):
        return random_model(architecture, seed=seed, noise=0.4, **options, **FEATURES)

    assert kind not in make(0).symmetry
    assert_broken(make, [kind], (architecture, options), n)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("architecture", ["dgn", "sdgn", "agn", "combined", "cgn"])
def test_a_shear_is_noticed(architecture, n):
    """Also by those that keep dilations and Moebius maps, and although it keeps volumes."""
    matrix = torch.eye(n, dtype=torch.float64)
    matrix[0, 1] = 1.0
    shear = Affine(matrix, torch.zeros(n, dtype=torch.float64))
    data = graph(generic_edges(), n, 3)
    changes = []
    for seed in range(3):
        model = random_model(architecture, seed=seed, noise=0.4, task="node", **FEATURES)
        before = model(data).detach()
        changes.append(distance(model(shear.apply(data)), before) / float(before.std()))
    assert max(changes) > BROKEN, f"{architecture} in {n}d: changes {changes}"
    assert "affine" not in model.symmetry
