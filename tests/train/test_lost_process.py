"""A process that is gone is named in one line."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._lost_process import lost, naming_lost_processes
from trainings import SMALL, start, start_two


def ended(code: int | None) -> SimpleNamespace:
    def wait(timeout: float) -> int:
        if code is None:
            raise subprocess.TimeoutExpired("symgnn", timeout)
        return code

    return SimpleNamespace(wait=wait)


@pytest.mark.parametrize(
    ("world", "rank", "codes", "expected"),
    [
        (2, 0, [-9], "process 1 (SIGKILL) of 2 was lost"),
        (4, 0, [None, 1, None], "process 2 (exit code 1) of 4 was lost"),
        (2, 1, [], "process 0 of 2 was lost"),
        (3, 1, [], "one of the 3 processes was lost (not process 1)"),
    ],
)
def test_who_was_lost(world: int, rank: int, codes: list, expected: str) -> None:
    text = lost(world, rank, [ended(code) for code in codes])  # type: ignore[arg-type]
    assert text.startswith(f"train.devices: {expected}; the same command with --resume goes on")


def test_other_errors_are_not_taken_for_it() -> None:
    alone = SimpleNamespace(world_size=1, global_rank=0, strategy=SimpleNamespace())
    together = SimpleNamespace(world_size=2, global_rank=0, strategy=SimpleNamespace())
    for trainer, text in ((alone, "gloo: Connection closed by peer"), (together, "mat1 and mat2")):
        with pytest.raises(RuntimeError, match=text.split()[0]), naming_lost_processes(trainer):
            raise RuntimeError(text)
    with (
        pytest.raises(ValueError, match="process 1 of 2 was lost"),
        naming_lost_processes(together),
    ):
        raise RuntimeError("gloo: Connection closed by peer [127.0.0.1]:1234")


@pytest.mark.parametrize("victim", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_killed_process(victim: int, tmp_path: Path) -> None:
    """The other ends with one line, and the run goes on afterwards."""
    config = {**SMALL, "train": {"epochs": 100_000, "batch_size": 2}}
    processes = start_two(config, tmp_path / "run")
    last = tmp_path / "run" / "seed-1" / "last.ckpt"
    while all(process.is_alive() for process in processes):
        if last.exists():
            break
        processes[0].join(0.01)
    processes[victim].kill()
    for process in processes:
        process.join()
    assert processes[1 - victim].exitcode == 2
    text = (tmp_path / f"error-{1 - victim}").read_text()
    assert text.startswith(f"train.devices: process {victim} of 2 was lost; the same command with")
    assert "--resume" in text
    assert "\n" not in text
    done = read_checkpoint(last)["epoch"]
    again = start({**config, "train": {"epochs": done + 1, "batch_size": 2}}, tmp_path / "run")
    again.join()
    assert again.exitcode == 0
    assert read_checkpoint(last)["epoch"] == done + 1
