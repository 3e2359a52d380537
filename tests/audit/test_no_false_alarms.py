"""Networks that are symmetric by construction are never called broken."""

from __future__ import annotations

import pytest

from audit.random_models import drawn
from symgnn.audit import audit


def check(seed: int, **options) -> None:
    one = drawn(seed)
    report = audit(
        one.model, one.data, groups=one.groups, vectors=one.vectors, seed=seed, **options
    )
    broken = [f for f in report.findings.values() if f.measured and not f.holds]
    assert not broken, f"{seed}: {one.model}\n{report}"
    assert not report.stochastic, report
    assert report.checks["no cache"].holds, report
    assert report.checks["inputs kept"].holds, report


@pytest.mark.parametrize("seed", range(12))
def test_random_correct_models(seed: int) -> None:
    check(seed, elements=3, search=24)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 500, 25))
def test_five_hundred_random_correct_models(start: int) -> None:
    for seed in range(start, start + 25):
        check(seed)
