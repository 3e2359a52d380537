"""Specifications say clearly what is wrong with them, and print what they read."""

from dataclasses import dataclass

import pytest

from symgnn.nn import AGN, DGN, After, Measure, Spec, reduce
from symgnn.nn.inputs import a, d2, e, theta, u, v
from symgnn.nn.peers.egnn import normalised
from symgnn.nn.peers.peer_forms import Linear

WRONG = {
    "unplaced node": (lambda: Spec("s", edge=[v]), "edge: reads v; write v.source or v.target"),
    "wrong place": (lambda: Spec("s", edge=[v.vertex]), "edge: reads v.vertex; write v.source"),
    "unplaced edge": (lambda: Spec("s", angle=[e]), "angle: reads e; write e.first or e.second"),
    "too fine": (lambda: Spec("s", node=[e]), r"node: cannot read e, .* write reduce\(e\)"),
    "too coarse": (lambda: Spec("s", node=[reduce(u)]), r"node: cannot read reduce\(u\)"),
    "end missing": (lambda: Spec("s", edge=[reduce(a)]), r"write reduce\(a, 'source'\)"),
    "end too much": (lambda: Spec("s", node=[reduce(a, "source")]), "remove the place"),
    "placed": (lambda: reduce(v.source), "reduce: takes an input without a place"),
    "twice": (lambda: reduce(reduce(e)), "reduce: takes an input without a place"),
    "after of inputs": (
        lambda: Spec("s", node=[v], after={"inputs": After(activation=True)}),
        "^after: s has no update for 'inputs'; it has updates for 'node'$",
    ),
    "after of nothing": (
        lambda: Spec("s", node=[v], after={"edge": After(gate=True)}),
        "^after: s has no update for 'edge'; it has updates for 'node'$",
    ),
    "form of a field": (
        lambda: Spec("s", node=[v], forms={"order": Linear}),
        "^forms: s has no update for 'order'",
    ),
    "input on graphs": (lambda: Spec("s", node=[v], inputs=[v, u]), "^inputs: has u; nodes start"),
    "reduced input": (
        lambda: Spec("s", node=[v], inputs=[reduce(d2)]),
        r"^inputs: has reduce\(d2\); nodes start",
    ),
    "operator as input": (
        lambda: Spec("s", node=[v], inputs=[v, normalised(2)]),
        "^inputs: has normalised",
    ),
    "placed input": (lambda: Spec("s", node=[v], inputs=[v.source]), "^inputs: has v.source;"),
}
WRONG_TYPES = {
    "no source": (lambda: Spec("s", edge=["v"]), "^edge: reads 'v', which is not an input"),
    "no form": (lambda: Spec("s", node=[v], forms={"node": "Linear"}), "^forms: 'node' is 'Lin"),
    "no After": (lambda: Spec("s", node=[v], after={"node": True}), "^after: 'node' is True"),
    "not hashable": (
        lambda: Spec("s", edge=[Measure("m", "edge", function=Unhashable())]),
        "^edge: m cannot be compared with other inputs .*Unhashable",
    ),
}


@dataclass
class Unhashable:
    def __call__(self, *ends):
        return d2.function(*ends)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_specifications(case: str) -> None:
    make, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("case", WRONG_TYPES)
def test_wrong_types(case: str) -> None:
    make, message = WRONG_TYPES[case]
    with pytest.raises(TypeError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_print() -> None:
    assert str(DGN) == (
        "DGN\n  edge: e, v.target, v.source, d2, u\n  node: reduce(e), v, u\n"
        "  graph: reduce(e), reduce(v), reduce(d2), u"
    )


def test_a_measure_may_be_read_in_several_places() -> None:
    spec = AGN.replace(name="s", angle=[d2.first, d2.second, theta], edge=[d2, v.source])
    assert spec.reads == frozenset("vxeau")
