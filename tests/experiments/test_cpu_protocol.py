"""The protocol "cpu": trainings that were killed go on, errors of test sets, tours."""

import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch_geometric.data import Data

from symgnn.cli import main
from symgnn.data import load
from symgnn.experiments import EXPERIMENTS, run_experiment
from symgnn.experiments._experiment import NetworkRow, Protocol
from symgnn.experiments._tables import choose_rows
from symgnn.experiments._test_residuals import graph_residuals, judged
from symgnn.experiments._tour_baseline import nearest_edges, nearest_f1
from symgnn.experiments._trial import Trial
from symgnn.report._run_log import read_log
from symgnn.store import read_json
from symgnn.train import Ensemble
from symgnn.train._loader import Batches, loader

QUIET = Console(quiet=True)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", ["mnist", "cifar10", "tsp", "qm9"])
def test_sizes_of_the_protocol(name: str) -> None:
    protocol = EXPERIMENTS[name].protocol("cpu")
    least = {"mnist": (5, 55_000), "cifar10": (15, 10_000), "tsp": (20, 2_000), "qm9": (16, None)}
    assert protocol.seeds == 2
    assert (protocol.epochs, protocol.limit and protocol.limit[0]) == least[name]
    assert protocol.points >= protocol.epochs  # saved after every epoch


def test_one_reading_for_all() -> None:
    """No state, weights that keep the variance, sums over their average number of terms."""
    for name in ("mnist", "tsp", "qm9"):
        splits = load(name, source="sample")
        model = EXPERIMENTS[name].make("DGN", splits)
        assert model.averages is not None
        assert not any("graph" in block.updates for block in model.blocks)
        other = EXPERIMENTS[name].make("DGN", splits, "torch")
        assert other.averages is None
        stateful = EXPERIMENTS[name].make("DGN", splits, "state")
        assert all("graph" in block.updates for block in stateful.blocks[:-1])


def test_rows_by_another_reading_are_run_if_they_are_named() -> None:
    rows = EXPERIMENTS["tsp"].all_rows

    def chosen(*words: str) -> list[str]:
        return [row.label for row in choose_rows("tsp", rows, words)]

    assert chosen("gn", "dgn sum") == ["GN", "DGN"]
    assert chosen("gn torch") == ["GN, torch"]
    assert chosen("agn", "agn state", "combined") == ["AGN", "Combined", "AGN, state"]


@pytest.mark.parametrize("name", ["mnist", "cifar10", "tsp", "qm9"])
def test_separable_blocks_are_rows(name: str) -> None:
    experiment = EXPERIMENTS[name]
    (row,) = choose_rows(name, experiment.all_rows, ["agn-separable"])
    model = experiment.make(row.block, load(name, source="sample"))
    assert model.layers == experiment.layers - 1  # as AGN


def test_a_row_by_another_reading(tmp_path: Path) -> None:
    results = run_experiment(
        EXPERIMENTS["qm9"],
        tmp_path,
        rows=[NetworkRow("GN", "sum"), NetworkRow("GN", "sum", "identity", "torch")],
        seeds=1,
        epochs=1,
        limit=3,
        source="sample",
        console=QUIET,
    )
    assert [row["block"] for row in results["rows"]] == ["GN", "GN, torch"]
    assert set(results["rows"][0]["curve"]["targets"]) == set(results["units"])
    row = results["rows"][0]
    assert row["cells"]["QM9 test MAE gap"]["test_error"] > 0
    # energies in meV, as published: between a third of the root mean square and the whole of it
    assert (results["units"]["gap"], results["units"]["mu"]) == ("meV", "debye")
    for name, unit in (("gap", 27_211.386), ("zpve", 27_211.386), ("mu", 1.0)):
        deviation = results["data"]["std"][list(results["units"]).index(name)]
        root = unit * deviation * row["curve"]["targets"][name]["mean"][-1] ** 0.5
        assert root / 3 < row["cells"][f"QM9 test MAE {name}"]["mean"] <= root
    assert {peer["name"] for peer in results["peers"]} == {"SchNet", "DimeNet++", "EGNN"}
    assert all(set(peer["cells"]) < set(results["columns"]) for peer in results["peers"])


def test_a_row_with_the_features_of_pyg(tmp_path: Path) -> None:
    row = NetworkRow("DGN", "sum", "identity", "pyg")
    options = {"seeds": 1, "epochs": 1, "limit": 3, "source": "sample", "console": QUIET}
    plain, pyg = (
        run_experiment(EXPERIMENTS["qm9"], tmp_path / each.reading, rows=[each], **options)
        for each in (NetworkRow("DGN", "sum"), row)
    )
    wider = pyg["rows"][0]["parameters"] - plain["rows"][0]["parameters"]
    assert wider > 0
    assert wider % 6 == 0  # 11 features in place of 5, wherever nodes are read


_CALL = ["reproduce", "mnist", "--source", "sample", "--rows", "dgn", "--jobs", "1", "--seeds", "2"]
#: Runs the command and kills its own process while it saves the third epoch: best.ckpt and log.csv
#: are written, last.ckpt is not.
_DIES = """
import os, signal, sys
from symgnn.cli import main
from symgnn.train import _checkpointing
write = _checkpointing.write_checkpoint
def dies(path, content):
    if path.name == "last.ckpt" and content["epoch"] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, content)
_checkpointing.write_checkpoint = dies
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_process_goes_on_within_a_row(tmp_path: Path) -> None:
    """SIGKILL in a row; the next process ends with the weights of one that was not killed."""
    call = [*_CALL, "--epochs", "5", "--out", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = subprocess.run(
        [sys.executable, "-c", _DIES, *call], env=environment, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    folder = tmp_path / "mnist" / "training" / "DGN-sum-identity"
    done = read_log(folder / "log.csv")
    assert [row["epoch"] for row in done] == [1, 1, 2, 2, 3, 3]
    assert not (tmp_path / "mnist" / "results.json").exists()
    trained: list[int] = []
    real = Ensemble.gradients

    def counted(self: Ensemble, loss: Any, batch: Any, scale: float = 1.0) -> torch.Tensor:
        trained.append(len(batch.y))
        return real(self, loss, batch, scale)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ensemble, "gradients", counted)
        assert main(call) == 0
    graphs = len(load("mnist", source="sample").train)
    assert sum(trained) == 3 * graphs  # epochs 3, 4 and 5; two were saved whole
    log = read_log(folder / "log.csv")
    assert log[:6] == done
    found = read_json(tmp_path / "mnist" / "results.json")["rows"][0]
    (whole,) = run_experiment(
        EXPERIMENTS["mnist"],
        tmp_path / "whole",
        rows=[NetworkRow("DGN", "sum")],
        seeds=2,
        epochs=5,
        source="sample",
        console=QUIET,
    )["rows"]
    assert found["cells"] == whole["cells"]
    assert found["curve"]["test_mean"] == whole["curve"]["test_mean"]
    for row in (found, whole):
        assert row["processor_seconds"] > 0
        assert row["seconds"] > row["training_seconds"] > 0


def test_a_checkpoint_of_other_settings_is_not_used(tmp_path: Path) -> None:
    splits = load("qm9", source="sample")
    written = []
    for rate in (1, 1, 2):
        trial = Trial(EXPERIMENTS["qm9"], "DGN", splits, Protocol(2, 1, 4, 2))
        seen: list[int] = []
        trained = trial.train(partial(_note, seen), tmp_path / "row", {"rate": rate})
        assert seen == [0, 1]  # those that were done before are counted too
        assert trained.losses.shape == (2, 1)
        written.append((tmp_path / "row" / "last.ckpt").stat().st_mtime_ns)
    assert written[0] == written[1] < written[2]


def _note(seen: list[int], epoch: int, losses: torch.Tensor) -> None:
    seen.append(epoch)


@pytest.mark.parametrize(
    ("name", "metric"), [("mnist", "accuracy"), ("tsp", "f1"), ("qm9", "loss")]
)
def test_residuals_give_the_score_and_its_error(name: str, metric: str) -> None:
    """The standard error against the jackknife: the score without each graph in turn."""
    splits = load(name, source="sample")
    trial = Trial(EXPERIMENTS[name], "DGN", splits, Protocol(3, 1, 4, 1))
    trial.add("test", [splits.train[k] for k in range(len(splits.train))])
    trial.train()
    assert trial.trained is not None
    ensemble, graphs = trial.trained.ensemble, trial.graphs["test"]
    residuals = trial.residuals("test")
    n = len(graphs)
    assert residuals.shape == (n,)
    assert abs(float(residuals.mean())) < 1e-6
    scores = []
    for left_out in range(n):
        kept = [splits.train[k] for k in range(n) if k != left_out]
        trial.add("part", kept)
        scores.append(float(trial.measure("part")[metric][0]))
    scores_ = torch.tensor(scores, dtype=torch.float64)
    jackknife = ((n - 1) / n * (scores_ - scores_.mean()).square().sum()).sqrt()
    error = residuals.double().std() / n**0.5
    # both are first-order estimates; they differ by the variation of the denominators over n
    assert float(error) == pytest.approx(float(jackknife), rel=0.35, abs=1e-6)
    one_by_one = loader(graphs, Batches(n, 1), ensemble.topology)
    again = graph_residuals(judged(ensemble, one_by_one, trial.judge), trial.judge, metric)
    assert torch.allclose(again, residuals, atol=1e-5)


def test_nearest_neighbours_of_a_line() -> None:
    pos = torch.tensor([[0.0, 0], [1, 0], [3, 0], [6, 0]])
    edges = torch.tensor([[i, j] for i in range(4) for j in range(4) if i != j]).T
    chosen = nearest_edges(pos, edges, 2)
    found = {(int(i), int(j)) for i, j in edges.T[chosen]}
    assert found == {(1, 0), (2, 0), (0, 1), (2, 1), (1, 2), (0, 2), (2, 3), (1, 3)} - {(0, 2)} | {
        (3, 2) if abs(6 - 3) < abs(3 - 0) else (0, 2)
    }
    # a tour 0 1 2 3: edges both ways; of the 8 chosen those between neighbours on it are hits
    y = ((edges[0] - edges[1]).abs() == 1) | ((edges[0] - edges[1]).abs() == 3)
    graph = Data(pos=pos, edge_index=edges, y=y.long())
    hits = sum(abs(i - j) in (1, 3) for i, j in found)
    assert nearest_f1([graph]) == pytest.approx(2 * hits / (8 + 8))


def test_tours_have_a_second_test_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = resources.files("symgnn.data") / "samples" / "tsp50-500_test.txt"
    (tmp_path / "data" / "tsp").mkdir(parents=True)
    (tmp_path / "data" / "tsp" / "tsp50-500_test.txt").write_text(sample.read_text())
    monkeypatch.setenv("SYMGNN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options: dict[str, Any] = {"seeds": 1, "epochs": 1, "limit": 2, "console": QUIET}
    rows = [NetworkRow("GN", "sum")]
    results = run_experiment(EXPERIMENTS["tsp"], tmp_path / "a", rows=rows, **options)
    assert results["columns"] == ["TSP train F1", "TSP test F1", "TSP benchmark test F1"]
    assert set(results["baselines"]) == {"TSP test F1", "TSP benchmark test F1"}
    assert all(0.5 < score < 0.9 for score in results["baselines"].values())
    shutil.rmtree(tmp_path / "data")
    results = run_experiment(EXPERIMENTS["tsp"], tmp_path / "b", rows=rows, **options)
    assert results["columns"] == ["TSP train F1", "TSP test F1"]


def test_superpixels_without_validation() -> None:
    usual, whole = (load("cifar10", source="sample", validation=v) for v in (None, 0))
    assert len(whole.validation) == 0
    assert len(whole.train) == len(usual.train) + len(usual.validation)
    assert torch.equal(whole.train[0].pos, usual.validation[0].pos)
    with pytest.raises(ValueError, match=r"^validation: 50000 leaves no training graphs"):
        load("cifar10", source="sample", validation=50_000)
