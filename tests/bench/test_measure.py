"""Medians, ratios of the same round, turns, and memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgnn.bench._measure import (
    MissingError,
    NoMemoryError,
    Rounds,
    Spread,
    in_child,
    medians,
    paired,
)

POSITIVE = st.floats(1e-3, 1e3)


def test_median_and_quartiles() -> None:
    assert Spread.of([3.0, 1.0, 2.0, 5.0, 4.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)
    assert medians({"a": [1.0, 9.0, 2.0], "b": [5.0]}, "a") == {"a": 2.0}


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1), POSITIVE)
def test_a_ratio_is_of_the_same_round(rounds: list[tuple[float, float]], ratio: float) -> None:
    """A machine that is slower in some rounds changes no ratio."""
    below = [slow * one for slow, one in rounds]
    found = paired([ratio * time for time in below], below)
    assert found == pytest.approx((ratio, ratio, ratio))
    assert paired(below, below, factor=10.0) == pytest.approx((10.0, 10.0, 10.0))


def test_sides_take_turns_there_and_back() -> None:
    calls: list[str] = []
    counted: list[int] = []
    rounds = Rounds(repeats=3, warm_up=1, on_round=lambda: counted.append(1))
    times = rounds.alternate({name: lambda name=name: calls.append(name) for name in "ab"})
    assert "".join(calls) == "abbaabba"
    assert {name: len(found) for name, found in times.items()} == {"a": 3, "b": 3}
    assert len(counted) == rounds.most == 4


def test_it_ends_early_where_it_takes_long() -> None:
    rounds = Rounds(repeats=50, least=3, warm_up=0, seconds=0.0)
    assert len(rounds.alternate({"a": lambda: None})["a"]) == 3


def test_times_are_those_of_the_functions() -> None:
    clock = [0.0]

    def takes(seconds: float) -> None:
        clock[0] += seconds

    rounds = Rounds(repeats=2, warm_up=0, clock=lambda: clock[0])
    times = rounds.alternate({"a": lambda: takes(2.0), "b": lambda: takes(0.5)})
    assert times == {"a": [2.0, 2.0], "b": [0.5, 0.5]}


def test_a_child_that_dies_is_reported() -> None:
    with pytest.raises(MissingError, match="its process was killed"):
        in_child(os._exit, 1)


def test_a_child_takes_no_more_than_is_free() -> None:
    if not Path("/proc/meminfo").exists():
        pytest.skip("only where the system tells how much memory is free")
    with pytest.raises(NoMemoryError, match="that are free"):
        in_child(bytearray, 2**50)


PEAK = """
import torch
from symgnn.bench._measure import Memory

memory, size = Memory(), 50 * 2**20
before = memory.now()
memory.forget()
torch.ones(size, dtype=torch.uint8)
assert memory.most() - before >= 0.9 * size
assert memory.most() >= memory.now()
"""


def test_the_peak_is_noticed() -> None:
    """In a process of its own: this one may have memory that it has kept."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", PEAK], check=True)
