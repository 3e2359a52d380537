"""Single cases in a report: parity plots, confusion matrices, scores, the worst ones."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from symgnn.data._task import Task
from symgnn.report import _outcome_cases as cases
from symgnn.report.figures._class_confusion import class_confusion
from symgnn.report.figures._parity import parity_plot
from symgnn.train._metrics import Judge, Scaler
from symgnn.train._outcomes import Outcomes, class_scores

ENERGIES = Task("graph", "regression", ("energy", "gap"), ("eV", ""))
SHAPES = Task("graph", "classification", ("shape",), classes=("box", "cone", "<i>"))
PLACES = Task("coordinates", "regression", ("x0", "x1"))


def graphs(y: torch.Tensor) -> list[Data]:
    return [Data(pos=torch.zeros(2, 2), y=row[None], name=f"g{k}") for k, row in enumerate(y)]


def energies(missing: bool = False) -> Outcomes:
    """Twenty graphs; the seventh has the largest error of `energy`."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randn(20, 2, generator=generator)
    outputs = y + 0.1 * torch.randn(2, 20, 2, generator=generator)
    outputs[:, 7, 0] += 5
    if missing:
        y[::2, 0] = torch.nan
        y[:, 1] = torch.nan
    noted = Outcomes(ENERGIES, graphs(y))
    judge = Judge(ENERGIES, Scaler(torch.zeros(2).double(), torch.ones(2).double()))
    for rows in torch.arange(20).split(8):
        noted.add(outputs[:, rows], Batch(y=y[rows]), judge)
    return noted


def test_parity() -> None:
    outcome = energies().summary()
    energy = outcome["targets"][0]
    assert energy["worst"][0]["name"] == "g7"
    predicted, measured = (energies().array(n)[:, 0] for n in ("predicted", "measured"))
    error = predicted - measured
    assert energy["mae"] == pytest.approx(np.abs(error).mean())
    assert energy["rmse"] == pytest.approx(np.square(error).mean() ** 0.5)
    assert energy["r2"] == pytest.approx(1 - np.square(error).mean() / measured.var())
    figure = parity_plot(outcome["targets"])
    assert [axes.get_title().partition("\n")[0] for axes in figure.axes] == ["energy", "gap"]
    assert any("1  g7" in text.get_text() for text in figure.axes[0].texts)
    assert figure.axes[0].get_xlabel() == "measured [eV]"
    page = "".join(cases.parts(outcome, cases.draw(outcome), 2, "the test graphs"))
    for text in ("g7", "Worst cases", "energy [eV]", "data:image/png", "2 initialisations"):
        assert text in page


def test_missing_labels_are_left_out() -> None:
    outcome = energies(missing=True).summary()
    energy, gap = outcome["targets"]
    assert energy["count"] == len(energy["points"]) == 10
    assert gap["count"] == 0
    assert gap["mae"] is None
    assert len(parity_plot(outcome["targets"]).axes) == 1
    lines = list(energies(missing=True).lines())
    heads = energies(missing=True).heads()
    assert lines[0][heads.index("energy measured [eV]")] == ""
    assert lines[1][heads.index("energy measured [eV]")] != ""
    nothing = {**outcome, "targets": [gap]}
    assert cases.draw(nothing) is None
    assert "Worst" not in "".join(cases.parts(nothing, None, 1, "the test graphs"))


def test_many_points_are_sampled_with_the_worst() -> None:
    y = torch.randn(5000, 2, generator=torch.Generator().manual_seed(0))
    outputs = y[None] + 0.01
    outputs[0, 4321, 0] += 9
    noted = Outcomes(ENERGIES, graphs(y))
    judge = Judge(ENERGIES, Scaler(torch.zeros(2).double(), torch.ones(2).double()))
    noted.add(outputs, Batch(y=y), judge)
    energy = noted.summary()["targets"][0]
    assert 2000 <= len(energy["points"]) <= 2010
    assert energy["count"] == 5000
    assert energy["worst"][0]["name"] == "g4321"
    assert energy["worst"][0]["predicted"] in [point[1] for point in energy["points"]]


def test_coordinates_are_shown_as_displacements() -> None:
    generator = torch.Generator().manual_seed(0)
    pos, y = torch.randn(2, 3, 2, generator=generator)
    noted = Outcomes(PLACES, [Data(pos=pos, y=y, name="cloud")])
    judge = Judge(PLACES, Scaler(torch.zeros(2), torch.ones(2)), scale=2.0)
    noted.add(pos[None], Batch(y=y, pos=pos), judge)  # nodes stay where they are
    x0 = noted.summary()["targets"][0]
    assert [point[1] for point in x0["points"]] == [0.0] * 3
    moved = ((y - pos)[:, 0] / 2).tolist()
    assert [point[0] for point in x0["points"]] == pytest.approx(moved)
    assert x0["worst"][0]["node"] == str(int(np.abs(moved).argmax()))


def shapes() -> Outcomes:
    y = torch.tensor([0, 0, 0, 1, 1, -1])
    chosen = torch.tensor([0, 0, 1, 1, 0, 2])
    outputs = 3.0 * torch.nn.functional.one_hot(chosen, 3)
    outputs[4] *= 2  # the more certain mistake
    noted = Outcomes(SHAPES, graphs(y))
    noted.add(outputs[None], Batch(y=y), Judge(SHAPES, Scaler(torch.zeros(1), torch.ones(1))))
    return noted


def test_classes() -> None:
    outcome = shapes().summary()
    assert outcome["confusion"] == [[2, 1, 0], [1, 1, 0], [0, 0, 0]]
    box, cone, other = outcome["scores"]
    assert (box["precision"], box["recall"], box["f1"], box["support"]) == pytest.approx(
        (2 / 3, 2 / 3, 2 / 3, 3)
    )
    assert cone["f1"] == pytest.approx(0.5)
    assert (other["precision"], other["recall"], other["f1"], other["support"]) == (*[None] * 3, 0)
    assert [case["name"] for case in outcome["worst"]] == ["g4", "g2"]
    picture = cases.draw(outcome)
    assert picture is not None
    assert picture.name == "confusion.png"
    page = "".join(cases.parts(outcome, picture, 1, "the test graphs"))
    for text in ("Most certain mistakes", "0.667", "precision", "&lt;i&gt;", "–"):
        assert text in page
    assert "<i>" not in page


def test_scores_agree_with_their_definitions() -> None:
    rng = np.random.default_rng(0)
    true, chosen = rng.integers(0, 4, (2, 200))
    confusion = np.zeros((4, 4), int)
    np.add.at(confusion, (true, chosen), 1)
    for c, score in enumerate(class_scores(confusion, list("abcd"))):
        assert score["precision"] == pytest.approx((true[chosen == c] == c).mean())
        assert score["recall"] == pytest.approx((chosen[true == c] == c).mean())
        assert score["support"] == (true == c).sum()


@pytest.mark.parametrize("size", [2, 10, 120])
def test_any_number_of_classes(size: int) -> None:
    figure = class_confusion(np.eye(size, dtype=int).tolist(), [f"class {k}" for k in range(size)])
    axes = figure.axes[0]
    assert axes.get_xlabel() == "predicted"
    assert len(axes.texts) == (size**2 if size <= 25 else 0)
    assert max(figure.get_size_inches()) < 13
