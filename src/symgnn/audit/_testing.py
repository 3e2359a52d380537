"""Assertions for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from symgnn.audit._audit import audit
from symgnn.audit._audit_report import Report
from symgnn.geometry import Symmetry


def assert_symmetric(
    model: Any,
    data: Any,
    groups: str | Symmetry | Iterable[str | Symmetry] = "E(n)",
    *,
    tolerance: float | None = None,
    **options: Any,
) -> Report:
    """Assert that a model has some symmetry groups, to rounding or up to a relative error.

    Only these groups are measured.

    Args:
        model: As for :func:`symgnn.audit.audit`.
        data: As for :func:`symgnn.audit.audit`.
        groups: Such as "E(3)" or `["SE(3)", "permutations"]`.
        tolerance: The largest allowed error, relative to the variation of the output; if not
            given, only rounding errors are allowed.
        **options: Options of :func:`symgnn.audit.audit`, such as `outputs` or `elements`.

    Returns:
        The report.

    Raises:
        AssertionError: with the counterexample and the submodule, in one line for each group; its
            `report` is the report.

    Example:
        >>> import torch
        >>> report = assert_symmetric(lambda pos: torch.pdist(pos).sum(), torch.randn(8, 3), "E(3)")
        >>> report.expected
        ['E(n)']
    """
    __tracebackhide__ = True  # pytest shows the test, not this function
    report = audit(model, data, groups=groups, **{"checks": False, **options})
    answers = [report.holds(group, tolerance) for group in report.expected]
    wrong = [repr(answer) for answer in answers if not answer]
    if wrong:
        lines = [f"{report.model} is not symmetric", *wrong]
        lines += [f"repair: {line}" for line in report.suggestions()]
        failure = AssertionError("\n".join(lines))
        failure.report = report  # type: ignore[attr-defined]  # for the pytest plugin
        raise failure
    return report
