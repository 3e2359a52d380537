"""Fixtures of the tests of training."""

from pathlib import Path

import pytest

import symgnn
from symgnn.data import sample
from symgnn.train._trained_run import Run
from train.given_cases import trained


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {"path": str(sample("molecules")), "targets": "targets.csv", "columns": "boiling_point"}
    folder = tmp_path_factory.mktemp("molecules")
    return trained(folder, data, epochs=15, learning_rate=0.1, batch_size=4)  # so that it sees size


@pytest.fixture
def run(directory: Path) -> Run:
    return symgnn.load(directory)
