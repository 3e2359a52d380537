"""Cases of the tests test_symmetry, test_symmetry_derived."""

from helpers import (
    Trial,
    trial,
)
from symgnn.geometry.symmetry import AXIAL

KEPT, BROKEN = 1e-9, 1e-4
#: Kinds that need a plane.
PLANE = ("torsion", "flex", "angle-flex", "part-motion")


def claimed(model, n=3):
    """The kinds that a model claims and that exist in n dimensions."""
    none = {1: (*PLANE, *AXIAL), 2: ("angle-flex", "axis-rotation")}.get(n, ())
    return tuple(kind for kind in model.symmetry if kind not in none)


def assert_kept(model, case: object = "", n: int = 3, seed: int = 0, one_way: bool = False):
    """Every kind that the model claims leaves its output as it is."""
    check(trial(claimed(model, n), n, seed, one_way), model, case)


def check(measured: Trial, model, case: object = "") -> None:
    errors = measured.changes(model)
    assert errors, f"{model}, {case}: nothing was measured"
    wrong = {kind: error for kind, error in errors.items() if not error <= KEPT}
    assert not wrong, f"{model}, {case}: claimed but not kept, relative errors {wrong}"


def assert_broken(make, kinds, case: object = "", n: int = 3, tries: int = 4):
    """Each kind changes the output of some of the models `make(seed)`, none of which claims it."""
    kinds, largest = tuple(kinds), dict.fromkeys(kinds, 0.0)
    for seed in range(tries):
        model = make(seed)
        assert not set(kinds) & set(model.symmetry), f"{model}: claims one of {kinds}"
        for kind, change in trial(kinds, n, seed).changes(model).items():
            largest[kind] = max(largest[kind], change)
        if min(largest.values()) > BROKEN:
            return
    weak = {kind: change for kind, change in largest.items() if not change > BROKEN}
    assert not weak, f"{model}, {case}: not claimed but hardly changed, relative changes {weak}"
