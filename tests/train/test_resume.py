"""A run that is killed goes on to the weights that it would have had, to the last bit."""

import random
import signal
from pathlib import Path

import pytest
import torch

from symgnn.train._checkpoint import read_checkpoint
from trainings import SMALL, start


def finished(config: dict, out: Path) -> Path:
    process = start(config, out)
    process.join()
    assert process.exitcode == 0
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody interrupts."""
    return finished(SMALL, tmp_path_factory.mktemp("whole") / "run")


def equal(first: object, second: object) -> bool:
    """Whether two states are the same in every bit."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)  # type: ignore[arg-type]
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[k], second[k]) for k in first)  # type: ignore[attr-defined, index]
    if isinstance(first, list):
        return len(first) == len(second) and all(map(equal, first, second))  # type: ignore[arg-type]
    return first == second


def check_same(run: Path, whole: Path) -> None:
    logs = sorted(path.relative_to(whole) for path in whole.glob("seed*/log.csv"))
    assert logs
    for log in logs:
        assert (run / log).read_text() == (whole / log).read_text()
        for name in ("best.ckpt", "last.ckpt"):
            found, expected = (read_checkpoint((r / log).parent / name) for r in (run, whole))
            for checkpoint in (found, expected):
                for name in ("seconds", "processor_seconds"):
                    checkpoint.pop(name, None)
            assert equal(found, expected), f"{log.parent}/{name}"
    assert (run / "metrics.json").read_text() == (whole / "metrics.json").read_text()
    assert not list(run.glob("seed*/.*"))  # nothing half-written is left


#: The n-th file that a process writes: config, record, then best, last, best, last, ...
CRASHES = [("half", 1), ("written", 2), ("renamed", 3), ("half", 3), ("half", 4), ("renamed", 4)]
CRASHES += [("written", 5), ("renamed", 5)]


def test_killed_while_writing(whole: Path, tmp_path: Path) -> None:
    for crash in CRASHES:
        process = start(SMALL, tmp_path / "run", crash)
        process.join()
        assert process.exitcode == -signal.SIGKILL, crash
    check_same(finished(SMALL, tmp_path / "run"), whole)


def test_killed_at_random_moments(whole: Path, tmp_path: Path) -> None:
    killed_at_random_moments(SMALL, whole, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"together": False}, {"schedule": "plateau", "plateau_patience": 1}, {"precision": "64"}],
    ids=str,
)
def test_killed_often(changes: dict, tmp_path: Path) -> None:
    config = {**SMALL, "train": {**SMALL["train"], "epochs": 12, **changes}}
    whole = finished(config, tmp_path / "whole")
    for count in range(1, 12):
        for moment in ("half", "written", "renamed"):
            start(config, tmp_path / "run", (moment, count)).join()
    check_same(finished(config, tmp_path / "run"), whole)
    killed_at_random_moments(config, whole, tmp_path / "random")


def killed_at_random_moments(config: dict, whole: Path, run: Path) -> None:
    """Each process does an epoch or two, and is killed a moment later."""
    moments = random.Random(0)
    kills = 0
    for _ in range(5):
        process, done = start(config, run), logged(run) + moments.randint(0, 2)
        while process.is_alive() and logged(run) < done:
            process.join(0.001)
        process.join(moments.uniform(0, 0.05))
        process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
    assert kills >= 3
    check_same(finished(config, run), whole)


def logged(run: Path) -> int:
    """How many validations are in the logs."""
    seeds = SMALL["train"]["seeds"]
    return (
        sum(len(path.read_text().splitlines()) - 1 for path in run.glob("seed*/log.csv")) // seeds
    )
