"""Two processes with the same global batch have the loss curve of one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from symgnn.report._run_log import read_log
from symgnn.train._checkpoint import read_checkpoint
from trainings import SMALL, start, start_two

#: Solids of 4 to 20 vertices; of 5, the last of 2 batches has one, so that a process has none.
CONFIG = {
    **SMALL,
    "model": {"block": "dgn", "hidden": 8, "layers": 1, "aggregation": "sum"},
    "train": {**SMALL["train"], "batch_size": 4, "precision": "64"},
}
#: Means over nodes, whose number differs between processes.
NODES = {
    **CONFIG,
    "data": {"name": "solids"},
}
#: Batches of two graphs, of which a process, or both, may have no label.
HOLES = {
    **CONFIG,
    "data": {"name": "solids", "holes": True},
    "train": {**CONFIG["train"], "batch_size": 2},
}


def check_same_curve(found: Path, expected: Path) -> None:
    rows, others = (read_log(next(run.glob("seed*/log.csv"))) for run in (found, expected))
    assert len(rows) == len(others) == CONFIG["train"]["epochs"] * CONFIG["train"]["seeds"]
    for row, other in zip(rows, others, strict=True):
        assert row == pytest.approx(other, rel=1e-9)
    states = [
        read_checkpoint(next(run.glob("seed*/last.ckpt")))["members"] for run in (found, expected)
    ]
    for state, other in zip(*states, strict=True):
        for name in other:
            torch.testing.assert_close(state[name], other[name], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("config", [CONFIG, NODES, HOLES], ids=["graphs", "nodes", "missing"])
def test_two_processes_train_as_one(config: dict, tmp_path: Path) -> None:
    processes = [start(config, tmp_path / "one"), *start_two(config, tmp_path / "two")]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    check_same_curve(tmp_path / "two", tmp_path / "one")
    assert (tmp_path / "two" / "metrics.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["fabric", "torchrun"])
def test_the_command_starts_two_processes(launcher: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    one, two = tmp_path / "one", tmp_path / "two"
    command = ["symgnn.cli", "train", str(config), "--out"]
    call = ["-m", *command, str(two), "--devices", "2"]
    if launcher == "torchrun":
        call = ["-m", "torch.distributed.run", "--nproc-per-node=2", "-m", *command, str(two)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for arguments in (["-m", *command, str(one)], call):
        subprocess.run([sys.executable, *arguments], check=True, env=environment)
    check_same_curve(two, one)
    assert (two / "report.html").exists()
