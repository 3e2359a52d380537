"""The experiments on datasets, on the samples that come with symgnn."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from symgnn.cli import main
from symgnn.data import load
from symgnn.experiments import EXPERIMENTS, run_experiment, run_step_time
from symgnn.experiments import _dataset_runs as dataset_runs
from symgnn.experiments import _paper as paper
from symgnn.experiments._claims import Claim, Goal
from symgnn.experiments._experiment import NetworkRow, Protocol
from symgnn.experiments._test_residuals import with_test_error
from symgnn.experiments._trial import Trial
from symgnn.report._page import page
from symgnn.train import Ensemble

QUIET = Console(quiet=True)
SAMPLED = [name for name in EXPERIMENTS if name != "nbody"]  # which is simulated
pytestmark = pytest.mark.usefixtures("one_thread")


def small(name: str, out: Path, *blocks: str, **options: Any) -> dict:
    settings = {"seeds": 2, "epochs": 2, "source": "sample", **options}
    rows = [NetworkRow(block, "sum") for block in blocks]
    return run_experiment(EXPERIMENTS[name], out, rows=rows or None, console=QUIET, **settings)


@pytest.mark.parametrize("name", SAMPLED)
def test_results_have_the_agreed_form(name: str, tmp_path: Path) -> None:
    experiment = EXPERIMENTS[name]
    blocks = ["AGN", "DGN", "GN"] + ["CGN", "Combined"] * (name == "qm9")
    results = small(name, tmp_path, *blocks, limit=1)
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert [row["block"] for row in results["rows"]] == blocks
    assert results["columns"][:2] == [experiment.column("train"), experiment.column("test")]
    assert results["data"]["scale"] == load(name, source="sample").scale
    for row in results["rows"]:
        assert row["curve"]["test_epoch"] == [1, 2]
        assert list(row["cells"]) == results["columns"]
        for cell in row["cells"].values():
            assert len(cell["values"]) == 2
    last = results["rows"][0]["curve"]["test_mean"][-1]
    assert results["rows"][0]["cells"][experiment.column("test")]["mean"] == pytest.approx(last)
    names = [claim["claim"] for claim in results["claims"]]
    assert len(names) >= len(experiment.claims) + len(experiment.goals)
    assert {claim["holds"] for claim in results["claims"]} <= {True, False, "undecided", None}


@pytest.mark.parametrize("name", ["mnist", "cifar10", "tsp"])
def test_the_papers_numbers_are_found(name: str) -> None:
    for split in ("train", "test"):
        column = EXPERIMENTS[name].column(split)
        for block in ("AGN", "DGN", "GN"):
            assert paper.cell("benchmarks", block, "", "identity", column)["mean"] is not None


@pytest.mark.parametrize("name", SAMPLED)
def test_networks_are_about_as_large(name: str) -> None:
    """As in the paper, whose AGN has one layer less."""
    splits = load(name, source="sample")
    sizes = {
        row.block: sum(p.numel() for p in EXPERIMENTS[name].make(row.block, splits).parameters())
        for row in EXPERIMENTS[name].rows
    }
    assert max(sizes.values()) < 1.25 * min(sizes.values()), sizes


def test_the_protocol_of_the_paper() -> None:
    for name, batch in (("mnist", 128), ("cifar10", 128), ("tsp", 8), ("qm9", 512)):
        experiment = EXPERIMENTS[name]
        protocol = experiment.protocol("paper")
        epochs, rate = (1000, 5e-4) if name == "qm9" else (100, 1e-3)
        assert (protocol.epochs, protocol.seeds, protocol.batch_size) == (epochs, 10, batch)
        assert protocol.limit is None
        assert experiment.learning_rate == rate


def test_the_networks_of_the_paper() -> None:
    """On QM9: MLPs with two hidden layers of 128, one in the read-out; a mean over the nodes."""
    splits = load("qm9", source="sample")
    model = EXPERIMENTS["qm9"].make("DGN", splits)
    assert (model.layers, EXPERIMENTS["qm9"].make("AGN", splits).layers) == (4, 3)
    widths = {p.shape[0] for name, p in model.named_parameters() if name.endswith("weight")}
    assert widths == {128, splits.task.outputs}
    for blocks, hidden in ((model.blocks, 2), (model.readouts, 1)):
        for update in (u for block in blocks for u in block.updates.values()):
            assert len(update.phi.linears) == hidden + 1


def test_it_learns_and_measures_without_dropout() -> None:
    experiment, splits = EXPERIMENTS["qm9"], load("qm9", source="sample")
    trial = Trial(experiment, "DGN", splits, Protocol(20, 2, 14, 1))
    before = trial.train().losses[0]
    after, again = trial.measure("train"), trial.measure("train")
    assert torch.equal(after["loss"], again["loss"])
    assert (after["loss"] < 0.98 * before).all()  # it stays near 1 for the first ten steps


def test_blocks_and_seeds_see_the_same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = load("mnist", source="sample")
    real, seen = Ensemble.gradients, []

    def noted(self: Ensemble, loss: Any, batch: Any, scale: float = 1.0) -> torch.Tensor:
        seen.append(batch.y.tolist())
        return real(self, loss, batch, scale)

    monkeypatch.setattr(Ensemble, "gradients", noted)
    found = []
    for block, seeds in (("GN", 1), ("DGN", 2)):
        seen.clear()
        Trial(EXPERIMENTS["mnist"], block, splits, Protocol(2, seeds, 3, 1)).train()
        found.append(list(seen))
    assert found[0] == found[1]
    half = len(found[0]) // 2
    assert found[0][:half] != found[0][half:]  # each epoch has its own order


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, ran = dataset_runs.run_row, []

    def dies_at_the_second(settings: Any, row: NetworkRow, *rest: Any) -> dict:
        ran.append(row.block)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return real(settings, row, *rest)

    monkeypatch.setattr(dataset_runs, "run_row", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        small("tsp", tmp_path, "DGN", "GN", epochs=1)
    assert not (tmp_path / "results.json").exists()
    small("tsp", tmp_path, "DGN", "GN", epochs=1)
    assert ran == ["DGN", "GN", "GN"]
    small("tsp", tmp_path, "DGN", "GN", epochs=1, seeds=1)  # other settings are run anew
    assert ran == ["DGN", "GN", "GN", "DGN", "GN"]


def _row(block: str, *values: float, curve: Sequence[float] = ()) -> dict[str, Any]:
    found = {"test_epoch": list(range(1, len(curve) + 1)), "test_mean": list(curve)}
    return {"block": block, "cells": {"test": {"values": list(values)}}, "curve": found}


def test_claims() -> None:
    rows = [_row("GN", 0.9, 0.8), _row("DGN", 0.5, 0.6)]
    found = Claim("GN", "above", "DGN").check(rows, "test")
    assert found["holds"] is True
    assert "+0.3000±0.1000" in found["found"]
    assert Claim("GN", "below", "DGN").check(rows, "test")["holds"] is False
    # what another test set would do counts too: residuals whose differences deviate by 1.6
    for row, sign in zip(rows, (1, -1), strict=True):
        row["residuals"] = {"test": [0.8 * sign, -0.8 * sign] * 32}
    found = Claim("GN", "above", "DGN").check(rows, "test")
    assert found["holds"] == "undecided"
    error = (0.1**2 + 1.6**2 * 64 / 63 / 64) ** 0.5
    assert f"+0.3000±{error:.4f}" in found["found"]
    # and without residuals the errors of both test sets, as if they were two
    for row in rows:
        del row["residuals"]
        row["cells"]["test"]["test_error"] = 0.2
    assert (
        f"±{(0.1**2 + 2 * 0.2**2) ** 0.5:.4f}"
        in Claim("GN", "above", "DGN").check(rows, "test")["found"]
    )
    assert Claim("DGN", "above", "AGN").check(rows, "test")["holds"] is None


def test_goals() -> None:
    rows = [_row("GN", 0.96, 0.95)]
    assert Goal("GN", 0.955).check(rows, "test", "accuracy")["holds"] is True
    assert Goal("GN", 0.956).check(rows, "test", "accuracy")["holds"] is False
    assert Goal("GN", 0.956).check(rows, "test", "loss")["holds"] is True
    assert Goal("AGN", 0.5).check(rows, "test")["holds"] is None


@pytest.mark.parametrize(
    ("curve", "holds"),
    [((0.9, 0.3, 0.2), True), ((0.9, 0.9, 0.3), False), ((0.9, 0.9, 0.9), False)],
)
def test_sooner(curve: tuple[float, ...], holds: bool) -> None:
    rows = [_row("GN", curve=(0.9, 0.8, 0.5)), _row("DGN", curve=curve)]
    assert Claim("DGN", "sooner than", "GN").check(rows, "test")["holds"] is holds
    rising = [_row(r["block"], curve=[1 - v for v in r["curve"]["test_mean"]]) for r in rows]
    assert Claim("DGN", "sooner than", "GN").check(rising, "test", "accuracy")["holds"] is holds


def test_step_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "symgnn.experiments._step_time.CPU_BATCH", {**dict.fromkeys(_LARGE, 1), "CIFAR10": 3}
    )
    results = run_step_time(tmp_path, rounds=1, console=QUIET)
    assert json.loads((tmp_path / "results.json").read_text()) == results
    # the sample has two images to train on, so one is in the batch twice
    assert results["batch_size"]["CIFAR10"] == 3
    rows = {row["block"]: row["cells"] for row in results["rows"]}
    assert set(rows["AGN"]) == set(results["columns"]) == {*_LARGE, *_POLYTOPES}
    assert all(cell["mean"] == 1 for cell in rows["GN"].values())
    assert rows["AGN"]["TSP"]["paper_mean"] == pytest.approx(35 / 14)
    assert rows["SDGN"]["TSP"]["paper_mean"] is None


_LARGE = ("MNIST", "CIFAR10", "TSP", "QM9")
_POLYTOPES = ("polytopes n=3", "polytopes n=4", "polytopes n=5")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["reproduce", "qm9", "--source", "sample", "--limit", "3", "--epochs", "1"]
    rows = ["--rows", "gn", "--rows", "dgn", "--jobs", "1", "--seeds", "1"]
    assert main([*call, *rows, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "DGN is below GN in QM9 test MSE" in " ".join(out.split())
    assert "not checked: AGN is below GN" in " ".join(out.split())
    assert "parameters" in out
    page = (tmp_path / "qm9" / "report.html").read_text()
    assert "What the paper claims" in page
    assert (tmp_path / "qm9" / "figures" / "test.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mnist", "--rows", "egnn"], "no row of mnist is 'egnn'"),
        (["mnist", "--limit", "0"], "--limit: is 0"),
        (["mnist", "--node-features"], "--node-features: is not an option of this experiment"),
        (["polytopes-3d", "--source", "sample"], "--source: is not an option of this experiment"),
        (["step-time", "--seeds", "2"], "--seeds: is not an option of this experiment"),
        (["mnist", "--source", "nowhere"], "nowhere: is not there"),
    ],
)
def test_wrong_calls(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_rows_of_an_earlier_record_are_joined(tmp_path: Path) -> None:
    options = {"epochs": 1}
    first = small("mnist", tmp_path / "first", "GN", **options)
    record = tmp_path / "first" / "results.json"
    first["environment"]["commit"] = first["rows"][0]["commit"] = "before"
    record.write_text(json.dumps(first))
    both = small("mnist", tmp_path / "second", "AGN", "DGN", join=[record], **options)
    assert [row["block"] for row in both["rows"]] == ["GN", "DGN", "AGN"]  # the experiment's order
    assert both["rows"][0]["commit"] == "before" != both["rows"][1]["commit"]
    assert both["rows"][0]["cells"] == first["rows"][0]["cells"]
    # judged with the errors of both test sets, as if these were two
    column = EXPERIMENTS["mnist"].column("test")
    cells = [row["cells"][column] for row in both["rows"][:2]]
    between = [x - y for x, y in zip(*(cell["values"] for cell in cells), strict=True)]
    squares = (between[0] - between[1]) ** 2 / 4 + sum(c["test_error"] ** 2 for c in cells)
    assert f"±{squares**0.5:.4f}" in both["claims"][0]["found"]
    # a row that is run again replaces the joined one
    again = small("mnist", tmp_path / "third", "GN", join=[record], **options)
    assert [row["commit"] == "before" for row in again["rows"]] == [False]
    assert "GN (before)" in page(both, [])


def test_only_missing_rows_are_run_beside_joined_ones(tmp_path: Path) -> None:
    options = {"limit": 1, "epochs": 1, "seeds": 1}
    small("mnist", tmp_path / "first", "GN", "DGN", "AGN", "SDGN", **options)
    found = small("mnist", tmp_path / "second", join=[tmp_path / "first/results.json"], **options)
    assert [row["block"] for row in found["rows"]] == ["GN", "DGN", "AGN", "SDGN", "AGN-separable"]
    parts = (tmp_path / "second" / "rows").iterdir()
    assert [part.name for part in parts] == ["AGN-separable-sum-identity.json"]


def test_a_record_without_errors_of_its_test_set() -> None:
    row = _row("GN", 0.9, 0.9)
    row["cells"]["test"]["mean"] = 0.9
    found = with_test_error(row, "test", "accuracy", 100)
    assert found["cells"]["test"]["test_error"] == pytest.approx(0.03)
    assert "test_error" not in row["cells"]["test"]
    with pytest.raises(ValueError, match="GN has no test_error of test; run it again"):
        with_test_error(row, "test", "f1", 100)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "mnist"}, "has name 'mnist', not 'tsp'"),
        ({"settings": {"epochs": 7}}, "has settings {'epochs': 7}, not"),
        ({"rows": None}, "is no results.json"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(
    change: dict, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"limit": 1, "epochs": 1, "seeds": 1}
    record = small("tsp", tmp_path / "first", "GN", **options) | change
    file = tmp_path / "results.json"
    file.write_text(json.dumps(record))
    call = ["reproduce", "tsp", "--limit", "1", "--epochs", "1", "--seeds", "1", "--rows", "gn"]
    call += ["--source", "sample", "--join", str(file), "--out", str(tmp_path / "out")]
    assert main(call) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
