"""A run that is finished can go on for longer, as if that had been asked for from the start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml

from symgnn.cli import main
from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._write_metrics import write_metrics

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = {
    "data": {"name": "polytopes-3d", "copies": 1},
    "model": {"block": "dgn", "hidden": 4, "layers": 1, "dropout": 0.1},
    "train": {"epochs": 4, "batch_size": 2, "learning_rate": 0.05, "warmup": 1, "seeds": 2},
}


def train(folder: Path, out: str, *words: str) -> int:
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    return main(["train", str(folder / "c.yaml"), "--out", str(folder / out), *words])


def said(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> str:
    capsys.readouterr()
    assert train(folder, "run", *words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


def same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)  # type: ignore[arg-type]
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)  # type: ignore[attr-defined, index]
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))  # type: ignore[arg-type]
    return one == other


@pytest.mark.parametrize("schedule", ["none", "plateau"])
def test_longer_is_as_if_it_had_been_asked_for(schedule: str, tmp_path: Path) -> None:
    how = (f"train.schedule={schedule}", "train.plateau_patience=1")
    assert train(tmp_path, "run", *how) == 0
    assert train(tmp_path, "run", *how, "train.epochs=7", "--resume") == 0
    assert train(tmp_path, "whole", *how, "train.epochs=7") == 0
    run, whole = tmp_path / "run", tmp_path / "whole"
    paths = sorted(path.relative_to(whole) for path in whole.glob("seed*/*.ckpt"))
    assert len(paths) == (2 if schedule == "none" else 4)
    for path in paths:
        found, expected = read_checkpoint(run / path), read_checkpoint(whole / path)
        for checkpoint in (found, expected):
            for name in ("seconds", "processor_seconds"):
                checkpoint.pop(name, None)
        assert same(found, expected), path
    for name in ("config.yaml", "metrics.json"):
        assert (run / name).read_text() == (whole / name).read_text()
    logs = [sorted(each.glob("seed*/log.csv")) for each in (run, whole)]
    assert [p.read_text() for p in logs[0]] == [p.read_text() for p in logs[1]]


def test_what_cannot_be_extended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "run", "train.schedule=cosine") == 0
    longer = said(capsys, tmp_path, "train.schedule=cosine", "train.epochs=6", "--resume")
    assert "train.epochs: is 6, but the run" in longer
    assert "schedule, cosine, depends on that" in longer
    other = said(capsys, tmp_path, "train.schedule=none", "train.epochs=6", "--resume")
    assert "train.schedule: is 'none', but the run" in other


def test_fewer_epochs_than_were_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "run") == 0
    assert "train.epochs: is 3, but the run in" in said(
        capsys, tmp_path, "train.epochs=3", "--resume"
    )
    assert "train.patience: is 3, but the run in" in said(
        capsys, tmp_path, "train.patience=3", "--resume"
    )


def test_a_run_out_of_patience(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    how = ("train.learning_rate=0.5", "train.epochs=30")
    assert train(tmp_path, "run", *how, "train.patience=2") == 0
    path = next((tmp_path / "run").glob("seed*/last.ckpt"))
    stopped = read_checkpoint(path)["epoch"]
    assert stopped < 30
    capsys.readouterr()
    assert train(tmp_path, "run", *how, "train.patience=2", "train.epochs=40", "--resume") == 0
    assert "as train.patience is 2; a larger one goes on" in capsys.readouterr().out
    assert read_checkpoint(path)["epoch"] == stopped
    assert train(tmp_path, "run", *how, "train.patience=30", "train.epochs=40", "--resume") == 0
    assert read_checkpoint(path)["epoch"] > stopped


# ------------------------------------------------------------------ metrics.json


def cell(mean: float | None) -> dict:
    return {"mean": mean, "deviation": None, "values": [mean]}


def test_good_results_are_not_replaced_by_worse_formed_ones(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    assert write_metrics(path, {"test": {"mae": cell(0.5), "r2": cell(None)}}) == ""
    before = path.read_text()
    for worse in ({"mae": cell(float("nan"))}, {"mae": cell(None)}, {"mse": cell(1.0)}):
        with pytest.raises(ValueError, match=r"has test mae 0\.5, which is .* left as it is") as e:
            write_metrics(path, {"validation": {"mae": cell(1.0)}, "test": worse})
        assert "\n" not in str(e.value)
        assert path.read_text() == before
    write_metrics(path, {"train": {"mae": cell(float("inf"))}})  # there was nothing better
    write_metrics(path, {"test": {"mae": cell(0.4), "r2": cell(None)}})
    found = json.loads(path.read_text())
    assert found["test"]["mae"]["mean"] == 0.4
    assert found["train"]["mae"]["mean"] is None
    path.write_text("[1, 2")
    assert "was damaged" in write_metrics(path, {"test": {"mae": cell(0.4)}})
    assert json.loads(path.read_text()).keys() == {"test"}
