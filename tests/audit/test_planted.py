"""Forty planted faults: all are found, and at least 36 are located in their submodule."""

from __future__ import annotations

import pytest
import torch

from audit.planted import FAULTS, Fault, Sound, cloud, planted
from symgnn.audit import Report, audit

ASKED = ["E(3)", "permutations"]


def report_of(fault: Fault) -> Report:
    return audit(planted(fault), cloud(), groups=ASKED, elements=4, checks=False)


def test_the_network_without_a_fault_is_sound() -> None:
    torch.manual_seed(0)
    report = audit(Sound(), cloud(), groups=ASKED, elements=4)
    assert report.as_expected, report
    assert report.consistent, report
    assert [str(o) for o in report.outputs] == ["invariant per graph", "vector per node"]


def test_there_are_forty_different_ones() -> None:
    assert len(FAULTS) == len({fault.name for fault in FAULTS}) == 40


#: Found, and not located: two components of a grid or a pole may be anywhere.
NOT_LOCATED: set[str] = set()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_faults_are_found_and_located(fault: Fault) -> None:
    report = report_of(fault)
    broken = {f.kind for f in report.findings.values() if f.measured and not f.holds}
    assert broken == set(fault.kinds.split()), report
    if fault.name in NOT_LOCATED:
        return
    for kind in fault.kinds.split():
        where = report.findings[kind].where
        assert where is not None, report
        inside = where.module == fault.where or where.module.startswith(f"{fault.where}.")
        assert inside, f"{kind}: {where}"


def test_at_least_36_are_located() -> None:
    assert len(FAULTS) - len(NOT_LOCATED) >= 36
