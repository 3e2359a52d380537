"""Models and calculators of other people: the verdicts are what their authors claim.

Those whose package is not installed are left out; `pip install symgnn[zoo]` has them all.
"""

from __future__ import annotations

import json
import warnings

import pytest

from audit import record_zoo
from audit.exhibit import Exhibit
from audit.zoo import ZOO
from symgnn.audit import Report, audit


def audited(exhibit: Exhibit, **options: object) -> Report:
    """The report on an exhibit, on the groups that it has or lacks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other packages
        given = exhibit.make()
        groups = list(dict.fromkeys([*exhibit.holds, *exhibit.breaks]))
        return audit(given.model, given.data, groups=groups, **{**given.options, **options})


def check(exhibit: Exhibit) -> None:
    if exhibit.missing:
        pytest.skip(f"{exhibit.missing} is not installed: see docs/audit-zoo.md")
    report = audited(exhibit)
    for group in exhibit.holds:
        assert report.holds(group), report
    for group in exhibit.breaks:
        assert not report.holds(group), report
        assert report.holds(group).known


def label(exhibit: Exhibit) -> str:
    return f"{exhibit.package}: {exhibit.name}"


QUICK = [exhibit for exhibit in ZOO if exhibit.quick]
REST = [exhibit for exhibit in ZOO if not exhibit.quick]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exhibit", QUICK, ids=label)
def test_a_few_in_every_run(exhibit: Exhibit) -> None:
    check(exhibit)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exhibit", REST, ids=label)
def test_the_rest_of_the_zoo(exhibit: Exhibit) -> None:
    check(exhibit)


def test_there_are_enough() -> None:
    assert len(ZOO) >= 25
    assert len({label(exhibit) for exhibit in ZOO}) == len(ZOO)


def test_the_page_is_what_was_recorded() -> None:
    rows = json.loads(record_zoo.RECORD.read_text())
    assert record_zoo.PAGE.read_text() == record_zoo.page(rows)
    assert len(rows) >= 25
    assert {(row["package"], row["name"]) for row in rows} == {(e.package, e.name) for e in ZOO}
