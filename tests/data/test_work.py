"""Several processes, and checks of options."""

import math

import pytest

from symgnn.data._parallel import chunks, in_parallel, integer


@pytest.mark.parametrize("jobs", [1, 2])
def test_in_order(jobs: int) -> None:
    numbers = list(range(20))
    assert in_parallel(math.sqrt, numbers, jobs=jobs, text="roots") == list(map(math.sqrt, numbers))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_passed_on(jobs: int) -> None:
    with pytest.raises(ValueError, match=r"math domain error|expected a nonnegative input"):
        in_parallel(math.sqrt, [1, -1, 2], jobs=jobs, text="roots")


def test_nothing_to_do() -> None:
    assert in_parallel(math.sqrt, [], jobs=4, text="roots") == []


def test_chunks() -> None:
    assert chunks(5, 2) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert chunks(0, 2) == []


@pytest.mark.parametrize("value", [0, -1, 1.0, True, None, "1"])
def test_wrong_integers(value: object) -> None:
    with pytest.raises(ValueError, match=f"^jobs: {value!r} is not possible; pass an integer >= 1"):
        integer("jobs", value, 1)
