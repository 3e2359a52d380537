"""Ridge regression, p-values and verdicts against closed forms."""

import math

import pytest
import torch
from torch import Tensor

from symgnn.discovery._deciding import (
    Comparison,
    closed,
    compare,
    holm,
    p_of_difference,
    verdict_of,
)
from symgnn.discovery._ridge import PENALTIES, predictions
from symgnn.discovery._spread import randomisation_p


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_predictions_are_those_of_direct_solutions() -> None:
    x, y = numbers(30, 4), numbers(30, 2, seed=1)
    y = x[:, :2] + 0.1 * y + 2.0
    gram = x @ x.T / 4
    folds = torch.arange(30) % 3
    found = predictions([gram], y, folds)
    gram = gram + gram.diagonal().mean()  # a constant is among the functions
    typical = gram.diagonal().mean()  # the mean of the eigenvalues
    answers, errors = [torch.zeros_like(y)], [y.square()]
    for penalty in PENALTIES:  # every setting, with each fold left out in turn
        answer = torch.zeros_like(y)
        for fold in range(3):
            test, train = folds == fold, folds != fold
            inner = gram[train][:, train] + penalty * typical * torch.eye(20, dtype=torch.float64)
            answer[test] = gram[test][:, train] @ torch.linalg.solve(inner, y[train])
        answers.append(answer)
        errors.append((answer - y).square())
    for fold in range(3):  # the setting that is best on the other folds
        others = [float(error[folds != fold].sum()) for error in errors]
        expected = answers[others.index(min(others))][folds == fold]
        assert (found[folds == fold] - expected).abs().max() < 1e-8


def test_holm_of_an_example() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})


def test_the_p_value_is_that_of_student() -> None:
    # mean 1, deviation 1, four numbers: t = 2 with 3 degrees of freedom
    difference = torch.tensor([0.0, 2.0, 1.0, 1.0], dtype=torch.float64) * math.sqrt(1.5)
    difference = difference - difference.mean() + 1.0
    assert float(difference.std()) == pytest.approx(1.0)
    assert p_of_difference(difference) == pytest.approx(0.0696629842794216, rel=1e-9)
    assert p_of_difference(torch.zeros(5, dtype=torch.float64)) == 1.0


def test_the_randomisation_p_value_counts() -> None:
    copies = numbers(99, 3)
    assert randomisation_p(torch.full((3,), 50.0, dtype=torch.float64), copies) == 0.01
    assert randomisation_p(copies.mean(0), copies) == 1.0


def test_randomisation_p_values_are_uniform_where_nothing_differs() -> None:
    found = [randomisation_p(numbers(2, seed=k), numbers(19, 2, seed=1000 + k)) for k in range(400)]
    below = sum(p <= 0.05 for p in found)
    assert 8 <= below <= 34  # 20 expected, 99.9 % of a binomial law


def losses(**means: float) -> dict[str, Tensor]:
    return {name: mean * (1 + 0.3 * numbers(200, seed=7)).square() for name, mean in means.items()}


def test_a_rung_that_loses_is_broken_and_one_that_does_not_is_kept() -> None:
    table = losses(blind=1.0, lengths=0.1, angles=0.5)
    broken = compare(table, ["blind", "angles"], "blind")
    assert (broken.worse, broken.best) == ("angles", "lengths")
    assert broken.ratio == pytest.approx(math.sqrt(5))
    assert broken.share == pytest.approx(0.4 / 0.9)
    assert verdict_of(broken, broken.p_value) == "broken"
    kept = compare(table, ["blind", "lengths"], "blind")
    assert (kept.ratio, kept.p_value) == (1.0, 1.0)
    assert verdict_of(kept, 1.0) == "kept"


def test_errors_of_less_than_a_hundredth_are_none() -> None:
    # without noise: 1e-15 and 9e-15 of the variance differ by what the penalty leaves
    table = losses(blind=1.0, lengths=1e-15, angles=9e-15)
    found = compare(table, ["blind", "angles"], "blind")
    assert (found.ratio, found.interval, found.share) == (1.0, (1.0, 1.0), 0.0)
    assert found.p_value == 1.0
    assert verdict_of(found, found.p_value) == "kept"
    table = losses(blind=1.0, lengths=1e-15, angles=9e-4)
    found = compare(table, ["blind", "angles"], "blind")
    assert found.ratio == pytest.approx(3.0 * 1.09**0.5, rel=0.1)  # 9e-4 over 1e-4
    assert verdict_of(found, found.p_value) == "broken"


def test_a_small_loss_of_a_weak_signal_is_no_proof_that_it_is_kept() -> None:
    # 4 % larger errors, but nothing is left of what coordinates add
    weak = Comparison("blind", "lengths", 1.03, (1.01, 1.04), 1.0, (0.9, 1.0), 0.2)
    assert verdict_of(weak, 0.2) == "undecided"


def test_broken_rotations_break_reflections() -> None:
    found = closed({"rotation": "broken", "reflection": "undecided", "dilation": "kept"})
    assert found == {"rotation": "broken", "reflection": "broken", "dilation": "kept"}


def test_turning_both_sides_of_a_bridge_turns_the_whole() -> None:
    given = {"translation": "kept", "rotation": "broken", "torsion": "kept", "flex": "kept"}
    assert closed(given) == {**given, "torsion": "broken", "flex": "broken"}
    given = {"translation": "undecided", "rotation": "kept", "torsion": "kept"}
    assert closed(given)["torsion"] == "undecided"
