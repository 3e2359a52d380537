"""Labels that are missing have no part in anything, when that is asked for."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import symgnn
from symgnn.cli import main
from symgnn.data import read, splits
from symgnn.data._task import Splits, Task
from symgnn.train._config import resolve
from symgnn.train._metrics import Judge, Metrics, Scaler, balanced, loss_sums
from symgnn.train._prepare import measure
from symgnn.train._training import finish, train
from trainings import solids

pytestmark = pytest.mark.usefixtures("one_thread")
ENERGIES = Task("graph", "regression", ("energy", "gap"), ("eV", "eV"))
COLOURS = Task("node", "classification", ("colour",), classes=("red", "green", "blue"))


def holes(y: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Some labels are NaN, or the class -1."""
    there = torch.rand(y.shape, generator=torch.Generator().manual_seed(seed)) < 0.6
    return torch.where(there, y, torch.nan if y.is_floating_point() else -1)


@pytest.mark.parametrize("loss", ["mse", "mae", "huber"])
def test_losses_and_metrics_of_regression(loss: str) -> None:
    generator = torch.Generator().manual_seed(1)
    outputs = torch.randn(3, 30, 2, generator=generator, requires_grad=True)
    y = holes(torch.randn(30, 2, generator=generator))
    judge = Judge(ENERGIES, Scaler(torch.zeros(2), torch.ones(2)), loss=loss)
    sums, _ = judge(outputs, y)
    there = ~y.isnan()
    assert float(sums.weight) == int(there.sum())
    for seed in range(3):
        alone = loss_sums(outputs[seed][there].reshape(1, -1, 1), y[there][:, None], ENERGIES, loss)
        torch.testing.assert_close(sums.losses[seed], alone.losses[0])
    (gradient,) = torch.autograd.grad(sums.losses.sum(), outputs)
    assert gradient.isfinite().all()
    assert bool((gradient[:, ~there] == 0).all())
    assert bool((gradient[:, there] != 0).all())

    metrics = Metrics(ENERGIES, 3)
    metrics.add(*judge(outputs.detach(), y))
    values = metrics.values()
    for k, name in enumerate(ENERGIES.targets):
        mine = there[:, k]
        error = (outputs[1, mine, k] - y[mine, k]).detach()
        assert float(values[f"mae {name}"][1]) == pytest.approx(float(error.abs().mean()), rel=1e-5)
        mse = float(error.square().mean())
        assert float(values[f"rmse {name}"][1]) == pytest.approx(mse**0.5, rel=1e-5)
        r2 = 1 - mse / float(y[mine, k].var(correction=0))
        assert float(values[f"r2 {name}"][1]) == pytest.approx(r2, rel=1e-4)


def test_losses_and_metrics_of_classes() -> None:
    generator = torch.Generator().manual_seed(1)
    outputs = torch.randn(2, 40, 3, generator=generator)
    y = holes(torch.randint(3, (40,), generator=generator))
    there = y >= 0
    for weights in (None, balanced(y[there].bincount())):
        judge = Judge(COLOURS, Scaler(torch.zeros(1), torch.ones(1)), class_weights=weights)
        whole, part = Metrics(COLOURS, 2), Metrics(COLOURS, 2)
        whole.add(*judge(outputs, y))
        part.add(*judge(outputs[:, there], y[there]))
        for name, value in part.values().items():
            torch.testing.assert_close(whole.values()[name], value)


def masked(given: Splits) -> Splits:
    """Without some labels, of which none are left for one graph."""
    for k, graph in enumerate(given.train):
        graph.y = holes(graph.y, seed=k)
    given.train[2].y = (
        given.train[2].y.clone().fill_(torch.nan if given.task.kind == "regression" else -1)
    )
    return Splits(given.train, given.validation, given.test, given.task, 1.0, {"missing": "mask"})


def test_scaler_and_counts() -> None:
    given = masked(solids())
    facts = measure(given)
    y = torch.cat([graph.y for graph in given.train]).double().numpy()
    assert facts.scaler.mean.tolist() == pytest.approx(np.nanmean(y, axis=0).tolist())
    assert facts.scaler.deviation.tolist() == pytest.approx(np.nanstd(y, axis=0).tolist())
    assert facts.labels is not None
    found = facts.labels["train"]
    assert list(found["labels"].values()) == (~np.isnan(y)).sum(0).tolist()
    assert found["rows"] == len(y)
    assert found["graphs_without_label"] == 1
    classes = measure(masked(solids(kind="classification"))).class_counts
    y = torch.cat([g.y for g in masked(solids(kind="classification")).train])
    assert classes.tolist() == y[y >= 0].bincount(minlength=3).tolist()


def test_not_asked_for_it_is_an_error() -> None:
    for kind, said in (("regression", r"missing label \(NaN\)"), ("classification", "class -1")):
        given = solids(kind=kind)
        given.train[1].y = holes(given.train[1].y)
        with pytest.raises(ValueError, match=rf"^y: graph 1 of train .*{said}.*data.missing: mask"):
            measure(given)


def test_labels_to_train_on() -> None:
    given = masked(solids())
    for graph in given.train:
        graph.y[:, 1] = torch.nan
    with pytest.raises(ValueError, match=r"^data: no training graph has a label of 'charge'"):
        measure(given)
    given = masked(solids(level="graph"))
    given = Splits(given.train[:2], given.train[2:3], given.train, given.task, 1.0, given.about)
    for graph in given.train:
        graph.y = torch.ones(1, 2)
    with pytest.raises(ValueError, match=r"^data: no validation graph has a label"):
        measure(given)
    given.train[0].y[0, 0] = torch.inf
    with pytest.raises(ValueError, match=r"^y: graph 0 of train .*not finite"):
        measure(given)


# ---------------------------------------------------------------- files


def clouds(folder: Path, count: int = 24) -> Path:
    """Clouds with two targets in a CSV: `gap` is missing for two of three, all for two clouds."""
    pos = np.random.default_rng(0).normal(size=(count, 4, 3))
    np.savez(folder / "clouds.npz", pos=pos)
    size = np.square(pos).sum((1, 2))
    rows = ["name,energy [eV],gap,kind"]
    for k in range(count):
        energy = "" if k in (3, 4) else f"{size[k]:.3f}"
        gap = f"{k}.5" if k % 3 == 0 and k not in (3, 4) else ("NaN" if k % 2 else "")
        rows.append(f"clouds-{k},{energy},{gap},{'' if k % 5 == 0 else 'ab'[k % 2]}")
    (folder / "targets.csv").write_text("\n".join(rows))
    return folder


def test_reading(tmp_path: Path) -> None:
    folder = clouds(tmp_path)
    given = {"targets": "targets.csv", "k": 2}
    for columns, cell in ((["energy", "gap"], "row 3, column 'gap'"), (["kind"], "row 2, column")):
        with pytest.raises(
            ValueError, match=rf"{cell}.*(is NaN|is empty).*data.missing: mask"
        ) as e:
            read(folder, columns=columns, **given)
        assert "\n" not in str(e.value)
    graphs = read(folder, columns=["energy", "gap"], missing="mask", **given)
    assert len(graphs) == 24
    y = torch.cat([graph.y for graph in graphs])
    assert y.isnan().sum(0).tolist() == [2, 17]
    assert splits(graphs).about["missing"] == "mask"
    kinds = read(folder, columns=["kind"], missing="mask", **given)
    assert kinds.task is not None
    assert kinds.task.classes == ("a", "b")
    assert [int(graph.y) for graph in kinds][:6] == [-1, 1, 0, 1, 0, -1]
    with pytest.raises(ValueError, match=r"^missing: 'drop' is not known"):
        read(folder, columns=["gap"], missing="drop", **given)


def test_a_value_that_a_file_does_not_have_is_missing(tmp_path: Path) -> None:
    """The comments of an extended XYZ name what was computed for a molecule, and no more."""
    for k, comment in enumerate(("energy=1.5 gap=2", "energy=2.5", "gap=0.5", "other=1")):
        (tmp_path / f"m{k}.xyz").write_text(f"2\n{comment}\nH 0 0 0\nH 0 0 0.7{k}\n")
    with pytest.raises(ValueError, match=r"^columns: 'gap' is not a value of .*m1.xyz"):
        read(tmp_path, columns=["energy", "gap"])
    graphs = read(tmp_path, columns=["energy", "gap"], missing="mask")
    nan = pytest.approx(np.nan, nan_ok=True)
    found = [graph.y[0].tolist() for graph in graphs]
    assert found == [[1.5, 2.0], [2.5, nan], [nan, 0.5], [nan, nan]]
    with pytest.raises(ValueError, match=r"^columns: 'gab' is not a value of"):
        read(tmp_path, columns=["energy", "gab"], missing="mask")


def config(folder: Path, columns: list[str], *changes: str):
    data = {"path": str(folder), "targets": "targets.csv", "columns": columns, "k": 2}
    model = {"block": "dgn", "hidden": 4, "layers": 1}
    run = {"epochs": 2, "batch_size": 2, "seeds": 2, "class_weights": "none"}
    given = {"data": {**data, "missing": "mask"}, "model": model, "train": run}
    return resolve(given, changes)


def test_a_run_with_several_targets(tmp_path: Path, capsys) -> None:
    """Batches of two graphs, some without any label, with two seeds."""
    folder = clouds(tmp_path)
    asked = config(folder, ["energy", "gap"], "train.standardise=true", "data.seed=2")
    out = tmp_path / "run"
    (tmp_path / "run.yaml").write_text(asked.to_yaml())
    assert main(["train", str(tmp_path / "run.yaml"), "--out", str(out)]) == 0
    run = symgnn.load(out)
    parts = run.splits()
    metrics = json.loads((out / "metrics.json").read_text())
    for name in ("train", "validation", "test"):
        graphs = getattr(parts, name)
        y = torch.cat([graph.y for graph in graphs])
        mean = run.predict(graphs).value
        for k, target in enumerate(("energy", "gap")):
            there = ~y[:, k].isnan()
            found = metrics[name][f"mae {target}"]
            if not there.any():
                assert found["mean"] is None
                assert found["baseline"] is None
                continue
            assert found["mean"] >= float((mean - y)[there, k].abs().mean()) - 1e-4
            train_y = torch.cat([graph.y for graph in parts.train])[:, k]
            median = float(np.nanmedian(train_y))
            trivial = float((y[there, k] - median).abs().mean())
            assert found["baseline"] == pytest.approx(trivial, rel=1e-4)
    printed = capsys.readouterr().out
    assert "labels: train: energy " in printed
    assert "nan" not in printed
    record = json.loads((out / "run.json").read_text())
    total = sum(part["graphs_without_label"] for part in record["labels"].values())
    assert total == 2
    assert "without any" in (out / "report.html").read_text()


def test_classes_with_weights_and_folds(tmp_path: Path) -> None:
    folder = clouds(tmp_path)
    asked = config(folder, ["kind"], "train.class_weights=balanced", "data.folds=3")
    (tmp_path / "run.yaml").write_text(asked.to_yaml())
    out = tmp_path / "run"
    assert main(["train", str(tmp_path / "run.yaml"), "--out", str(out)]) == 0
    with (out / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["name"] for row in rows) == sorted(f"clouds-{k}" for k in range(24))
    for row in rows:
        k = int(row["name"].removeprefix("clouds-"))
        assert row["kind measured"] == ("" if k % 5 == 0 else "ab"[k % 2])
        assert row["kind"] in "ab"
    outcome = json.loads((out / "outcomes.json").read_text())["test"]
    assert outcome["count"] == 24 - 5
    assert sum(score["support"] for score in outcome["scores"]) == 24 - 5


def test_monitor_needs_labels(tmp_path: Path) -> None:
    rows = [f"clouds-{k},1.{k},{k if k < 4 else ''},{p}" for k, p in enumerate("aaaavvtt")]
    names = {"a": "train", "v": "validation", "t": "test"}
    np.savez(tmp_path / "clouds.npz", pos=np.random.default_rng(0).normal(size=(8, 4, 3)))
    rows = [f"{row[:-1]}{names[row[-1]]}" for row in rows]
    (tmp_path / "targets.csv").write_text("\n".join(["name,energy,gap,part", *rows]))
    asked = config(
        tmp_path, ["energy", "gap"], "data.split={column: part}", "train.monitor=mae gap"
    )
    with pytest.raises(ValueError, match=r"^train.monitor: is 'mae gap', but no validation graph"):
        train(asked, tmp_path / "run")
    asked = config(tmp_path, ["energy", "gap"], "data.split={column: part}")
    out = tmp_path / "other"
    run = train(asked, out)
    assert run is not None
    metrics = finish(run)
    assert np.isnan(metrics["validation"]["mae gap"]["mean"])
    assert np.isfinite(metrics["validation"]["mae energy"]["mean"])
