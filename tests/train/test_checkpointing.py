"""Which weights are the best: ties go to the lower loss, then to the earlier epoch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric

from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._checkpointing import Checkpoints, Position
from symgnn.train._settings import Training


class Weights:
    """Two members whose weights are the number of the epoch."""

    epoch = 0

    def states(self) -> list[dict]:
        return [{"w": torch.tensor(float(self.epoch))} for _ in range(2)]

    def load_states(self, states: list[dict]) -> None:
        self.epoch = int(states[0]["w"])


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
@pytest.mark.parametrize("in_memory", [True, False])
def test_ties_go_to_the_lower_loss(
    in_memory: bool, monitor: str, epochs: list[int], risen: list[int], tmp_path: Path
) -> None:
    settings = Training(monitor=monitor, patience=5, epochs=99)
    directory = None if in_memory else tmp_path
    checkpoints, weights = Checkpoints(settings, [1, 2], directory), Weights()
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    fabric = Fabric(devices=1, accelerator="cpu")
    position = checkpoints.restore(weights, optimizer, scaler)  # type: ignore[arg-type]
    assert position == Position()
    for number, (accuracy, loss) in enumerate(EPOCHS, 1):
        position.epoch = weights.epoch = number
        found = {"validation_accuracy": torch.tensor(accuracy)}
        found |= {"validation_loss": torch.tensor(loss), "train_loss": torch.zeros(2)}
        for _ in range(2):  # again, after a process was killed
            checkpoints.keep(position, found, weights, optimizer, scaler, 0.1, fabric)  # type: ignore[arg-type]
    assert checkpoints.best_epochs.tolist() == epochs
    assert [float(state["w"]) for state in checkpoints.best] == epochs
    assert checkpoints.risen.tolist() == risen  # patience follows what is monitored
    assert checkpoints.finished(position) == (6 - max(risen) >= 5)
    if in_memory:
        assert not list(tmp_path.iterdir())
        return
    other = Checkpoints(settings, [1, 2], tmp_path)
    assert other.restore(weights, optimizer, scaler).epoch == 6  # type: ignore[arg-type]
    for name in ("value", "loss", "best_epochs", "risen"):
        assert torch.equal(getattr(other, name), getattr(checkpoints, name))
    assert read_checkpoint(tmp_path / "best.ckpt")["loss"].tolist() == checkpoints.loss.tolist()
