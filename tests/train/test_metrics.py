"""Losses and numbers against their definitions, batch by batch and device by device."""

import pytest
import torch
import torch.nn.functional as F

from symgnn.data._task import Task
from symgnn.train._metrics import Judge, Metrics, Scaler, balanced, loss_sums

ENERGIES = Task("graph", "regression", ("energy", "gap"), ("eV", "eV"))
COLOURS = Task("node", "classification", ("colour",), classes=("red", "green", "blue"))
EDGES = Task("edge", "classification", ("tour",), classes=("no", "yes"))


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def split_up(task: Task, outputs: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """The numbers, counted on two devices in batches of unequal size."""
    devices = [Metrics(task, len(outputs)) for _ in range(2)]
    judge = Judge(task, Scaler(torch.zeros(2), torch.ones(2)))
    for k, rows in enumerate(torch.arange(len(y)).split([3, 5, 1, len(y) - 9])):
        part = outputs[:, rows]
        devices[k % 2].add(*judge(part, y[rows]))
    first, second = devices
    others = iter(list(second.sums.values()))
    first.reduce(lambda value: value + next(others))
    return first.values()


def test_regression() -> None:
    outputs, y = torch.randn(2, 20, 2, generator=rng()), torch.randn(20, 2, generator=rng(1))
    found = split_up(ENERGIES, outputs, y)
    kinds = ("mae", "mse", "rmse", "r2")
    assert list(found) == ["loss", *(f"{k} {t}" for t in ("energy", "gap") for k in kinds)]
    for seed in range(2):
        assert float(found["loss"][seed]) == pytest.approx(float(F.mse_loss(outputs[seed], y)))
        error = outputs[seed] - y
        assert float(found["mae gap"][seed]) == pytest.approx(float(error[:, 1].abs().mean()))
        mse = float(error[:, 0].square().mean())
        assert float(found["mse energy"][seed]) == pytest.approx(mse)
        assert float(found["rmse energy"][seed]) == pytest.approx(mse**0.5)
        r2 = 1 - mse / float(y[:, 0].var(correction=0))
        assert float(found["r2 energy"][seed]) == pytest.approx(r2, rel=1e-5, abs=1e-6)


def test_classification() -> None:
    outputs, y = torch.randn(2, 30, 3, generator=rng()), torch.arange(30) % 3
    found = split_up(COLOURS, outputs, y)
    for seed in range(2):
        chosen = outputs[seed].argmax(1)
        assert float(found["loss"][seed]) == pytest.approx(float(F.cross_entropy(outputs[seed], y)))
        assert float(found["accuracy"][seed]) == pytest.approx(float((chosen == y).float().mean()))
        each = [
            2
            * float(((chosen == c) & (y == c)).sum())
            / float((chosen == c).sum() + (y == c).sum())
            for c in range(3)
        ]
        assert float(found["f1"][seed]) == pytest.approx(sum(each) / 3)


def test_f1_of_two_classes_is_that_of_the_second() -> None:
    """Where few edges are in the tour, naming none has high accuracy and no F1."""
    y = torch.tensor([0] * 18 + [1] * 2)
    none = torch.tensor([1.0, 0.0]).expand(1, 20, 2)
    found = split_up(EDGES, none, y)
    assert float(found["accuracy"]) == pytest.approx(0.9)
    assert float(found["f1"]) == 0
    assert float(split_up(EDGES, F.one_hot(y, 2).float()[None], y)["f1"]) == 1


def test_class_weights() -> None:
    y = torch.tensor([0] * 18 + [1] * 2)
    weights = balanced(torch.bincount(y))
    assert float(weights[0] * 18) == pytest.approx(float(weights[1] * 2))
    assert float(weights[y].mean()) == pytest.approx(1)
    outputs = torch.randn(1, 20, 2, generator=rng())
    sums = loss_sums(outputs, y, EDGES, class_weights=weights)
    expected = F.cross_entropy(outputs[0], y, weights)
    assert float(sums.losses / sums.weight) == pytest.approx(float(expected))


@pytest.mark.parametrize(("name", "function"), [("mae", F.l1_loss), ("huber", F.huber_loss)])
def test_other_losses(name: str, function) -> None:
    outputs, y = 3 * torch.randn(2, 7, 2, generator=rng()), torch.randn(7, 2)
    sums = loss_sums(outputs, y, ENERGIES, name)
    for seed in range(2):
        expected = function(outputs[seed], y)
        assert float(sums.losses[seed] / sums.weight) == pytest.approx(float(expected))


def test_scaler_goes_back() -> None:
    scaler = Scaler(torch.tensor([-400.0, 2.0]).double(), torch.tensor([40.0, 0.1]).double())
    y = torch.randn(5, 2, generator=rng())
    torch.testing.assert_close(scaler.back(scaler(y)).float(), y, rtol=1e-4, atol=1e-4)
    assert scaler(torch.tensor([[-440.0, 2.1]])).tolist()[0] == pytest.approx([-1.0, 1.0], rel=1e-5)


def test_errors_keep_their_digits_beside_large_energies() -> None:
    """Of standardised answers, in units: exact, though energies of 1e7 have no such digits."""
    scaler = Scaler(torch.tensor([1e7, 0]).double(), torch.tensor([2.0, 1]).double(), done=True)
    y, outputs = torch.zeros(4, 2), torch.full((1, 4, 2), 0.001)
    metrics = Metrics(ENERGIES, 1)
    metrics.add(*Judge(ENERGIES, scaler)(outputs, y))
    assert float(metrics.values()["mae energy"]) == pytest.approx(0.002)
    assert float(scaler.back(outputs)[0, 0, 0]) == pytest.approx(1e7 + 0.002, abs=1e-5)
