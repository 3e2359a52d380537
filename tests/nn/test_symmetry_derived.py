"""How the symmetry is derived, and specifications of one's own"""

import pytest
import torch

from helpers import (
    FEATURES,
    distance,
    flexible_edges,
    generic_edges,
    graph,
    random_model,
    trial,
)
from nn.symmetry_cases import BROKEN, assert_broken, assert_kept
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
    Symmetry,
)
from symgnn.nn import (
    AGN,
    ARCHITECTURES,
    DGN,
    EGCN,
    GN,
    Measure,
    NeighbourSum,
    Scale,
    Spec,
    build,
    reduce,
)
from symgnn.nn.inputs import a, d2, e, position, theta, u, v

CONFORMAL = ("inversion", "special-conformal")


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
