"""The charged particles against EGNN's table, small."""

import json
from pathlib import Path

import pytest
import torch
from rich.console import Console

from symgnn.cli import main
from symgnn.data import load
from symgnn.experiments import run_experiment
from symgnn.experiments._dataset_runs import Trial
from symgnn.experiments._experiment import Protocol
from symgnn.experiments._nbody_protocol import NBODY
from symgnn.nn import build

pytestmark = pytest.mark.usefixtures("one_thread")
BLOCKS = [row.block for row in NBODY.rows]


def splits_of(block: str, limit: int = 4):
    return load("nbody", limit=limit, **NBODY.data_of_block.get(block, {}))


def test_results(tmp_path: Path) -> None:
    results = run_experiment(
        NBODY, tmp_path, seeds=2, epochs=3, limit=6, console=Console(quiet=True)
    )
    assert json.loads((tmp_path / "results.json").read_text()) == results
    assert [row["block"] for row in results["rows"]] == BLOCKS
    assert results["columns"] == ["n-body train MSE", "n-body test MSE"]
    theirs = {r["block"]: r["cells"]["n-body test MSE"]["paper_mean"] for r in results["rows"]}
    assert theirs == {"EGNN": 0.0071, "DGN": None, "CGN": None, "Combined": None, "GN": 0.0107}
    for row in results["rows"]:
        assert row["cells"]["n-body train MSE"]["paper_mean"] is None
        assert row["curve"]["test_epoch"] == [1, 2, 3]
        assert all(epoch in (1, 2, 3) for epoch in row["best_epochs"])
    assert all(isinstance(claim["holds"], bool) for claim in results["claims"])


def test_far_from_the_published_number_is_not_near() -> None:
    """Errors are far below 0.15, so that would call any network near."""
    column = NBODY.column("test")
    assert NBODY.cell("EGNN", column, [0.0080])["verdict"] == "within"
    assert NBODY.cell("EGNN", column, [0.0110])["verdict"] == "differs"
    assert NBODY.cell("DGN", column, [0.0080])["verdict"] == "new"


def test_the_published_protocol() -> None:
    protocol = NBODY.protocol("paper")
    assert (protocol.epochs, protocol.batch_size, protocol.epochs // protocol.points) == (
        10_000,
        100,
        5,
    )
    assert NBODY.learning_rate == 5e-4
    splits = splits_of("EGNN")
    ours = NBODY.make("EGNN", splits)
    egnn = build(
        "egnn", velocity=True, task="coordinates", node_features=1, edge_features=2, dimension=3
    )
    assert {k: v.shape for k, v in ours.state_dict().items()} == {
        k: v.shape for k, v in egnn.state_dict().items()
    }


@pytest.mark.parametrize("block", BLOCKS)
def test_what_moves_with_the_particles(block: str) -> None:
    """All but GN turn with the question, velocities among it; every one of them uses those."""
    torch.manual_seed(0)
    splits = splits_of(block)
    model, graph = NBODY.make(block, splits).double(), splits.test[0]
    graph = graph.apply(lambda value: value.double() if value.is_floating_point() else value)
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))[0]
    turned, straight = graph.clone(), graph.clone()
    for name in ("pos", "vel"):
        turned[name] = graph[name] @ turn
    straight.vel = torch.zeros_like(graph.vel)
    if block == "GN":  # reads them in its features
        turned.x = torch.cat([graph.x[:, :1], turned.vel], 1)
        straight.x = torch.cat([graph.x[:, :1], straight.vel], 1)
    out = model(graph)
    assert out.shape == graph.y.shape
    assert torch.allclose(model(turned), out @ turn, atol=1e-9) is (block != "GN")
    assert not torch.allclose(model(straight), out, rtol=0, atol=1e-6)
    assert ("E(n)" in str(model.symmetry)) is (block != "GN")


@pytest.mark.parametrize("block", BLOCKS)
def test_every_row_learns(block: str) -> None:
    trial = Trial(NBODY, block, splits_of(block, 20), Protocol(15, 1, 10, 1))
    losses = trial.train().losses
    assert (losses[-1] < 0.9 * losses[0]).all()


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["reproduce", "nbody", "--limit", "4", "--epochs", "1", "--seeds", "1", "--jobs", "1"]
    assert main([*call, "--rows", "egnn", "--rows", "dgn", "--out", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "EGNN's paper 0.00710" in out
    assert "at the lowest validation error within 1 epoch" in out
    assert "not checked: DGN is below GN" in out
    page = (tmp_path / "nbody" / "report.html").read_text()
    assert "What is claimed" in page
    assert "Radial Field 0.0104" in page
    assert main(["reproduce", "nbody", "--source", "sample", "--out", str(tmp_path)]) == 2
    assert "source: is not an option of nbody" in capsys.readouterr().err
