"""Every fold is trained once, whatever interrupts it, and each graph is predicted unseen."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import symgnn
from symgnn.cli import main
from symgnn.train import _cross_validation as cross_validation
from symgnn.train._config import Config, resolve
from symgnn.train._cross_validation import over_folds, train_folds
from symgnn.train._training import train

pytestmark = pytest.mark.usefixtures("one_thread")
COUNT = 18


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clouds of 6 patients."""
    folder = tmp_path_factory.mktemp("clouds")
    pos = np.random.default_rng(0).normal(size=(COUNT, 4, 3))
    patient = np.arange(COUNT) // 3
    np.savez(folder / "clouds.npz", pos=pos, energy=np.square(pos).sum((1, 2)), patient=patient)
    return folder


def config(folder: Path, *changes: str) -> Config:
    given = {
        "data": {
            "path": str(folder / "clouds.npz"),
            "columns": "energy",
            "k": 2,
            "folds": 3,
            "split": {"by": "group", "column": "patient", "validation": 0.3},
        },
        "model": {"block": "dgn", "hidden": 4, "layers": 1},
        "train": {"epochs": 2, "batch_size": 4, "seeds": 2},
    }
    return resolve(given, changes)


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody interrupts, by the command."""
    out = tmp_path_factory.mktemp("whole")
    (out / "run.yaml").write_text(config(folder).to_yaml())
    assert main(["train", str(out / "run.yaml"), "--out", str(out / "run")]) == 0
    return out / "run"


def rows(out: Path) -> list[dict]:
    with (out / "predictions.csv").open() as file:
        return list(csv.DictReader(file))


def test_each_graph_is_predicted_by_a_run_that_has_not_seen_it(whole: Path) -> None:
    found = rows(whole)
    assert sorted(row["name"] for row in found) == sorted(f"clouds-{k}" for k in range(COUNT))
    owner = {}
    for row in found:
        patient = int(row["name"].removeprefix("clouds-")) // 3
        assert owner.setdefault(patient, row["fold"]) == row["fold"]
    for number in (1, 2, 3):
        run = symgnn.load(whole / f"fold-{number}")
        parts = run.splits()
        mine = {row["name"]: row for row in found if row["fold"] == str(number)}
        assert set(mine) == {graph.name for graph in parts.test}
        seen = {graph.name for graph in (*parts.train, *parts.validation)}
        assert not seen & set(mine)
        value, deviation = run.predict(parts.test)
        for k, graph in enumerate(parts.test):
            row = mine[graph.name]
            assert float(row["energy"]) == pytest.approx(float(value[k]), rel=1e-5)
            assert float(row["energy deviation"]) == pytest.approx(float(deviation[k]), rel=1e-3)
            assert float(row["energy measured"]) == pytest.approx(float(graph.y), rel=1e-6)


def test_numbers_are_means_over_folds(whole: Path) -> None:
    metrics = json.loads((whole / "metrics.json").read_text())
    each = [json.loads((whole / f"fold-{k}" / "metrics.json").read_text()) for k in (1, 2, 3)]
    values = [fold["test"]["mae"]["mean"] for fold in each]
    found = metrics["test"]["mae"]
    assert found["values"] == pytest.approx(values)
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["deviation"] == pytest.approx(np.std(values, ddof=1))
    trivial = [fold["test"]["mae"]["baseline"] for fold in each]
    assert found["baseline"] == pytest.approx(np.mean(trivial))
    page = (whole / "report.html").read_text()
    for text in ("3 folds", "by the groups of column &#x27;patient&#x27;", "fold-2/report.html"):
        assert text in page
    assert (whole / "fold-2" / "report.html").exists()
    assert (whole / "parity.png").stat().st_size > 1000


def test_undefined_numbers_have_no_part() -> None:
    each = [{"test": {"r2": {"mean": value, "baseline": None}}} for value in (0.5, None, 0.7)]
    cell = over_folds(each)["test"]["r2"]
    assert cell["mean"] == pytest.approx(0.6)
    assert cell["values"] == [0.5, None, 0.7]
    assert "baseline" not in cell
    none = over_folds([{"test": {"r2": {"mean": None}}}] * 2)["test"]["r2"]
    assert none["mean"] is None


def test_finished_folds_are_skipped(whole: Path, folder: Path, tmp_path: Path, monkeypatch) -> None:
    """Fold 2 was killed before it was measured, fold 3 before it began."""
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    (out / "fold-2" / "metrics.json").unlink()
    shutil.rmtree(out / "fold-3")
    (out / "metrics.json").unlink()
    trained = []

    def noted(config: Config, directory: Path, **options):
        trained.append(directory.name)
        return train(config, directory, **options)

    monkeypatch.setattr(cross_validation, "train", noted)
    with pytest.raises(ValueError, match=r"^--out: .* contains a run; give --resume"):
        train_folds(config(folder), out)
    assert train_folds(config(folder), out, resume=True) is not None
    assert trained == ["fold-2", "fold-3"]
    assert (out / "metrics.json").read_text() == (whole / "metrics.json").read_text()
    assert rows(out) == rows(whole)


def test_more_epochs(whole: Path, folder: Path, tmp_path: Path) -> None:
    """Finished folds go on if they are to be trained for longer, also when killed in between."""
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    longer = config(folder, "train.epochs=3")
    train(cross_validation.fold_config(longer, 1), out / "fold-1", resume=True)  # not yet measured
    (out / "fold-1" / "metrics.json").unlink()
    assert train_folds(longer, out, resume=True) is not None
    expected = train_folds(longer, tmp_path / "other")
    assert json.loads((out / "metrics.json").read_text()) == json.loads(
        (tmp_path / "other" / "metrics.json").read_text()
    )
    assert expected is not None
    shorter = config(folder)
    with pytest.raises(ValueError, match=r"^train.epochs: is 2, but the run in .* has done 3"):
        train_folds(shorter, out, resume=True)


def test_what_is_refused(whole: Path, folder: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    for change, said in (
        ("data.folds=4", r"^data.folds: is 4, but the run in .* has 3"),
        ("model.hidden=8", r"^model.hidden: is 8, but the run in .* has 4"),
        ("data.folds=null", r"^data.folds: is None, but the run"),
    ):
        changed = config(folder, change)
        go_on = train_folds if changed.is_cross_validation else train
        with pytest.raises(ValueError, match=said):
            go_on(changed, out, resume=True)
    moved = tmp_path / "other"
    moved.mkdir()
    pos = np.random.default_rng(1).normal(size=(COUNT, 4, 3))
    patient = np.arange(COUNT) // 3
    np.savez(moved / "clouds.npz", pos=pos, energy=pos[:, 0, 0], patient=patient)
    with pytest.raises(ValueError, match=r"^data: differ from the training data of the run"):
        train_folds(config(moved), out, resume=True)
    assert main(["evaluate", str(out)]) == 2
    assert "has a run for each fold; give one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("data.folds=1", r"^data.folds: is 1; give a whole number of at least 2"),
        ("data.folds=yes", r"^data.folds: is True; give"),
        ("data.folds=7", r"^data.folds: is 7, but there are 6 groups"),
        ("data.fractions=[0.8,0.1,0.1]", r"^data.fractions: folds define the parts"),
        ("data.split.column=patien", r"^data.split.column: 'patien' is not a column"),
        ("data.split.by=grop", r"^data.split.by: 'grop' is not a way"),
        ("data.split.columns=x", r"^data.split: 'columns' is not a key of split"),
    ],
)
def test_wrong_options(change: str, said: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        train_folds(config(folder, change), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_datasets_have_their_own_splits() -> None:
    model = {"block": "dgn"}
    with pytest.raises(ValueError, match=r"^data.folds: the dataset polytopes-3d comes in splits"):
        resolve({"data": {"name": "polytopes-3d", "folds": 3}, "model": model})


def test_a_fold_is_a_run_of_its_own(whole: Path) -> None:
    run = symgnn.load(whole / "fold-2")
    assert run.config.data["fold"] == 2
    assert torch.isfinite(run.predict(run.splits().test).value).all()
    assert main(["evaluate", str(whole / "fold-2"), "--out", str(whole / "again.json")]) == 0
