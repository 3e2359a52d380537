"""The figures: they have their panels, and none is blank."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from report.sample import CLASSES, classification, efficiency
from symgnn.data import polytope
from symgnn.report._palette import OUTLINE
from symgnn.report.figures import (
    all_figures,
    confusion_matrices,
    data_efficiency,
    heat_map,
    telling_column,
    training_curves,
    wireframes,
)
from symgnn.report.figures._coxeter import coxeter_plane


def pixels(figure: Figure) -> np.ndarray:
    figure.set_dpi(50)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(float)


def assert_drawn(figure: Figure, panels: int) -> None:
    """The figure has this many visible panels, and in each there is something to see."""
    image = pixels(figure)
    height, width = image.shape[:2]
    visible = [axes for axes in figure.axes if axes.axison or axes.has_data()]
    assert len(visible) == panels
    for axes in visible:
        box = axes.get_window_extent()
        assert -1 <= box.x0 < box.x1 <= width + 1
        part = image[height - int(box.y1) : height - int(box.y0), int(box.x0) : int(box.x1)]
        assert part.std() > 2.0


def titles(figure: Figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes]


def test_heat_map_without_numbers_of_the_paper() -> None:
    results = classification()
    for row in results["rows"]:
        for cell in row["cells"].values():
            cell["paper_mean"] = None
    figure = heat_map(results)
    titles = [axes.get_title() for axes in figure.axes]
    assert "here" in titles
    assert "the paper" not in titles


def test_heat_map() -> None:
    figure = heat_map(classification())
    assert_drawn(figure, 3)  # ours, the paper's, the scale
    ours, paper = figure.axes[:2]
    assert (ours.get_title(), paper.get_title()) == ("here", "the paper")
    assert ours.images[0].get_clim() == paper.images[0].get_clim() == (0.0, 1.0)
    assert [text.get_text() for text in ours.texts][:4] == ["1.00", "1.00", "0.93", "0.45"]
    assert [text.get_text() for text in paper.texts][:4] == ["1.00", "1.00", "0.96", "–"]
    for axes in (ours, paper):
        outlines = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        colours = [matplotlib.colors.to_hex(patch.get_edgecolor()) for patch in outlines]
        assert sorted(colours) == sorted([OUTLINE["differs"]] * 2 + [OUTLINE["violated"]])


@pytest.mark.parametrize("dimension", [3, 5])
def test_wireframes(dimension: int) -> None:
    classes = CLASSES if dimension == 3 else CLASSES[:3]
    figure = wireframes({"dimension": dimension, "classes": classes})
    assert_drawn(figure, len(classes))
    for axes, name in zip(figure.axes, classes, strict=True):
        graph = polytope(name, dimension)
        edges = graph.edge_index.shape[1] // 2
        assert axes.get_title() == f"{name}\n{len(graph.pos)} vertices, {edges} edges"
        (lines,) = (c for c in axes.collections if isinstance(c, LineCollection))
        assert len(lines.get_segments()) == edges


@pytest.mark.parametrize(
    ("name", "dimension", "order"),
    [
        ("simplex", 3, 4),
        ("dodecahedron", 3, 10),
        ("simplex", 4, 5),
        ("hypercube", 4, 8),
        ("orthoplex", 4, 8),
        ("24-cell", 4, 12),
        ("120-cell", 4, 30),
        ("600-cell", 4, 30),
        ("simplex", 5, 6),
        ("hypercube", 5, 10),
    ],
)
def test_coxeter_plane_shows_the_symmetry(name: str, dimension: int, order: int) -> None:
    pos = polytope(name, dimension).pos.double().numpy()
    plane = coxeter_plane(pos)
    np.testing.assert_allclose(plane.T @ plane, np.eye(2), atol=1e-6)
    flat = pos @ plane
    angle = 2 * np.pi / order
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    gaps = np.linalg.norm((flat @ turn)[:, None] - flat[None], axis=-1)
    assert gaps.min(axis=1).max() < 1e-5


def test_confusion_matrices() -> None:
    results = classification()
    figure = confusion_matrices(results, "special-conformal")
    # of the blocks AGN, SDGN, GN, CGN: 3 with mean, identity; GN again with mean, neighbour-sum;
    # AGN with sum, neighbour-sum; CGN with sum, identity; twice
    assert_drawn(figure, 12)
    assert [part.get_suptitle() for part in figure.subfigs] == [
        "training graphs",
        "special conformal",
    ]
    matrices = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    np.testing.assert_allclose(matrices[0], np.eye(5))
    np.testing.assert_allclose(matrices[1], 0.2)


def test_confusion_takes_the_most_telling_column() -> None:
    assert telling_column(classification()) == "non-orthogonal mu=3.0"
    with pytest.raises(ValueError, match="no confusion"):
        confusion_matrices({**classification(), "rows": []})


def test_training_curves() -> None:
    figure = training_curves(classification())
    assert_drawn(figure, 4)
    assert titles(figure) == [
        "mean, identity",
        "mean, neighbour-sum",
        "sum, identity",
        "sum, neighbour-sum",
    ]
    assert [len(axes.lines) for axes in figure.axes] == [3, 1, 1, 1]
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    with pytest.raises(ValueError, match="no training curves"):
        training_curves({**classification(), "rows": []})


def test_data_efficiency() -> None:
    figure = data_efficiency(efficiency())
    assert_drawn(figure, 2)
    assert titles(figure) == ["rotated and reflected", "non-orthogonal, μ = 0.5"]
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        *lines, curve = axes.lines
        np.testing.assert_allclose(curve.get_ydata(), [0.25, 0.55, 0.97])
        assert [line.get_ydata()[0] for line in lines] == [1.0, 1.0, 0.6]
        # the two lines at the same height are dashed, the third is not
        assert [line.get_linestyle() for line in lines] == ["--", "--", "-"]


def test_figures_whose_data_are_missing_are_left_out() -> None:
    results = classification()
    for row in results["rows"]:
        del row["confusion"], row["curve"]
    assert [entry.name for entry in all_figures(results)] == ["heat_map", "polytopes"]
    assert all_figures({**results, "rows": []}) == []


def test_drawing_has_no_side_effects() -> None:
    had_pyplot = "matplotlib.pyplot" in sys.modules
    before = matplotlib.rcParams.copy()
    with matplotlib.rc_context({"axes.facecolor": "black"}):
        figure = training_curves(classification())
    assert figure.axes[0].get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert matplotlib.rcParams.copy() == before
    assert ("matplotlib.pyplot" in sys.modules) == had_pyplot
