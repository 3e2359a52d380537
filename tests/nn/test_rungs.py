"""Networks that read directions: translations, dilations, motions that keep an axis."""

import math

import pytest
import torch

from helpers import (
    FEATURES,
    bridge_edges,
    distance,
    generic_edges,
    graph,
    graphs,
    random_model,
    rng,
    trial,
)
from symgnn.audit import audit
from symgnn.geometry import KINDS, AxisFlip, AxisReflection, AxisRotation, Symmetry
from symgnn.nn import DGN, RUNGS, along, build, upright
from symgnn.nn.inputs import d2, e, u, v

UPRIGHT = ["translation", "axis-rotation", "axis-reflection"]
DERIVED = {
    "tgn": ["translation"],
    "stgn": ["translation", "dilation"],
    "ugn": UPRIGHT,
    "ugn+flips": [*UPRIGHT, "axis-flip"],
}
KEPT, BROKEN = 1e-9, 1e-4
MAPS = ("identity", "scale", "shift", "rigid", "linear", "neighbour-sum", "part-sum", "egcn")


def exists(kind: str, n: int) -> bool:
    return n > 2 or kind not in ("axis-rotation", "angle-flex")


def test_every_rung_has_its_symmetry():
    assert set(DERIVED) == set(RUNGS)
    for name, kept in DERIVED.items():
        assert build(name, dimension=3).symmetry == Symmetry(["permutation", *kept])
    assert str(build("ugn+flips").symmetry) == (
        "translations, rotations about an axis, reflections along an axis, flips of an axis, "
        "permutations"
    )
    tgn, stgn, ugn, flips = (build(name, dimension=3).symmetry for name in RUNGS)
    assert tgn <= ugn <= flips <= build("dgn").symmetry
    assert tgn <= stgn <= build("sdgn").symmetry


@pytest.mark.parametrize("coordinate_map", MAPS)
@pytest.mark.parametrize("name", RUNGS)
def test_what_is_claimed_is_kept(name, coordinate_map):
    for n in (2, 3, 4):
        options = {"coordinate_map": coordinate_map, "dimension": n, **FEATURES}
        model = random_model(name, **options)
        assert "translation" in model.symmetry
        kinds = tuple(kind for kind in model.symmetry if exists(kind, n))
        errors = trial(kinds, n).changes(model)
        assert max(errors.values()) <= KEPT, (name, options, errors)


@pytest.mark.parametrize("coordinate_map", ["identity", "neighbour-sum", "rigid"])
@pytest.mark.parametrize("name", RUNGS)
def test_the_rest_is_broken(name, coordinate_map):
    largest: dict[str, float] = {}
    for seed in range(3):
        options = {"coordinate_map": coordinate_map, "dimension": 3, **FEATURES}
        model = random_model(name, seed=seed, noise=0.4, **options)
        kinds = tuple(kind for kind in KINDS if kind not in model.symmetry)
        for kind, error in trial(kinds, 3, seed).changes(model).items():
            largest[kind] = max(error, largest.get(kind, 0.0))
    assert min(largest.values()) > BROKEN, (name, coordinate_map, largest)


def test_a_rigid_map_turns_the_axis():
    """It keeps every distance, and yet not what is measured along an axis."""
    assert "axis-rotation" in build("ugn").symmetry
    model = build("ugn", coordinate_map="rigid", dimension=3)
    assert model.symmetry == Symmetry(["permutation", "translation"])
    # in the last layer nobody reads where it goes
    assert "axis-rotation" in build("ugn", coordinate_map="rigid", dimension=3, layers=1).symmetry


# ------------------------------------------------------------------ the axis


def test_height_and_distance_across():
    x, y = torch.tensor([[3.0, 4.0, 2.0]]), torch.tensor([[0.0, 0.0, 5.0]])
    assert along().function(x, y).tolist() == [[-3.0, 5.0]]
    assert along(flips=True).function(x, y).tolist() == [[3.0, 5.0]]
    found = along((0, 2.0, 0)).function(x, y)
    torch.testing.assert_close(found, torch.tensor([[4.0, math.hypot(3, 3)]]))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_motions_that_keep_an_axis(n):
    pos = torch.randn(7, n, generator=rng(), dtype=torch.float64)
    axis = torch.randn(n, generator=rng(1), dtype=torch.float64)
    up = axis / axis.norm()
    for kind, sign in ((AxisRotation, 1), (AxisReflection, 1), (AxisFlip, -1)):
        if n == 2 and kind is AxisRotation:
            with pytest.raises(ValueError, match="needs a dimension of 3 or more; pos has 2"):
                kind.random(pos)
            continue
        element = kind.random(pos, generator=rng(2), axis=axis.tolist())
        torch.testing.assert_close(element(pos) @ up, sign * (pos @ up))
        torch.testing.assert_close(torch.pdist(element(pos)), torch.pdist(pos))
        determinant = -1.0 if kind is AxisReflection else 1.0
        assert float(torch.linalg.det(element.matrix)) == pytest.approx(determinant)
        assert distance(element(pos), pos) > 1e-3


@pytest.mark.parametrize("axis", [(0.0, 1.0, 0.0), (1.0, 2.0, -0.5)])
def test_another_axis_is_kept_measured_and_declared(axis):
    model = random_model(upright(axis), noise=0.4, **FEATURES)
    data = graph(generic_edges(), 3, 0)
    about = AxisRotation.random(data.pos, generator=rng(), axis=axis)
    other = AxisRotation.random(data.pos, generator=rng())
    assert distance(model(about.apply(data)), model(data)) <= 1e-10
    assert distance(model(other.apply(data)), model(data)) > 1e-4
    assert model.axis == axis
    kinds = ["rotation", "axis-rotation", "axis-reflection", "axis-flip"]
    report = audit(model.float(), data, elements=3, kinds=kinds)
    assert report.agrees, report
    assert report.holds("rotations about an axis"), report
    assert not report.holds("flips of an axis")
    assert not report.holds("rotations")


def test_one_axis_only():
    spec = DGN.replace(name="two", edge=[e, v.source, v.target, along(), along((1, 0, 0)), u])
    with pytest.raises(ValueError, match="axis: two reads along 2 different axes; use one"):
        build(spec)
    data = graph(generic_edges(), 2, 0)
    with pytest.raises(ValueError, match=r"axis: is \(0.0, 0.0, 1.0\); give 2 numbers"):
        random_model(upright((0, 0, 1)), **FEATURES)(data)
    with pytest.raises(ValueError, match="not all zero"):
        random_model(upright((0, 0)), **FEATURES)(data)


def test_measures_beside_the_height_are_intersected():
    spec = DGN.replace(name="tower", edge=[e, v.source, v.target, along(flips=True), d2, u])
    model = random_model(spec, **FEATURES)
    assert model.symmetry == Symmetry(["permutation", *DERIVED["ugn+flips"]])
    assert max(trial(tuple(model.symmetry), 3).changes(model).values()) <= KEPT


# ------------------------------------------------------------------ audits


@pytest.mark.parametrize("name", RUNGS)
def test_the_audit_agrees(name):
    model = random_model(name, dimension=3, noise=0.4, aggregation="sum", **FEATURES)
    report = audit(model, graph(bridge_edges(), 3, 0), elements=3)
    assert report.agrees, f"{report.agrees}\n{report}"
    measured = [kind for kind in KINDS if report.findings[kind].measured]
    assert {*KINDS} - {*measured} == {"angle-flex"}


def test_the_audit_does_not_measure_twice_what_rotations_imply():
    model = random_model("dgn", noise=0.4, **FEATURES)
    report = audit(model, graph(bridge_edges(), 3, 0), elements=2)
    assert report.findings["axis-flip"].holds
    assert not report.findings["axis-flip"].errors
    assert "axis" not in str(report)
    assert report.holds("flips of an axis")
    assert report.symmetry & model.symmetry == report.symmetry


def test_digits_anywhere():
    """A translated graph is the same for TGN, a turned one is not: 6 and 9 differ."""
    six = graphs(2)[0]
    nine = six.clone()
    nine.pos = -six.pos
    model = random_model("tgn", dimension=2, noise=0.4, **FEATURES)
    shifted = six.clone()
    shifted.pos = six.pos + 5
    assert distance(model(shifted), model(six)) <= 1e-10
    assert distance(model(nine), model(six)) > 1e-4
