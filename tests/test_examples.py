"""The examples, in small."""

import importlib.util
from pathlib import Path

import torch

from symgnn.data import NBody


def example(name: str):
    path = Path(__file__).parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nbody_learns(capsys) -> None:
    """After a few epochs on few trajectories, better than particles that go straight on."""
    nbody = example("nbody")
    torch.manual_seed(0)
    sizes = {"train": 300, "validation": 100, "test": 100}
    splits = {name: nbody.Stacked(NBody(name, **sizes)) for name in sizes}
    best = nbody.train(nbody.network(), splits, epochs=12)
    test = splits["test"].parts
    straight = (test["pos"] + test["vel"] - test["y"]).square().mean()
    assert best[1] < straight
    assert "best validation" in capsys.readouterr().out
