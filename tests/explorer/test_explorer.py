"""The explorer without a browser: moves, reactions, explanations, and what the callbacks give."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from symgnn.explorer import (
    MOVES,
    NETWORKS,
    SHAPES,
    largest_changes,
    make_app,
    measure,
    move,
    moves_of,
    networks_for,
    shape_named,
)
from symgnn.explorer._explorer_figures import (
    COLOURS,
    lattice_diagram,
    lattice_figure,
    projected,
    shape_figure,
)
from symgnn.explorer._explorer_networks import watched_run
from symgnn.explorer._explorer_page import following, share, starting
from symgnn.explorer._explorer_stage import Stage, stage_of_file
from symgnn.geometry import NoSuchTransformation
from symgnn.nn import build

#: A shape that has each move.
HAVING = {"twist a bond": "butane (molecule)", "flex the angles": "ring of six"}
STAGE = Stage()


def lengths(pos: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    return (pos[edge_index[0]] - pos[edge_index[1]]).norm(dim=1)


@pytest.mark.parametrize("name", MOVES)
def test_colours_agree_with_the_symmetry(name: str) -> None:
    """Where theory says that an output stays it does, at small, middle and large values."""
    one = MOVES[name]
    shape = HAVING.get(name, "cube")
    networks = STAGE.networks(shape)
    values = {one.step, one.high} | ({one.low, one.low / 2} if one.low else set())
    for value in values:
        scene = STAGE.scene(shape, {name: value})
        assert scene.moved.kinds == (one.kind,)
        for network, reaction in zip(networks, scene.reactions, strict=True):
            assert reaction.must_stay == (one.kind in network.symmetry)
            assert reaction.verdict != "broken", (name, value, reaction)
    # and where it says nothing, some network notices
    assert "changes" in {reaction.verdict for reaction in scene.reactions}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_moves_and_networks(shape: str) -> None:
    data = shape_named(shape)
    assert data.pos.dtype == torch.float64
    missing = moves_of(data.pos, data.edge_index)
    assert missing["turn"] is None
    assert missing["special conformal"] is None
    scene = STAGE.scene(shape, {"turn": 40, "scale": 0.5})
    assert [one.name for one in scene.reactions] == list(NETWORKS)
    verdicts = {one.name: one.verdict for one in scene.reactions}
    assert verdicts["AGN"] == verdicts["SDGN"] == verdicts["CGN"] == "kept"
    assert verdicts["GN"] == "changes"


def test_moves_are_what_they_are_called() -> None:
    """Closed forms: what each keeps and changes, on the cube with edges of 2 / sqrt(3)."""
    cube = shape_named("cube")
    before = lengths(cube.pos, cube.edge_index)
    for name in ("turn", "mirror", "shift", "flex"):
        moved = move(cube.pos, cube.edge_index, {name: MOVES[name].high}).pos
        torch.testing.assert_close(lengths(moved, cube.edge_index), before, rtol=1e-12, atol=0)
        assert (moved - cube.pos).abs().max() > 0.05
    twice = move(cube.pos, cube.edge_index, {"scale": 1.0}).pos
    torch.testing.assert_close(twice, 2 * cube.pos)
    volume = torch.linalg.det(torch.linalg.lstsq(cube.pos, _affine(cube, "stretch")).solution)
    assert math.isclose(float(volume), 2, rel_tol=1e-12)  # 2 ** 1 along one direction
    volume = torch.linalg.det(torch.linalg.lstsq(cube.pos, _affine(cube, "shear")).solution)
    assert math.isclose(float(volume), 1, rel_tol=1e-12)
    inverted = move(cube.pos, cube.edge_index, {"invert": 0.5}).pos
    cross = [_cross_ratio(x) for x in (cube.pos, inverted)]  # which Moebius maps keep
    assert math.isclose(*cross, rel_tol=1e-12)
    redrawn = move(cube.pos, cube.edge_index, {"redraw": 0.4}).pos
    source, target = cube.edge_index
    along = [torch.nn.functional.normalize(x[source] - x[target]) for x in (cube.pos, redrawn)]
    torch.testing.assert_close(*along, rtol=0, atol=1e-12)


def _affine(cube, name: str) -> torch.Tensor:
    return move(cube.pos, cube.edge_index, {name: 1.0}).pos


def _cross_ratio(x: torch.Tensor) -> float:
    def d(a: int, b: int) -> float:
        return float((x[a] - x[b]).norm())

    return d(0, 1) * d(2, 5) / (d(0, 2) * d(1, 5))


def test_a_twist_keeps_lengths_and_angles_and_turns_a_part() -> None:
    butane = shape_named("butane (molecule)")
    moved = move(butane.pos, butane.edge_index, {"twist a bond": 120}).pos
    length, angle, _ = largest_changes(butane.pos, moved, butane.edge_index)
    assert length.kept
    assert angle.kept
    still = ((moved - butane.pos).norm(dim=1) < 1e-9).sum()
    assert 2 <= still <= len(moved) - 3  # the bond, and one side


def test_moves_that_a_shape_does_not_have_are_refused() -> None:
    cube = shape_named("cube")
    with pytest.raises(NoSuchTransformation, match="twist: no bond"):
        move(cube.pos, cube.edge_index, {"twist a bond": 10})
    with pytest.raises(ValueError, match="move: 'twirl' is not known"):
        move(cube.pos, cube.edge_index, {"twirl": 10})
    with pytest.raises(ValueError, match="turn: is 400; give a number from -180 to 180"):
        move(cube.pos, cube.edge_index, {"turn": 400})
    with pytest.raises(ValueError, match=r"shape: .*cubo"):
        shape_named("cubo")


def test_the_largest_changes_are_found() -> None:
    """A square of which one corner is pulled out along the diagonal."""
    square = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]], dtype=torch.float64)
    edges = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    pulled = square.clone()
    pulled[2] = 2.0
    length, angle, kappa = largest_changes(square, pulled, edges)
    assert length.nodes == (1, 2)
    assert (length.before, length.after) == (1.0, pytest.approx(5**0.5))
    assert str(length) == "length of 1–2: 1 → 2.24 (+124 %)"
    # at 2: from 90 degrees to 2 atan(1/3); at 1 and 3: to 90 + atan(1/2)
    assert angle.nodes == (1, 2, 3)
    assert angle.after == pytest.approx(math.degrees(2 * math.atan(1 / 3)))
    assert kappa.kept  # of two rays, kappa is 1
    assert [one.kept for one in largest_changes(square, square.flip(1), edges)] == [True] * 3
    alone = largest_changes(square[:1], square[:1], torch.zeros(2, 0, dtype=torch.long))
    assert [str(one) for one in alone] == [
        f"no {word} to measure" for word in ("length", "angle", "kappa")
    ]


def test_reactions_have_verdicts() -> None:
    cube = shape_named("cube")
    networks = networks_for(3)
    by_name = {
        one.name: one for one in measure(networks, cube, 2 * cube.pos, ["rotation"])
    }  # a dilation that is called a rotation: theory is broken, and it is said
    assert by_name["DGN"].verdict == "broken"
    assert by_name["AGN"].verdict == "kept"
    plain = watched_run("mine", torch.nn.Identity())
    assert plain.symmetry is None


def test_runs_that_give_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="node-vectors, which transform with the shape"):
        watched_run("mine", build("dgn", task="node-vectors"))
    kept = watched_run("mine", build("dgn"))
    assert str(kept.symmetry) == "E(n), torsions, flexes, permutations"


def test_own_structures_are_checked() -> None:
    cube = shape_named("cube")
    lonely = cube.clone()
    lonely.edge_index = cube.edge_index[:, :0]
    with pytest.raises(ValueError, match="has no edges; join its nodes with --radius"):
        stage_of_file("lonely", lonely)
    moving = cube.clone()
    moving.vel = cube.pos
    with pytest.raises(ValueError, match="has velocities"):
        stage_of_file("moving", moving, [watched_run("mine", build("dgn"))])
    stage = stage_of_file("mine", cube, [watched_run("mine", build("dgn"))])
    assert stage.shapes[0] == "mine"
    reactions = stage.scene("mine", {"scale": 1.0}).reactions
    assert reactions[0].name == "mine"
    assert reactions[0].verdict == "changes"
    assert len(reactions) == len(NETWORKS) + 1


def test_projection_keeps_three_dimensions_and_shows_more() -> None:
    x = torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for view in (0.0, 70.0):
        torch.testing.assert_close(torch.pdist(projected(x, view)), torch.pdist(x))
    for shape in ("tesseract (4-d)", "5-cube (5-d)"):
        flat = projected(shape_named(shape).pos)
        assert torch.pdist(flat[:, :2]).min() > 0.01  # no two corners in one place


def test_a_page_may_be_open_twice() -> None:
    """Requests are answered in threads; each has what it would have alone."""
    values = [{"flex the angles": 0.1 * k} for k in range(1, 5)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: STAGE.scene("ring of six", one), values))
    for scene, one in zip(found, values, strict=True):
        assert torch.equal(scene.moved.pos, STAGE.scene("ring of six", one).moved.pos)
        assert {each.verdict for each in scene.reactions} <= {"kept", "changes"}


def test_the_lattice_is_ordered_by_inclusion() -> None:
    networks = networks_for(3)
    places = lattice_diagram(networks).places
    for small in places:
        for large in places:
            if small != large and small <= large:
                assert places[small][1] < places[large][1]
    assert len(set(places.values())) == len(places)
    scene = STAGE.scene("cube", {"scale": 0.5})
    drawn = lattice_figure(networks, scene.reactions)["layout"]["annotations"]
    for box in drawn:
        names = box["text"].split("</b>")[0].removeprefix("<b>").split(", ")
        kept = all("dilation" in one.symmetry for one in networks if one.name in names)
        assert box["bgcolor"] == COLOURS["kept" if kept else "changes"]


def test_bars_are_longer_for_larger_changes() -> None:
    lengths = [share(change) for change in (0.0, 1e-12, 1e-6, 1e-3, 0.5, 1.0, 20.0)]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[1], lengths[-2], lengths[-1]) == (0, 0, 1, 1)


def test_callbacks_give_what_is_shown() -> None:
    dash = pytest.importorskip("dash", reason="needs symgnn[explore]: dash")
    count = len(MOVES)
    start = starting(STAGE, "cube")
    assert start[:count] == [0] * count
    off = [name for name, each in zip(MOVES, start[count : 2 * count], strict=True) if each]
    assert off == ["twist a bond", "flex the angles"]
    assert all(
        bool(why) == each for each, why in zip(start[count:], start[2 * count :], strict=False)
    )
    values = [1.0 if name == "scale" else 0.0 for name in MOVES]
    drawing, rows, lattice, words, *notes = following(STAGE, dash.html, "cube", 0, values)
    assert [trace.get("name") for trace in drawing["data"]][:2] == ["before", "after"]
    classes = {
        row.to_plotly_json()["props"]["data-network"]: row.className for row in rows.children
    }
    assert classes["AGN"] == "kept"
    assert classes["DGN"] == "changes"
    assert "+100 %" in str(words)
    assert notes[list(MOVES).index("scale")] == "1"
    assert lattice["layout"]["annotations"]
    # values of sliders that the shape does not have are not read
    values = [1.0] * count
    assert following(STAGE, dash.html, "icosahedron", 0, values)[3]


def test_what_changed_most_is_marked() -> None:
    names = [
        trace.get("name") for trace in shape_figure(STAGE.scene("cube", {"shear": 0.5}))["data"]
    ]
    assert "length that changed most" in names
    assert "angle that changed most" in names
    names = [trace.get("name") for trace in shape_figure(STAGE.scene("cube", {"turn": 50}))["data"]]
    assert "length that changed most" not in names


def test_without_dash_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "dash", None)
    with pytest.raises(ValueError, match=r'^explore: needs Dash; pip install "symgnn\[explore\]"$'):
        make_app()
