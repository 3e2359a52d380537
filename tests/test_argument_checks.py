"""The checks of names and numbers that all packages share."""

import ast
from pathlib import Path

import numpy as np
import pytest

import symgnn
from symgnn._argument_checks import (
    check_at_least,
    check_count,
    check_positive,
    check_rate,
    closest,
    named,
    shown,
    suggestion,
    unknown_name,
)

NAMES = ["mean", "sum", "max"]


def test_the_closest_name_ignores_case() -> None:
    assert closest("MAEN", NAMES) == "mean"
    assert closest("e-V", ["V->e", "E->V"]) == "E->V"
    assert closest("product", NAMES) is None
    assert closest(3, NAMES) is None
    assert closest("x", []) is None


def test_suggestions() -> None:
    assert suggestion("sun", NAMES) == "did you mean 'sum'?"
    assert suggestion("sun", NAMES, listed=True) == "did you mean 'sum'? Choose from mean, sum, max"
    assert suggestion("product", NAMES, listed=True) == "choose from mean, sum, max"
    assert suggestion("product", []) == "there are none"
    many = [f"column{k}" for k in range(100)]
    assert suggestion("?", many).endswith("column39, ...")


def test_a_long_value_is_shortened() -> None:
    text = unknown_name("column", "x" * 5000, NAMES, "a column")
    assert len(text) < 200
    assert shown("x" * 100) == "x" * 100


def test_named_takes_any_case_and_refuses_other_types() -> None:
    table = dict(zip(NAMES, (1, 2, 3), strict=True))
    assert named("aggregation", "Sum", table) == 2
    for wrong in ("maen", 3, None, ["sum"]):
        with pytest.raises(ValueError, match=r"^aggregation: .* is not known; .*hoose from mean"):
            named("aggregation", wrong, table)


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (check_count, (1, 7, np.int64(3)), (0, -1, 1.0, True, "1", None, float("nan"))),
        (check_rate, (0, 0.0, 0.999, np.float32(0.5)), (1, -0.1, True, "0.1", float("nan"))),
        (check_positive, (1e-300, 3, np.float64(2)), (0, -1.0, float("inf"), float("nan"), True)),
        (
            lambda name, value: check_at_least(name, value, 1),
            (1, 1.5, 10**9),
            (0.999, float("inf"), float("nan"), True, "2", None),
        ),
    ],
    ids=["count", "rate", "positive", "at least"],
)
def test_numbers(check, right, wrong) -> None:
    for value in right:
        assert check("field", value) == value
        assert type(check("field", value)) in (int, float)
    for value in wrong:
        with pytest.raises(ValueError, match=r"^field: is .*; give a") as caught:
            check("field", value)
        assert repr(value) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_suggestions_are_made_in_one_place() -> None:
    root = Path(symgnn.__file__).parent
    users = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import) and any(name.name == "difflib" for name in node.names)
    }
    assert users == {"_argument_checks.py"}
