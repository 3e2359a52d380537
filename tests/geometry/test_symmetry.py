"""Symmetries as sets: their algebra, their names and their errors."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symgnn.geometry import (
    AFFINE,
    ANGLES,
    EUCLIDEAN,
    EVERYTHING,
    KINDS,
    LENGTHS,
    MOEBIUS,
    PERMUTATIONS,
    SIMILARITIES,
    STARS,
    TRANSFORMATIONS,
    Symmetry,
)

NAMED = [PERMUTATIONS, EUCLIDEAN, SIMILARITIES, AFFINE, MOEBIUS, LENGTHS, ANGLES, EVERYTHING]
symmetries = st.builds(Symmetry, st.sets(st.sampled_from(KINDS)))
few = settings(max_examples=40, deadline=None)


@given(symmetries, symmetries, symmetries)
@few
def test_the_algebra_is_that_of_sets(a, b, c):
    assert a & b == b & a == Symmetry(set(a) & set(b))
    assert a | b == b | a == Symmetry(set(a) | set(b))
    assert (a & b) & c == a & (b & c)
    assert a & (b | c) == (a & b) | (a & c)
    assert a & a == a == a | a
    assert a & EVERYTHING == a == a | Symmetry([])
    assert a & b <= a <= a | b
    assert a | b >= b
    assert (a <= b) == (a & b == a) == (b >= a) == (a | b == b)
    assert (a == b) == (a <= b and b <= a)


@given(symmetries)
@few
def test_members(a):
    assert list(a) == [kind for kind in KINDS if kind in a]
    assert len(list(a)) == len(a.kinds)
    assert Symmetry(a) == a
    assert hash(Symmetry(reversed(list(a)))) == hash(a)
    assert pickle.loads(pickle.dumps(a)) == a


def test_every_kind_has_a_transformation():
    assert tuple(TRANSFORMATIONS) == KINDS
    assert all(kind.name == name for name, kind in TRANSFORMATIONS.items())
    assert set(EVERYTHING) == set(KINDS)
    assert len(set(KINDS)) == len(KINDS)


def test_the_groups_are_nested():
    assert PERMUTATIONS <= EUCLIDEAN <= SIMILARITIES <= AFFINE
    assert SIMILARITIES <= MOEBIUS
    assert EUCLIDEAN <= LENGTHS
    assert SIMILARITIES <= ANGLES
    assert not SIMILARITIES <= LENGTHS
    assert not LENGTHS <= ANGLES
    assert not ANGLES <= MOEBIUS
    assert AFFINE & MOEBIUS == SIMILARITIES
    assert EUCLIDEAN | STARS == LENGTHS & ANGLES
    assert all(group <= EVERYTHING for group in NAMED)
    assert len(set(NAMED)) == len(NAMED)


@pytest.mark.parametrize(
    ("symmetry", "text"),
    [
        (Symmetry([]), "none"),
        (PERMUTATIONS, "permutations"),
        (EUCLIDEAN, "E(n), permutations"),
        (SIMILARITIES, "similarities, permutations"),
        (AFFINE, "affine maps, permutations"),
        (MOEBIUS, "Moebius maps, permutations"),
        (LENGTHS, "E(n), torsions, flexes, permutations"),
        (ANGLES, "similarities, torsions, redrawings, angle flexes, permutations"),
        (EVERYTHING, "every map of the coordinates, permutations"),
        (Symmetry(["translation"]), "translations"),
        (Symmetry(["rotation", "reflection"]), "rotations, reflections"),
        (Symmetry(["permutation", "rotation"]), "rotations, permutations"),
        (EUCLIDEAN | Symmetry(["inversion"]), "E(n), inversions, permutations"),
        (Symmetry(["special-conformal", "flex"]), "special conformal maps, flexes"),
    ],
)
def test_names(symmetry, text):
    assert str(symmetry) == text
    assert repr(symmetry) == f"Symmetry({text})"


def test_different_symmetries_have_different_names():
    """Also where a group is there but for one of its kinds, or for the permutations."""
    subsets = [Symmetry(k for i, k in enumerate(KINDS) if bits >> i & 1) for bits in range(2**10)]
    # similarities are affine maps, so nothing keeps the affine maps without keeping those
    possible = [s for s in subsets if "affine" not in s or s >= AFFINE]
    names = {}
    for symmetry in possible:
        names.setdefault(str(symmetry), []).append(sorted(symmetry.kinds))
    twice = {name: kinds for name, kinds in names.items() if len(kinds) > 1}
    assert not twice, f"{len(twice)} names are shared, such as {next(iter(twice.items()))}"
    assert len(names) == len(possible) > 500


def test_errors():
    with pytest.raises(ValueError, match=r"kinds: unknown transformation 'shear'; choose from"):
        Symmetry(["rotation", "shear"])
    with pytest.raises(ValueError, match=r"kind: unknown transformation 'rotations'; choose from"):
        _ = "rotations" in EUCLIDEAN
    with pytest.raises(AttributeError):
        EUCLIDEAN.kinds = frozenset()
    assert {"permutation", "translation", "rotation", "reflection"} != EUCLIDEAN
