"""Which weights are the best: ties go to the lower loss, then to the earlier epoch."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from symgnn.train.checkpoint import read_checkpoint, write_checkpoint
from symgnn.train.keeper import Keeper


class Members:
    """Two seeds; their weights are the number of the epoch."""

    seeds = (1, 2)

    def __init__(self, run: SimpleNamespace) -> None:
        self.run = run

    def __len__(self) -> int:
        return 2

    def states(self) -> list[dict]:
        return [{"w": torch.tensor(float(self.run.epoch))} for _ in range(2)]


def module(monitor: str, patience: int) -> SimpleNamespace:
    """What a keeper reads of a module."""
    found = SimpleNamespace(epoch=0, settings=SimpleNamespace(monitor=monitor, patience=patience))
    found.members = Members(found)
    return found


#: Of each epoch: the accuracy and the loss of both seeds.
EPOCHS = [
    ((0.5, 0.9), (0.9, 0.42)),
    ((0.9, 0.9), (0.5, 0.42)),
    ((0.9, 0.9), (0.1, 0.01)),
    ((0.9, 0.8), (0.1, 0.001)),
    ((0.9, 0.9), (0.3, 0.01)),
    ((0.7, 0.9), (0.01, float("nan"))),
]


@pytest.mark.parametrize(
    ("monitor", "epochs", "risen"),
    [("accuracy", [3, 3], [2, 1]), ("loss", [6, 4], [6, 4])],
)
def test_ties_go_to_the_lower_loss(
    monitor: str, epochs: list[int], risen: list[int], tmp_path: Path
) -> None:
    run = module(monitor, patience=5)
    keeper = Keeper(tmp_path, run)
    for number, (accuracy, loss) in enumerate(EPOCHS, 1):
        run.epoch = number
        values = {"accuracy": torch.tensor(accuracy), "loss": torch.tensor(loss)}
        keeper.compare(run, values[monitor], values["loss"])
        again = keeper.compare(run, values[monitor], values["loss"])  # after a process was killed
        assert not again.any()
    assert keeper.epoch.tolist() == epochs
    assert [float(state["w"]) for state in keeper.states] == epochs
    assert keeper.risen.tolist() == risen  # patience goes by what is monitored
    assert keeper.out_of_patience(run) == (6 - max(risen) >= 5)
    write_checkpoint(tmp_path / "best.ckpt", {**keeper.best(run), "seeds": [1, 2]})
    other = Keeper(tmp_path, run)
    assert other.resume(run)
    for name in ("value", "loss", "epoch", "risen"):
        assert torch.equal(getattr(other, name), getattr(keeper, name))
    assert read_checkpoint(tmp_path / "best.ckpt")["loss"].tolist() == keeper.loss.tolist()
