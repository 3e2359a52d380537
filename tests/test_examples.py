"""The examples, in small."""

import importlib.util
from pathlib import Path

import pytest
import torch

from symgnn.data import NBody
from symgnn.train._config import Config, read_config

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("one_thread")
def test_nbody_learns(tmp_path: Path) -> None:
    """After a few epochs on few trajectories, better than particles that go straight on."""
    nbody = example("nbody")
    sizes = {"train": 300, "validation": 100, "test": 100}
    changes = [f"data.limit={list(sizes.values())}", f"data.root={tmp_path}", "train.epochs=10"]
    config = read_config(nbody.CONFIG, changes)
    error = nbody.run(config, tmp_path / "run")
    test = NBody("test", **sizes)
    straight = torch.cat([data.pos + data.vel - data.y for data in test]).square().mean()
    assert error < straight


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("configs/*.yaml")), ids=lambda p: p.stem)
def test_configs_are_right(path: Path) -> None:
    assert isinstance(read_config(path), Config)
