"""Dropout that draws the places of the zeros: its law, its derivatives, and under torch.func."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from symgnn.data import polytope
from symgnn.nn import build
from symgnn.nn._engine import sparse_dropout
from symgnn.nn._engine.sparse_dropout import drawn_zeros, dropout, zeros_within

RATES = (0.001, 0.01, 0.1, 0.25)


@pytest.fixture(autouse=True)
def for_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of few values are drawn, too."""
    monkeypatch.setattr(sparse_dropout, "FEWEST", 0)


def test_few_values_have_the_dropout_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_dropout, "FEWEST", 100)
    for count, same in ((99, True), (100, False)):
        rows = torch.randn(count, 1)
        torch.manual_seed(0)
        found = dropout(rows, 0.25, training=True)
        torch.manual_seed(0)
        assert torch.equal(found, torch.nn.functional.dropout(rows, 0.25)) == same


@pytest.mark.parametrize("rate", RATES)
def test_values_are_zero_independently_with_the_rate(rate: float) -> None:
    torch.manual_seed(0)
    count = 2_000_000
    out = dropout(torch.ones(count // 8, 8, dtype=torch.float64), rate, training=True).flatten()
    zero = out == 0
    assert torch.equal(out[~zero], torch.full_like(out[~zero], 1 / (1 - rate)))
    five = 5 * math.sqrt(rate * (1 - rate) / count)
    assert abs(zero.double().mean() - rate) < five
    for lag in (1, 2, 8):  # the next value, and the same column of the next row
        both = (zero[lag:] & zero[:-lag]).double().mean()
        assert abs(both - rate**2) < 5 * math.sqrt(rate**2 / count), f"{lag=}"


@pytest.mark.parametrize("rate", [0.05, 0.25])
def test_every_place_is_as_likely(rate: float) -> None:
    torch.manual_seed(1)
    draws, count = 20_000, 7
    found = torch.zeros(count)
    for _ in range(draws):
        found[zeros_within(drawn_zeros(found, count, rate), count)] += 1
    bound = 5 * math.sqrt(rate * (1 - rate) / draws)
    assert (found / draws - rate).abs().max() < bound, found / draws


def test_many_zeros_are_drawn_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_dropout, "_gaps", lambda rate, *shape: torch.ones(shape).double())
    zeros = drawn_zeros(torch.zeros(1), 1000, 0.1)  # ten times as many as are expected
    assert torch.equal(zeros_within(zeros, 1000), torch.arange(1000))


def test_nothing_of_nothing() -> None:
    assert dropout(torch.zeros(0, 4), 0.1, training=True).shape == (0, 4)


def test_it_is_off_in_eval_mode() -> None:
    rows = torch.randn(50, 8)
    assert torch.equal(dropout(rows, 0.1, training=False), rows)


def seeded(rows: Tensor) -> Tensor:
    torch.manual_seed(3)
    return dropout(rows.sin(), 0.2, training=True)


def test_derivatives_of_every_kind_see_the_same_zeros() -> None:
    rows = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(seeded, rows, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(seeded, rows)
    kept = (seeded(rows) != 0).double() / 0.8
    slope = torch.func.grad(lambda r: seeded(r).sum())(rows)
    assert torch.equal(slope, kept * rows.cos())
    bend = torch.func.grad(lambda r: torch.func.grad(lambda s: seeded(s).sum())(r).sum())(rows)
    assert torch.equal(bend, -kept * rows.sin())


@pytest.mark.parametrize("inside", [False, True], ids=["gradient of vmap", "vmap of gradient"])
def test_members_of_vmap_draw_their_own(inside: bool) -> None:
    torch.manual_seed(0)
    rows = torch.randn(3, 40, 8, dtype=torch.float64)

    def each(value: Tensor) -> Tensor:
        return dropout(value, 0.2, training=True).sum()

    if inside:
        slopes = torch.vmap(torch.func.grad(each), randomness="different")(rows)
    else:
        leaf = rows.requires_grad_()
        torch.vmap(each, randomness="different")(leaf).sum().backward()
        slopes = leaf.grad
    assert set(slopes.unique().tolist()) == {0.0, 1.25}
    zero = slopes == 0
    assert all(20 < int(each.sum()) < 110 for each in zero)  # 64 are expected, deviation 7
    assert not torch.equal(zero[0], zero[1])


def test_vmap_within_vmap() -> None:
    def both(rows: Tensor) -> Tensor:
        each = torch.vmap(lambda r: dropout(r, 0.2, training=True), randomness="different")
        return torch.vmap(each, randomness="different")(rows)

    zero = both(torch.ones(2, 3, 40, 8)) == 0
    assert zero.shape == (2, 3, 40, 8)
    patterns = {tuple(each.flatten().tolist()) for each in zero.flatten(0, 1)}
    assert len(patterns) == 6


def test_vmap_has_the_randomness_that_is_asked_for() -> None:
    rows = torch.ones(3, 40, 8)

    def each(value: Tensor) -> Tensor:
        return dropout(value, 0.2, training=True)

    same = torch.vmap(each, randomness="same")(rows)
    assert torch.equal(same[0], same[1])
    assert bool((same == 0).any())
    with pytest.raises(RuntimeError, match="randomness='different'"):
        torch.vmap(each)(rows)


def test_high_rates_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(sparse_dropout, "drawn_zeros", refuse)
    rows = torch.ones(100, 8)
    torch.manual_seed(0)
    out = dropout(rows, 0.5, training=True)
    torch.manual_seed(0)
    assert torch.equal(out, torch.nn.functional.dropout(rows, 0.5))


@pytest.mark.parametrize(("engine", "by_gaps"), [("reference", False), ("fast", True)])
def test_only_the_fast_engine_draws_gaps(
    engine: str, by_gaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    original = sparse_dropout.drawn_zeros
    monkeypatch.setattr(
        sparse_dropout, "drawn_zeros", lambda *given: drawn.append(given) or original(*given)
    )
    model = build("dgn", hidden=4, layers=1, dropout=0.1, engine=engine).train()
    model(polytope("hypercube", 3))
    assert bool(drawn) == by_gaps
    drawn.clear()
    model.eval()(polytope("hypercube", 3))
    assert not drawn
