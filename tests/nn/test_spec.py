"""Specifications say clearly what is wrong with them, and print what they read."""

import pytest
import torch

from symgnn.nn import AGN, DGN, Measure, Spec, reduce
from symgnn.nn.inputs import a, d2, e, theta, u, v

WRONG = {
    "unplaced node": (lambda: Spec("s", edge=[v]), "edge: reads v; write v.source or v.target"),
    "wrong place": (lambda: Spec("s", edge=[v.vertex]), "edge: reads v.vertex; write v.source"),
    "unplaced edge": (lambda: Spec("s", angle=[e]), "angle: reads e; write e.first or e.second"),
    "too fine": (lambda: Spec("s", node=[e]), r"node: cannot read e, .* write reduce\(e\)"),
    "too coarse": (lambda: Spec("s", node=[reduce(u)]), r"node: cannot read reduce\(u\)"),
    "end missing": (lambda: Spec("s", edge=[reduce(a)]), r"write reduce\(a, 'source'\)"),
    "end too much": (lambda: Spec("s", node=[reduce(a, "source")]), "leave the place out"),
    "placed": (lambda: reduce(v.source), "reduce: takes a source where it lives"),
    "twice": (lambda: reduce(reduce(e)), "reduce: takes a source where it lives"),
    "two of a name": (
        lambda: Spec("s", edge=[d2, Measure("d2", "edge", function=torch.add)]),
        "two different measures are called 'd2'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_specifications(case: str) -> None:
    make, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_not_a_source() -> None:
    with pytest.raises(TypeError, match="edge: reads 'v', which is not a source"):
        Spec("s", edge=["v"])  # type: ignore[list-item]


def test_print() -> None:
    assert str(DGN) == (
        "DGN\n  edge: e, v.target, v.source, d2, u\n  node: reduce(e), v, u\n"
        "  graph: reduce(e), reduce(v), reduce(d2), u"
    )


def test_a_measure_may_be_read_in_several_places() -> None:
    spec = AGN.replace(name="s", angle=[d2.first, d2.second, theta], edge=[d2, v.source])
    assert spec.reads == frozenset("vxeau")
