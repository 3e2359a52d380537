"""Several processes, and checks of options."""

import math

import pytest

from symgnn.data._parallel import chunks, in_parallel


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


def test_jobs_are_counted() -> None:
    with pytest.raises(ValueError, match=r"^jobs: is 0; give a whole number of at least 1"):
        in_parallel(math.sqrt, [4.0], jobs=0, text="roots")
