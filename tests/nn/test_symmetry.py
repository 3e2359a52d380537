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
    flexible_edges,
    generic_edges,
    graph,
    graphs,
    random_model,
    rng,
    trial,
    without_features,
)
from symgnn.geometry import (
    AFFINE,
    ANGLES,
    EUCLIDEAN,
    EVERYTHING,
    KINDS,
    LENGTHS,
    MOEBIUS,
    PERMUTATIONS,
    SIMILARITIES,
    STARS,
    Affine,
    Permutation,
    Symmetry,
)
from symgnn.geometry.symmetry import AXIAL
from symgnn.graphs import Topology
from symgnn.nn import (
    AGN,
    ARCHITECTURES,
    COORDINATE_MAPS,
    DGN,
    EGCN,
    GN,
    OTHER_MAPS,
    Conv,
    Measure,
    NeighbourSum,
    Scale,
    Spec,
    build,
    reduce,
)
from symgnn.nn.inputs import a, d2, e, position, theta, u, v

KEPT, BROKEN = 1e-9, 1e-4
EVERY_MAP = {**COORDINATE_MAPS, **OTHER_MAPS}
TASKS = ("graph", "node", "edge", "coordinates")
AGGREGATIONS = ("sum", "max", {"e->v": "max", "a->v": "sum", "a->u": "max", "pool": "sum"})
CONFORMAL = ("inversion", "special-conformal")


#: Kinds that need a plane.
PLANE = ("torsion", "flex", "angle-flex", "part-motion")


def exists(architecture: str, coordinate_map: str, task: str) -> bool:
    """Whether there is such a model: two combinations are refused."""
    if task == "coordinates" and coordinate_map == "identity":
        return False
    return (architecture, coordinate_map) != ("agn-to-edges", "egcn")


def claimed(model, n=3):
    """The kinds that a model claims and that exist in n dimensions."""
    none = {1: (*PLANE, *AXIAL), 2: ("angle-flex", "axis-rotation")}.get(n, ())
    return tuple(kind for kind in model.symmetry if kind not in none)


def assert_kept(model, case: object = "", n: int = 3, seed: int = 0, one_way: bool = False):
    """Every kind that the model claims leaves its output as it is."""
    check(trial(claimed(model, n), n, seed, one_way), model, case)


def check(measured: Trial, model, case: object = "") -> None:
    errors = measured.changes(model)
    assert errors, f"{model}, {case}: nothing was measured"
    wrong = {kind: error for kind, error in errors.items() if not error <= KEPT}
    assert not wrong, f"{model}, {case}: claimed but not kept, relative errors {wrong}"


def assert_broken(make, kinds, case: object = "", n: int = 3, tries: int = 4):
    """Each kind changes the output of some of the models `make(seed)`, none of which claims it."""
    kinds, largest = tuple(kinds), dict.fromkeys(kinds, 0.0)
    for seed in range(tries):
        model = make(seed)
        assert not set(kinds) & set(model.symmetry), f"{model}: claims one of {kinds}"
        for kind, change in trial(kinds, n, seed).changes(model).items():
            largest[kind] = max(largest[kind], change)
        if min(largest.values()) > BROKEN:
            return
    weak = {kind: change for kind, change in largest.items() if not change > BROKEN}
    assert not weak, f"{model}, {case}: not claimed but hardly changed, relative changes {weak}"


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


# ------------------------------------------------------------------ how it is derived

OF_ANGLES = "similarities, torsions, redrawings, angle flexes, permutations"
DERIVED = [
    ("gn", PERMUTATIONS, "permutations"),
    ("dgn", LENGTHS, "E(n), torsions, flexes, permutations"),
    (
        "sdgn",
        LENGTHS | Symmetry(["dilation"]),
        "similarities, torsions, flexes, permutations",
    ),
    ("agn", ANGLES, OF_ANGLES),
    ("agn+edges", ANGLES, OF_ANGLES),
    ("agn-to-edges", ANGLES, OF_ANGLES),
    ("agn-raw", ANGLES, OF_ANGLES),
    ("agn+distances", LENGTHS & ANGLES, "E(n), torsions, permutations"),
    ("combined", LENGTHS & ANGLES, "E(n), torsions, permutations"),
    ("cgn", MOEBIUS | STARS, "Moebius maps, torsions, permutations"),
]


@pytest.mark.parametrize(("architecture", "symmetry", "text"), DERIVED)
def test_the_symmetry_of_a_block(architecture, symmetry, text):
    model = build(architecture, dimension=3)
    assert model.symmetry == symmetry
    assert str(model.symmetry) == text
    assert repr(model).endswith(f"invariant to {text}")


def test_all_blocks_have_a_derived_symmetry():
    assert {name for name, *_ in DERIVED} == set(ARCHITECTURES)


@pytest.mark.parametrize(
    ("coordinate_map", "invariant", "equivariant"),
    [
        ("scale", LENGTHS, ["permutation", "rotation", "reflection", "torsion"]),
        ("shift", LENGTHS, ["permutation", "translation", "torsion", "flex"]),
        ("rigid", LENGTHS, ["permutation"]),
        ("neighbour-sum", EUCLIDEAN, EUCLIDEAN),
        ("egcn", EUCLIDEAN, EUCLIDEAN),
        ("egcn-neighbours", EUCLIDEAN, EUCLIDEAN),
    ],
)
def test_the_symmetry_of_a_map_with_dgn(coordinate_map, invariant, equivariant):
    options = {"coordinate_map": coordinate_map, "dimension": 3}
    assert build("dgn", **options).symmetry == invariant
    model = build("dgn", task="coordinates", **options)
    # dilations are lost only where the coefficients, by way of u, e or v, depend on distances
    extra = {"scale": {"dilation"}, "shift": {"redrawing", "angle-flex"}}.get(coordinate_map, ())
    assert model.symmetry == Symmetry({*equivariant, *extra})
    assert "equivariant to" in repr(model)


@pytest.mark.parametrize("psi", ["neighbour-sum", "egcn-neighbours", "egcn"])
def test_a_map_that_nobody_reads_takes_nothing_away(psi):
    options = {"coordinate_map": psi, **FEATURES}
    unread = random_model("dgn", layers=1, **options)
    assert unread.symmetry == LENGTHS
    assert_kept(unread)
    assert not any("map" in name for name, _ in unread.named_parameters())
    # one more layer reads what the first has moved
    assert random_model("dgn", layers=2, **options).symmetry == EUCLIDEAN
    assert_broken(
        lambda seed: random_model("dgn", layers=2, seed=seed, noise=0.4, **options),
        ["torsion", "flex"],
        psi,
    )
    # and so does the task that asks for them
    assert random_model("dgn", layers=1, task="coordinates", **options).symmetry == EUCLIDEAN


def test_a_network_without_coordinates_keeps_everything():
    blind = GN.replace(name="blind", inputs=[v])
    model = random_model(blind, **FEATURES)
    assert model.symmetry == EVERYTHING
    assert str(model.symmetry) == "every map of the coordinates, permutations"
    assert_kept(model)
    data = graph(generic_edges(), 3, 0)
    other = graph(generic_edges(), 3, 1)
    other.x, other.edge_attr, other.u = data.x, data.edge_attr, data.u
    assert torch.equal(model(data), model(other))


def test_a_position_that_nobody_reads_takes_nothing_away():
    """The scale map of a coordinates task reads its parameter and x alone, not the nodes."""
    model = random_model("gn", task="coordinates", coordinate_map="scale", dimension=3, **FEATURES)
    expected = Symmetry(["permutation", "rotation", "reflection", "dilation", "torsion"])
    assert model.symmetry == expected
    assert_kept(model)


@pytest.mark.parametrize("make", [NeighbourSum, EGCN, lambda **k: EGCN(over="neighbours", **k)])
def test_neighbour_maps_with_and_without_bound(make):
    """Unbounded they are affine; the bound on growth, which is a length, leaves similarities."""
    blind = GN.replace(name="blind", inputs=[v])
    options = {"task": "coordinates", **FEATURES}
    free = random_model(blind, coordinate_map=make(max_growth=None), **options)
    assert free.symmetry == AFFINE
    assert_kept(free)
    bounded = [
        random_model(blind, coordinate_map=make(max_growth=1.0), seed=seed, noise=0.6, **options)
        for seed in range(4)
    ]
    data = graph(generic_edges(), 3, 0)

    def acts(model):
        free.load_state_dict(model.state_dict())
        return distance(free(data), model(data)) > 1e-3

    bounded = [model for model in bounded if acts(model)]
    assert bounded, "the bound is never reached"
    for model in bounded:
        assert model.symmetry == SIMILARITIES
        assert_kept(model)
    changes = [trial(("affine",), 3).changes(model)["affine"] for model in bounded]
    assert max(changes) > BROKEN, f"affine maps: {changes}"


@pytest.mark.parametrize("growth", [1e3, 1e7, 1e12])
def test_the_bound_holds_however_large_the_coefficients_are(growth):
    model = random_model(
        "agn", task="coordinates", coordinate_map=NeighbourSum(max_growth=10.0), **FEATURES
    )
    for block in model.blocks:
        block.map.update.phi.linears[-1].weight.data *= growth
        block.map.update.phi.linears[-1].bias.data *= growth
    data = graph(generic_edges(), 3, 1)

    def width(x):
        return float((x - x.mean(0)).square().sum(1).mean().sqrt())

    ratio = width(model(data).detach()) / width(data.pos)
    assert ratio <= 10 * (1 + 1e-6), f"grew {ratio} times"
    assert_kept(model, growth)


# ------------------------------------------------------------------ specifications of one's own

HEIGHT = Measure(
    "height",
    "edge",
    function=lambda x, y: (x - y)[..., -1:],
    symmetry=Symmetry(["permutation", "translation", "axis-rotation", "axis-reflection"]),
)
RADIUS = Measure(
    "radius",
    "node",
    function=lambda x: x.square().sum(-1),
    symmetry=Symmetry(["permutation", "rotation", "reflection"]),
)


def test_the_declared_symmetry_of_a_measure_is_intersected():
    spec = DGN.replace(name="falling", edge=[e, v.target, v.source, d2, HEIGHT, u])
    model = random_model(spec, **FEATURES)
    assert model.symmetry == HEIGHT.symmetry
    assert_kept(model)
    assert_broken(
        lambda seed: random_model(spec, seed=seed, **FEATURES),
        [kind for kind in KINDS if kind not in model.symmetry],
        spec,
    )


def test_a_measure_of_angles_and_one_on_rays():
    cosine = Measure(
        "cosine",
        "angle",
        function=lambda p, q: (p * q).sum(-1),
        per_ray=lambda rays: torch.nn.functional.normalize(rays, dim=-1),
        symmetry=ANGLES,
    )
    spec = AGN.replace(name="cosines", angle=[v.vertex, v.first, v.second, a, cosine, u])
    model = random_model(spec, **FEATURES)
    assert model.symmetry == ANGLES
    assert_kept(model)
    assert_broken(
        lambda seed: random_model(spec, seed=seed, noise=0.4, **FEATURES), CONFORMAL, spec
    )
    upright = spec.replace(angle=[v.vertex, HEIGHT.first, HEIGHT.second, cosine, theta])
    model = random_model(upright, **FEATURES)
    assert model.symmetry == HEIGHT.symmetry
    assert_kept(model)
    assert_broken(
        lambda seed: random_model(upright, seed=seed, noise=0.4, **FEATURES), ["rotation"], upright
    )


def central(coordinate_map, **options):
    """A block that sees the origin: it reads |x|^2."""
    reads = [reduce(e), v, u]
    measured = Measure("r2", "node", function=RADIUS.function, symmetry=RADIUS.symmetry)
    spec = Spec("central", edge=[e, v.source, v.target], node=[*reads, measured])
    options = {"dimension": 3, "coordinate_map": coordinate_map, **FEATURES, **options}
    return random_model(spec, **options)


def test_what_sees_the_origin_notices_a_shift_of_it():
    still = central("identity")
    assert still.symmetry == RADIUS.symmetry
    assert_kept(still)
    for psi in ("scale", "neighbour-sum", "egcn-neighbours"):
        model = central(psi)
        assert model.symmetry == RADIUS.symmetry, psi
        assert_kept(model, psi)
    for psi in ("shift", "shift-u", "rigid"):
        model = central(psi)
        assert model.symmetry == PERMUTATIONS, psi
        assert_kept(model, psi)
        assert_broken(
            lambda seed, psi=psi: central(psi, seed=seed), ["rotation", "reflection"], psi
        )


def test_a_shift_that_nobody_reads_is_not_noticed():
    model = central("shift", layers=1)
    assert model.symmetry == RADIUS.symmetry
    assert_kept(model)


def test_positions_in_a_later_layer():
    """Raw coordinates may be read by any update, not only at the start."""
    spec = DGN.replace(name="absolute", node=[reduce(e), v, u, position])
    model = random_model(spec, dimension=3, **FEATURES)
    assert model.symmetry == PERMUTATIONS
    assert_kept(model)
    assert_broken(
        lambda seed: random_model(spec, seed=seed, dimension=3, **FEATURES),
        ["translation", "rotation", "dilation"],
        spec,
    )


def test_scaling_adds_dilations_to_what_reads_positions():
    """The longest edge is divided out, but the origin is not moved."""
    model = random_model(GN.replace(name="scaled", scaling=2.0), dimension=3, **FEATURES)
    assert model.symmetry == Symmetry(["permutation", "dilation"])
    assert_kept(model)


@pytest.mark.parametrize("scaling", [0.1, 1.0, 30.0])
def test_sdgn_sees_the_longest_edge_as_it_is_told(scaling):
    """SDGN is DGN on coordinates that have been scaled by hand."""
    scaled = random_model("sdgn", scaling=scaling, **FEATURES)
    plain = random_model("dgn", **FEATURES)
    plain.load_state_dict(scaled.state_dict())
    data = graph(flexible_edges(3), 3, 2)
    source, target = data.edge_index
    longest = (data.pos[source] - data.pos[target]).norm(dim=1).max()
    by_hand = data.clone()
    by_hand.pos = data.pos * (scaling / longest)
    error = distance(scaled(data), plain(by_hand))
    assert error <= 1e-12, f"scaling={scaling}: {error}"


def test_a_map_object_is_copied_for_each_layer():
    psi = Scale()
    model = random_model("dgn", coordinate_map=psi, layers=3, task="coordinates")
    maps = [block.map for block in model.blocks]
    assert len({id(m) for m in [*maps, psi]}) == 4
    assert len({m.coefficients.item() for m in maps}) == 3
