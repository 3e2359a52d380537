"""Trivial predictions against their definitions, and what a run says beside them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import symgnn
from symgnn.cli import main
from symgnn.data._task import Task
from symgnn.report._record_lines import not_beaten
from symgnn.train._baseline import Baseline, baseline, headlines
from symgnn.train._metrics import Judge, Metrics, Scaler, balanced

pytestmark = pytest.mark.usefixtures("one_thread")
ENERGIES = Task("graph", "regression", ("energy", "gap"), ("eV", "eV"))
TOUR = Task("edge", "classification", ("tour",), classes=("no", "yes"))
SHAPES = Task("graph", "classification", ("shape",), classes=("box", "cone", "torus"))
PLACES = Task("coordinates", "regression", ("x0", "x1"))


def measured(made: Baseline, judge: Judge, y: torch.Tensor, pos=None) -> dict[str, float]:
    metrics = Metrics(judge.task, len(made.names))
    metrics.add(*judge(made(len(y), pos), y))
    return made.pick(metrics.values())


def skewed(rows: int, seed: int) -> torch.Tensor:
    draws = np.random.default_rng(seed).exponential(2.0, (rows, 2)) * [1, 40] + [1000, 0]
    return torch.tensor(draws)


def judge_of(y: torch.Tensor, **options) -> Judge:
    return Judge(ENERGIES, Scaler(y.nanmean(0), y.std(0, correction=0)), **options)


def test_mean_and_median() -> None:
    train, test = skewed(200, 0), skewed(50, 1)
    judge = judge_of(train)
    made = baseline(judge, train)
    found = measured(made, judge, test)
    for k, name in enumerate(ENERGIES.targets):
        mean, median = float(train[:, k].mean()), float(np.median(train[:, k]))
        assert found[f"mae {name}"] == pytest.approx(float((test[:, k] - median).abs().mean()))
        mse = float((test[:, k] - mean).square().mean())
        assert found[f"mse {name}"] == pytest.approx(mse)
        assert found[f"rmse {name}"] == pytest.approx(mse**0.5)
        assert found[f"r2 {name}"] == pytest.approx(1 - mse / float(test[:, k].var(correction=0)))
        assert made.chosen[f"mae {name}"] == "median of the training targets"
        assert made.chosen[f"r2 {name}"] == "mean of the training targets"
    again = Baseline.from_dict(json.loads(json.dumps(made.as_dict())))
    assert measured(again, judge, test) == found


def test_the_loss_chooses() -> None:
    train = skewed(200, 0)
    for loss, name in (("mse", "mean"), ("mae", "median")):
        made = baseline(judge_of(train, loss=loss), train)
        assert made.chosen["loss"] == f"{name} of the training targets"


def test_missing_labels_have_no_part() -> None:
    train, test = skewed(200, 0), skewed(50, 1)
    holes = train.clone()
    holes[::3, 0] = torch.nan
    judge = Judge(ENERGIES, Scaler(torch.zeros(2).double(), torch.ones(2).double()))
    found = measured(baseline(judge, holes), judge, test)
    kept = torch.stack([train[torch.arange(200) % 3 != 0, 0]] * 2, 1)
    expected = measured(baseline(judge, kept), judge, test)
    assert found["rmse energy"] == pytest.approx(expected["rmse energy"])
    assert found["mae energy"] == pytest.approx(expected["mae energy"])


def test_classes() -> None:
    y = torch.tensor([0] * 6 + [1] * 3 + [2])
    judge = Judge(SHAPES, Scaler(torch.zeros(1), torch.ones(1)))
    found = measured(baseline(judge, y), judge, torch.tensor([0, 1, 1, 2, 0]))
    assert found["accuracy"] == pytest.approx(2 / 5)
    logs = torch.tensor([0.6, 0.3, 0.3, 0.1, 0.6]).log()
    assert found["loss"] == pytest.approx(-float(logs.mean()))


def test_f1_of_two_classes_is_beaten_by_naming_all() -> None:
    """Naming no edge has the highest accuracy and no F1; naming all has the highest F1."""
    y = torch.tensor([0] * 18 + [1] * 2)
    judge = Judge(TOUR, Scaler(torch.zeros(1), torch.ones(1)))
    made = baseline(judge, y)
    found = measured(made, judge, y)
    assert found["accuracy"] == pytest.approx(0.9)
    assert found["f1"] == pytest.approx(4 / 22)
    assert made.chosen["f1"] == "always yes"
    weighted = Judge(
        TOUR, Scaler(torch.zeros(1), torch.ones(1)), class_weights=balanced(y.bincount())
    )
    found = measured(baseline(weighted, y), weighted, y)
    assert found["loss"] == pytest.approx(np.log(2))


def test_coordinates() -> None:
    generator = torch.Generator().manual_seed(0)
    pos = torch.randn(100, 2, generator=generator)
    judge = Judge(PLACES, Scaler(torch.zeros(2), torch.ones(2)), scale=0.5)
    drift = pos + torch.tensor([3.0, 0.0]) + 0.1 * torch.randn(100, 2, generator=generator)
    made = baseline(judge, drift, pos)
    assert made.chosen["mse"] == "mean displacement of the training nodes"
    assert measured(made, judge, drift, pos)["mae"] < 0.2 / 0.5
    there_and_back = pos + torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).repeat(50, 1) * 0.1
    made = baseline(judge, there_and_back, pos)
    assert measured(made, judge, there_and_back, pos)["mae"] == pytest.approx(0.05 / 0.5, rel=1e-5)


def test_headlines() -> None:
    assert headlines(ENERGIES, "mse", "loss", "none") == ["rmse energy", "rmse gap"]
    assert headlines(ENERGIES, "mae", "loss", "none") == ["mae energy", "mae gap"]
    assert headlines(ENERGIES, "mse", "mae gap", "none") == ["mae energy", "mae gap"]
    assert headlines(SHAPES, "mse", "loss", "none") == ["accuracy"]
    assert headlines(SHAPES, "mse", "f1", "none") == headlines(SHAPES, "mse", "loss", "balanced")
    assert headlines(PLACES, "mse", "loss", "none") == ["rmse"]


def cell(mean: float | None, trivial: float) -> dict:
    return {"mean": mean, "baseline": trivial, "baseline_by": "mean"}


def test_what_is_not_beaten_is_said() -> None:
    both = {"test": {"mae a": cell(0.91, 0.88), "mae b": cell(1, 2), "accuracy": cell(0.7, 0.7)}}
    said = not_beaten(both, ["mae a", "mae b"], "test")
    assert said == "does not beat the baseline on test: mae a 0.91 against 0.88 (mean)"
    assert not_beaten(both, ["mae b"], "test") is None
    assert not_beaten(both, ["accuracy"], "test") is not None  # equal is not better
    assert "undefined" in str(not_beaten({"test": {"mae": cell(None, 1)}}, ["mae"], "test"))
    assert not_beaten({"test": {"mae": {"mean": 1.0}}}, ["mae"], "test") is None  # an older run


def written(folder: Path, y: np.ndarray) -> Path:
    pos = np.random.default_rng(0).normal(size=(len(y), 4, 3))
    np.savez(folder / "clouds.npz", pos=pos, energy=y)
    config = folder / "run.yaml"
    config.write_text(f"""
data: {{path: {folder / "clouds.npz"}, columns: energy, k: 2}}
model: {{block: dgn, hidden: 4, layers: 1}}
train: {{epochs: 1, batch_size: 8}}
""")
    return config


def test_a_run_that_learns_nothing_says_so(tmp_path: Path, capsys) -> None:
    """Labels that have nothing to do with the graphs, after one epoch."""
    y = np.random.default_rng(1).normal(size=200)
    config, out = written(tmp_path, y), tmp_path / "run"
    assert main(["train", str(config), "--out", str(out)]) == 0
    line = next(
        line
        for line in capsys.readouterr().out.splitlines()
        if "does not beat the baseline" in line
    )
    metrics = json.loads((out / "metrics.json").read_text())
    reached, trivial = (metrics["test"]["rmse"][key] for key in ("mean", "baseline"))
    assert trivial <= reached
    assert f"rmse {reached:.4g} against {trivial:.4g} (mean of the training targets)" in line
    page = (out / "report.html").read_text()
    assert f"rmse {reached:.4g} against {trivial:.4g}" in page

    run = symgnn.load(out)
    splits = run.splits()
    train = torch.cat([graph.y for graph in splits.train])
    for name in ("train", "validation", "test"):
        labels = torch.cat([graph.y for graph in getattr(splits, name)])
        cells = metrics[name]
        rmse = float((labels - train.mean()).square().mean().sqrt())
        assert cells["rmse"]["baseline"] == pytest.approx(rmse, rel=1e-5)
        mae = float((labels - float(np.median(train))).abs().mean())
        assert cells["mae"]["baseline"] == pytest.approx(mae, rel=1e-5)

    assert main(["evaluate", str(out), "--split", "test"]) == 0
    assert "does not beat the baseline" in capsys.readouterr().out
    again = json.loads((out / "metrics.json").read_text())
    assert again["test"]["rmse"]["baseline"] == trivial
