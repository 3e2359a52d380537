"""The page of a training run."""

import json
from pathlib import Path

import pytest

from symgnn.report._run_page import metrics_table, write_run_report
from symgnn.report.figures._run_curves import run_curves

CELL = {"mean": 0.25, "deviation": 0.01, "values": [0.24, 0.26]}
TASK = {"level": "graph", "kind": "regression", "targets": ["gap<b>"], "units": ["eV"]}
RECORD = {
    "task": TASK,
    "seeds": [1, 2],
    "model": "DGN(layers=2), invariant to E(n)",
    "counts": {"train": 1200, "validation": 5, "test": 7},
    "parameters": 3020,
    "symmetry": "E(n)",
    "code": "abc",
    "environment": {"torch": "2"},
}


def log(epochs: int) -> str:
    rows = [f"{e},{s},0.1,{1 / e + s},{2 / e}" for e in range(1, epochs + 1) for s in (1, 2)]
    return "\n".join(["epoch,seed,learning_rate,train_loss,validation_loss", *rows, "9,1,0."])


def written(out: Path, epochs: int = 5) -> str:
    (out / "seeds-1-2").mkdir()
    (out / "seeds-1-2" / "log.csv").write_text(log(epochs))
    (out / "run.json").write_text(json.dumps(RECORD))
    (out / "metrics.json").write_text(json.dumps({"test": {"loss": CELL, "mae": CELL}}))
    (out / "config.yaml").write_text("data: {name: <script>}\n")
    return write_run_report(out).read_text()


def test_the_page_says_what_was_reached(tmp_path: Path) -> None:
    text = written(tmp_path)
    for part in ("0.25±0.01", "mae [eV]", "1,200 train", "3,020", "E(n)", "data:image/png"):
        assert part in text
    assert "<script>" not in text
    assert "gap<b>" not in text  # all text is escaped
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_a_run_without_a_log_has_a_page(tmp_path: Path) -> None:
    assert "data:image/png" not in written(tmp_path, epochs=0)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no run that was measured"):
        write_run_report(tmp_path)


def test_curves_have_a_panel_for_each_number() -> None:
    rows = [
        {"epoch": 1.0, "seed": 1.0, "train_loss": 1.0, "validation_loss": 2.0, "validation_f1": 0.0}
    ]
    figure = run_curves(rows)
    assert [axes.get_title() for axes in figure.axes] == ["loss", "f1"]


def test_units_are_beside_the_numbers() -> None:
    task = {"targets": ["energy", "charge"], "units": ["eV", ""]}
    names = ("loss", "mae energy", "mse energy", "mae charge")
    table = metrics_table({"test": dict.fromkeys(names, CELL)}, task)
    shown = [str(cell) for cell in table.columns[0].cells]
    assert shown == ["loss", "mae energy [eV]", "mse energy [(eV)²]", "mae charge"]
