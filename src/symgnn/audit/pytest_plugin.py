"""A pytest plugin: the fixtures `assert_symmetric` and `audit`.

It is loaded by every run of pytest where symgnn is installed, so nothing else is imported until a
test uses a fixture. `--symmetry-reports DIR` writes a page for each model that is audited.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    group = parser.getgroup("symgnn")
    group.addoption(
        "--symmetry-reports",
        metavar="DIR",
        default=None,
        help="write a page for each model that the symgnn fixtures audit into this directory",
    )


def _keeps(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    folder = request.config.getoption("--symmetry-reports")
    count = 0

    def keep(report: Any) -> Any:
        nonlocal count
        if folder is not None:
            name = re.sub(r"[^\w.-]+", "-", request.node.nodeid).strip("-")
            report.save(Path(folder) / f"{name}{f'-{count}' if count else ''}.html")
            count += 1
        return report

    return keep


@pytest.fixture
def assert_symmetric(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """:func:`symgnn.audit.assert_symmetric`, whose reports `--symmetry-reports` keeps."""
    from symgnn.audit import assert_symmetric as assertion

    keep = _keeps(request)

    def check(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            return keep(assertion(*args, **options))
        except AssertionError as failure:
            if hasattr(failure, "report"):
                keep(failure.report)
            raise

    return check


@pytest.fixture
def audit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """:func:`symgnn.audit.audit`, whose reports `--symmetry-reports` keeps."""
    from symgnn.audit import audit as measure

    keep = _keeps(request)
    return lambda *args, **options: keep(measure(*args, **options))
