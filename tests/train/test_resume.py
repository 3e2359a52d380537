"""A run that is killed goes on to the weights that it would have had, to the last bit."""

import random
import signal
from pathlib import Path

import pytest
import torch

from symgnn.train.checkpoint import read_checkpoint
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
            found.pop("seconds", None)
            expected.pop("seconds", None)
            assert equal(found, expected), f"{log.parent}/{name}"
    assert (run / "metrics.json").read_text() == (whole / "metrics.json").read_text()
    assert not list(run.glob("seed*/.*"))  # nothing half-written is left


@pytest.mark.parametrize("moment", ["half", "written", "renamed"])
def test_killed_while_writing(moment: str, whole: Path, tmp_path: Path) -> None:
    """In each of the first ten files: config, record, then best and last of several epochs."""
    crashes = 0
    for count in range(1, 11):
        process = start(SMALL, tmp_path / "run", (moment, count))
        process.join()
        crashes += process.exitcode == -signal.SIGKILL
    assert crashes >= 4
    check_same(finished(SMALL, tmp_path / "run"), whole)


def test_killed_at_random_moments(whole: Path, tmp_path: Path) -> None:
    moments = random.Random(0)
    kills = 0
    for _ in range(40):
        process = start(SMALL, tmp_path / "run")
        process.join(moments.uniform(0.2, 1.5))
        process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
        if process.exitcode == 0:
            break
    assert kills >= 2
    check_same(finished(SMALL, tmp_path / "run"), whole)
