"""Symmetries as sets of transformations, so that what several parts keep is an intersection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: Every kind of transformation the library knows, in the order in which it is printed.
KINDS = (
    "permutation",
    "translation",
    "rotation",
    "reflection",
    "dilation",
    "inversion",
    "special-conformal",
    "affine",
    "torsion",
    "flex",
    "redrawing",
    "angle-flex",
    "part-motion",
    "axis-rotation",
    "axis-reflection",
    "axis-flip",
)

#: Kinds that move each node by a vector of its own.
DISPLACEMENTS = ("flex", "redrawing", "angle-flex")
#: Kinds that are special cases of another: whatever keeps the one keeps the others.
IMPLIED = {"rotation": ("axis-rotation", "axis-flip"), "reflection": ("axis-reflection",)}
#: Kinds that are about an axis.
AXIAL = tuple(kind for kinds in IMPLIED.values() for kind in kinds)

_PLURALS = {
    "special-conformal": "special conformal maps",
    "affine": "affine maps",
    "flex": "flexes",
    "angle-flex": "angle flexes",
    "part-motion": "motions of parts",
    "axis-rotation": "rotations about an axis",
    "axis-reflection": "reflections along an axis",
    "axis-flip": "flips of an axis",
}


def plural(kind: str) -> str:
    """All transformations of a kind, in words."""
    return _PLURALS.get(kind, kind + "s")


@dataclass(frozen=True)
class Symmetry:
    """A set of kinds of transformations, closed under intersection.

    Compare with `<=` and `>=`, intersect with `&`, test with `"rotation" in symmetry`:

    >>> str(SIMILARITIES & LENGTHS)
    'E(n), permutations'
    >>> "dilation" in EUCLIDEAN
    False
    """

    kinds: frozenset[str]

    def __init__(self, kinds: Iterable[str]) -> None:
        kinds = frozenset(kinds)
        if unknown := kinds - set(KINDS):
            name = sorted(unknown)[0]
            raise ValueError(
                f"kinds: unknown transformation {name!r}; choose from {', '.join(KINDS)}"
            )
        kinds = kinds.union(*(IMPLIED.get(kind, ()) for kind in kinds))
        object.__setattr__(self, "kinds", kinds)

    def __contains__(self, kind: str) -> bool:
        if kind not in KINDS:
            raise ValueError(
                f"kind: unknown transformation {kind!r}; choose from {', '.join(KINDS)}"
            )
        return kind in self.kinds

    def __and__(self, other: Symmetry) -> Symmetry:
        return Symmetry(self.kinds & other.kinds)

    def __or__(self, other: Symmetry) -> Symmetry:
        return Symmetry(self.kinds | other.kinds)

    def __sub__(self, other: Symmetry) -> Symmetry:
        return Symmetry(self.kinds - other.kinds)

    def __le__(self, other: Symmetry) -> bool:
        return self.kinds <= other.kinds

    def __ge__(self, other: Symmetry) -> bool:
        return self.kinds >= other.kinds

    def __iter__(self) -> Iterator[str]:
        return (kind for kind in KINDS if kind in self.kinds)

    @property
    def widest(self) -> tuple[str, ...]:
        """The kinds that no other kind of the set implies."""
        implied = {kind for wide in self.kinds for kind in IMPLIED.get(wide, ())}
        return tuple(kind for kind in self if kind not in implied)

    def __str__(self) -> str:
        if self == EVERYTHING:
            return "every map of the coordinates, permutations"
        rest, names = set(self.widest), []
        for name, group in _GROUPS.items():
            if set(group.widest) <= rest:
                names.append(name)
                rest -= group.kinds - {"permutation"}
        # whatever keeps torsions by way of single vertices and edges keeps motions of parts
        rest -= {"permutation", "part-motion"} if "torsion" in rest else {"permutation"}
        names += [plural(kind) for kind in KINDS if kind in rest]
        return (
            ", ".join([*names, "permutations"] if "permutation" in self.kinds else names) or "none"
        )

    def __repr__(self) -> str:
        return f"Symmetry({self})"


#: Every numbering of the nodes.
PERMUTATIONS = Symmetry(["permutation"])
#: E(n): translations, rotations and reflections.
EUCLIDEAN = Symmetry(["permutation", "translation", "rotation", "reflection"])
#: E(n) and dilations.
SIMILARITIES = EUCLIDEAN | Symmetry(["dilation"])
#: All affine maps.
AFFINE = SIMILARITIES | Symmetry(["affine"])
#: Similarities, inversions and special conformal maps.
MOEBIUS = SIMILARITIES | Symmetry(["inversion", "special-conformal"])
#: Maps that move each vertex with its neighbours rigidly, each vertex in its own way.
STARS = Symmetry(["permutation", "torsion", "part-motion"])
#: Every map that keeps the lengths of the edges.
LENGTHS = EUCLIDEAN | STARS | Symmetry(["flex"])
#: Every map that keeps the angles at the vertices.
ANGLES = SIMILARITIES | STARS | Symmetry(["redrawing", "angle-flex"])
#: Every kind: the symmetry of a network that reads no coordinates.
EVERYTHING = Symmetry(KINDS)
#: What turns a right hand into a left one. Affine maps may.
REVERSING = Symmetry(["reflection", "inversion", "affine"])

_GROUPS = {
    "affine maps": AFFINE,
    "Moebius maps": MOEBIUS,
    "similarities": SIMILARITIES,
    "E(n)": EUCLIDEAN,
    "orientation-preserving Moebius maps": MOEBIUS - REVERSING,
    "orientation-preserving similarities": SIMILARITIES - REVERSING,
    "SE(n)": EUCLIDEAN - REVERSING,
}
