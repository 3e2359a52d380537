"""A run belongs to its data, its model and one process; what does not fit is said in a line."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from filelock import FileLock
from torch_geometric.data import Data

import symgnn
from symgnn.cli import main
from symgnn.train import _checkpoint as checkpoint

pytest.importorskip("ase")
COUNT = 12


def molecules(folder: Path, *, labels: str = "") -> Path:
    """Waters of different shapes, with numbers or classes."""
    folder.mkdir(exist_ok=True)
    for k in range(COUNT):
        text = f"3\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 {0.9 + 0.01 * k} 0\n"
        (folder / f"m{k:02}.xyz").write_text(text)
    rows = [f"m{k:02},{labels[k % len(labels)] if labels else k}" for k in range(COUNT)]
    (folder / "t.csv").write_text("name,e\n" + "\n".join(rows) + "\n")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that was trained, in r, on D."""
    return trained(tmp_path)


@pytest.fixture
def unbegun(tmp_path: Path) -> Path:
    """Where a run on D, with the config c.yaml beside it, would be."""
    return configured(tmp_path)


def trained(tmp_path: Path, labels: str = "", **data: object) -> Path:
    run = configured(tmp_path, labels, **data)
    assert main(["train", str(tmp_path / "c.yaml"), "--out", str(run)]) == 0
    return run


def configured(tmp_path: Path, labels: str = "", **data: object) -> Path:
    config = {
        "data": {"path": str(molecules(tmp_path / "D", labels=labels)), "targets": "t.csv", **data},
        "model": {"block": "dgn", "hidden": 4, "layers": 1},
        "train": {"epochs": 2, "batch_size": 4},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "r"


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line that a command fails with."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


def content(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}


# ------------------------------------------------------------------ the data of a run


def change_numbers(folder: Path) -> None:
    rows = "".join(f"m{k:02},{1000 + 100 * k}\n" for k in range(COUNT))
    (folder / "t.csv").write_text("name,e\n" + rows)


def add_a_file(folder: Path) -> None:
    shutil.copy(folder / "m00.xyz", folder / "n.xyz")
    with (folder / "t.csv").open("a") as file:
        file.write("n,3\n")


def change_elements(folder: Path) -> None:
    for path in folder.glob("*.xyz"):
        path.write_text(path.read_text().replace("O", "F"))


@pytest.mark.parametrize("change", [change_numbers, add_a_file, change_elements])
def test_other_data_are_refused(change, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(run)
    change(run.parent / "D")
    train = ("train", run.parent / "c.yaml", "--resume", "--out", run)
    for command in (train, ("evaluate", run), ("predict", run, "--split", "test")):
        assert "data: differ from the training data of the run" in said(capsys, *command)
    assert content(run) == before
    molecules(run.parent / "D")
    (run.parent / "D" / "n.xyz").unlink(missing_ok=True)
    assert main(["evaluate", str(run)]) == 0


def test_other_classes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path, labels="bc")
    molecules(tmp_path / "D", labels="zc")
    assert "data: differ from" in said(capsys, "evaluate", run)
    assert "data: differ from" in said(
        capsys, "train", tmp_path / "c.yaml", "--resume", "--out", run
    )
    assert symgnn.load(run).task.classes == ("b", "c")


def test_data_that_moved(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = run.parent / "elsewhere"
    (run.parent / "D").rename(there)
    assert "no longer exists; give its new place with --data" in said(capsys, "evaluate", run)
    assert main(["evaluate", str(run), "--data", str(there)]) == 0
    predict = ["predict", str(run), "--split", "test", "--data", str(there)]
    assert main(predict) == 0
    changed = f"data.path={there}"
    assert main(["train", str(run.parent / "c.yaml"), changed, "--resume", "--out", str(run)]) == 0
    change_numbers(there)
    assert "data: differ from" in said(capsys, "evaluate", run, "--data", there)


# ------------------------------------------------------------------ its model


def test_a_changed_config_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "config.yaml"
    text = path.read_text()
    for old, new in (("aggregation: sum", "aggregation: mean"), ("hidden: 4", "hidden: 8")):
        path.write_text(text.replace(old, new, 1))
        assert "config.yaml: model." in said(capsys, "evaluate", run)
    path.write_text(text)
    assert main(["evaluate", str(run)]) == 0


def test_weights_of_another_model(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run.parent / "other"
    words = ["train", str(run.parent / "c.yaml"), "model.hidden=6", "--out", str(out)]
    assert main(words) == 0
    for name in ("best", "last"):
        shutil.copy(out / "seed-1" / f"{name}.ckpt", run / "seed-1" / f"{name}.ckpt")
    for command in (("evaluate", run), ("train", run, "--resume", "train.workers=0")):
        assert "does not fit the model of config.yaml" in said(capsys, *command)


def test_files_that_are_gone_or_empty(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best, kept = run / "seed-1" / "best.ckpt", (run / "seed-1" / "best.ckpt").read_bytes()
    best.unlink()
    assert "best.ckpt: is missing" in said(capsys, "train", run, "--resume")
    checkpoint.write_checkpoint(best, {"seeds": [1]})
    assert "best.ckpt: has no weights" in said(capsys, "evaluate", run)
    best.write_bytes(kept)
    log = run / "seed-1" / "log.csv"
    log.write_text(log.read_text() + "garbage\n")
    assert "log.csv: 'garbage' is no row of the log" in said(capsys, "train", run, "--resume")
    assert "is a folder" in said(capsys, "predict", run, "--split", "test", "--out", run.parent)
    (run / "metrics.json").write_text("[]")
    assert main(["evaluate", str(run)]) == 0
    (run / "run.json").write_text("{}")
    assert "run.json: has no task" in said(capsys, "evaluate", run)


# ------------------------------------------------------------------ its directory


def test_one_process_for_each_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run.parent / "new"
    out.mkdir()
    with FileLock(out / ".lock"):
        error = said(capsys, "train", run.parent / "c.yaml", "--out", out)
    assert "--out: another process is training into" in error
    assert main(["train", str(run.parent / "c.yaml"), "--out", str(out)]) == 0
    assert not (out / ".lock").exists()


def test_two_at_once(unbegun: Path) -> None:
    out, config = unbegun.parent / "both", str(unbegun.parent / "c.yaml")
    call = [sys.executable, "-m", "symgnn", "train", config, "--out", str(out)]
    calls = [[*call, f"train.learning_rate={rate}"] for rate in (0.001, 0.05)]
    processes = [subprocess.Popen(each, stderr=subprocess.PIPE, text=True) for each in calls]
    errors = [process.communicate()[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 2]
    assert "--out: " in errors[codes.index(2)]
    chosen = yaml.safe_load((out / "config.yaml").read_text())["train"]["learning_rate"]
    assert chosen == (0.001, 0.05)[codes.index(0)]
    with (out / "seed-1" / "log.csv").open() as file:
        assert len(list(csv.reader(file))) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.accelerator=foo", "train.accelerator: is 'foo'"),
        ("train.accelerator=tpu", "train.accelerator: is 'tpu'"),
        ("data.drop=[X]", "data.drop: 'X' is not a value that can be left out; did you mean 'x'?"),
        ("data.drop=5", "data.drop: is 5"),
        ("data.drop=y", "data.drop: 'y'"),
        ("data.seed=abc", "data.seed: is 'abc'"),
        ("data.fractions=0.8", "data.fractions: are 0.8"),
        ("train.seed=99999999999999999999", "train.seed: is 99999999999999999999"),
    ],
)
def test_nothing_is_left_of_what_cannot_begin(
    change: str, message: str, unbegun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = unbegun.parent / "deep" / "new"
    assert message in said(capsys, "train", unbegun.parent / "c.yaml", change, "--out", out)
    assert not (unbegun.parent / "deep").exists()


def test_a_run_that_diverged_can_begin_anew(
    unbegun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = unbegun.parent / "new"
    config, wild = unbegun.parent / "c.yaml", "train.learning_rate=1e30"
    assert "loss: is not finite" in said(capsys, "train", config, wild, "--out", out)
    assert main(["train", str(config), "--out", str(out)]) == 0


# ------------------------------------------------------------------ predictions


def test_elements_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    loaded = symgnn.load(run)
    water, other = tmp_path / "D" / "m03.xyz", tmp_path / "other.xyz"
    found = loaded.predict(water)
    torch.testing.assert_close(loaded.predict(symgnn.data.read(water)).value, found.value)
    other.write_text("3\n\nS 0 0 0\nH 1.34 0 0\nH 0 1.34 0\n")
    for given in (other, symgnn.data.read(other)):
        with pytest.raises(ValueError, match="elements"):
            loaded.predict(given)
    with pytest.raises(ValueError, match=r"^data: there are no graphs"):
        loaded.predict([])
    with pytest.raises(ValueError, match=r"^pos: a graph has no pos"):
        loaded.predict(Data(x=torch.rand(3, 2)))


def test_predictions_call_nodes_as_their_file_does(tmp_path: Path) -> None:
    rows = "".join(
        f"{g},{node},{k},{(k * g) % 3},{k % 2}\n"
        for g in range(6)
        for k, node in enumerate((10, 30, 20))
    )
    edges = "".join(f"{g},10,20\n{g},20,30\n" for g in range(6))
    (tmp_path / "nodes.csv").write_text("graph,node,x,y,q\n" + rows)
    (tmp_path / "edges.csv").write_text("graph,source,target\n" + edges)
    config = {
        "data": {"path": str(tmp_path), "columns": "q", "fractions": [0.5, 0.25, 0.25]},
        "model": {"block": "dgn", "hidden": 4, "layers": 1},
        "train": {"epochs": 1},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    assert main(["train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "r")]) == 0
    assert main(["predict", str(tmp_path / "r"), "--split", "test"]) == 0
    with (tmp_path / "r" / "predictions.csv").open() as file:
        assert [row["node"] for row in csv.DictReader(file)][:3] == ["10", "30", "20"]


def test_values_that_no_model_reads(tmp_path: Path) -> None:
    """A matrix of distances, and a value that only some graphs have, do no harm."""
    graphs = []
    for k in range(10):
        nodes = 3 + k % 3
        pos = torch.rand(nodes, 3)
        own = {"only": torch.rand(2)} if k % 2 else {}
        graphs.append(Data(pos=pos, y=torch.rand(1, 1), matrix=torch.cdist(pos, pos), **own))
        graphs[-1].u = torch.tensor(1.0 * k)  # one number for each graph
    torch.save(graphs, tmp_path / "g.pt")
    config = {
        "data": {"path": str(tmp_path / "g.pt"), "k": 2},
        "model": {"block": "dgn", "hidden": 4, "layers": 1},
        "train": {"epochs": 1, "batch_size": 3},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    assert main(["train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "r")]) == 0
    assert json.loads((tmp_path / "r" / "run.json").read_text())["sizes"]["graph_features"] == 1
    assert main(["predict", str(tmp_path / "r"), "--split", "train"]) == 0


def test_values_that_are_not_finite_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graphs = [
        Data(
            pos=torch.rand(3, 2),
            y=torch.rand(1, 1),
            x=torch.full((3, 1), torch.nan if k == 4 else 1),
        )
        for k in range(10)
    ]
    torch.save(graphs, tmp_path / "g.pt")
    config = {"data": {"path": str(tmp_path / "g.pt"), "k": 2}, "model": {"block": "dgn"}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    error = said(capsys, "train", tmp_path / "c.yaml", "--out", tmp_path / "r")
    assert "x: graph" in error
    assert "(g-4) has a value that is not finite" in error


@pytest.mark.parametrize("precision", ["32", "64"])
def test_large_targets_are_measured_exactly(tmp_path: Path, precision: str) -> None:
    folder = molecules(tmp_path / "D")
    rows = "".join(f"m{k:02},{-76012 - 0.001 * k:.6f}\n" for k in range(COUNT))
    (folder / "t.csv").write_text("name,e\n" + rows)
    config = {
        "data": {"path": str(folder), "targets": "t.csv"},
        "model": {"block": "dgn", "hidden": 4, "layers": 1},
        "train": {"epochs": 1, "precision": precision},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    assert main(["train", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "r")]) == 0
    run = symgnn.load(tmp_path / "r")
    found = [float(run.predict(each).value) for each in run.splits().test]
    errors = [abs(a - float(g.y)) for a, g in zip(found, run.splits().test, strict=True)]
    measured = json.loads((tmp_path / "r" / "metrics.json").read_text())["test"]["mae"]["mean"]
    assert measured == pytest.approx(sum(errors) / len(errors), rel=1e-4)
    assert run.scaler.deviation.item() == pytest.approx(0.001 * 3.4, rel=0.2)
