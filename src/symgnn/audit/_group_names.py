"""Groups by name, as sets of kinds of transformations."""

from __future__ import annotations

import re

from symgnn._argument_checks import closest
from symgnn.geometry import AFFINE, EUCLIDEAN, KINDS, MOEBIUS, SIMILARITIES, Symmetry
from symgnn.geometry.symmetry import plural


def _of_space(symmetry: Symmetry) -> tuple[str, ...]:
    return tuple(kind for kind in symmetry.widest if kind != "permutation")


#: Groups of maps of space, from small to large.
GROUPS: dict[str, tuple[str, ...]] = {
    "SO(n)": ("rotation",),
    "O(n)": ("rotation", "reflection"),
    "SE(n)": ("translation", "rotation"),
    "E(n)": _of_space(EUCLIDEAN),
    "similarities": _of_space(SIMILARITIES),
    "affine maps": _of_space(AFFINE),
    "Moebius maps": _of_space(MOEBIUS),
}

_OTHER = {
    "affine": "affine maps",
    "moebius": "Moebius maps",
    "möbius": "Moebius maps",
    "moebius group": "Moebius maps",
    "conformal": "Moebius maps",
    "conformal maps": "Moebius maps",
    "similarity": "similarities",
    "euclidean": "E(n)",
    "rigid motions": "SE(n)",
}


def kinds_of(name: str | Symmetry, dimension: int | None = None) -> tuple[str, tuple[str, ...]]:
    """The usual name of a group, and its kinds; `"E(3)"` is E(n), if in 3 dimensions."""
    if isinstance(name, Symmetry):
        return str(name), name.widest
    if not isinstance(name, str):
        raise ValueError(f"group: is {name!r}; pass a name such as 'E(n)', or a Symmetry")
    known: dict[str, tuple[str, tuple[str, ...]]] = {}
    for group, kinds in GROUPS.items():
        known[group.lower()] = group, kinds
    for other, group in _OTHER.items():
        known[other] = group, GROUPS[group]
    for kind in KINDS:
        known.setdefault(kind, (plural(kind), (kind,)))
        known.setdefault(plural(kind), (plural(kind), (kind,)))
    text = name.strip().lower()
    number = re.fullmatch(r"(s?[oe])\((\d+)\)", text)
    if number:
        if dimension is not None and int(number[2]) != dimension:
            raise ValueError(f"group: {name!r}, but the data has {dimension} dimensions; use E(n)")
        text = f"{number[1]}(n)"
    if text in known:
        return known[text]
    near = closest(text, known, 0.4)
    hint = f"did you mean {known[near][0]!r}? " if near else ""
    every = ", ".join([*GROUPS, *(plural(k) for k in KINDS if k != "affine")])
    raise ValueError(f"group: {name!r} is not known; {hint}choose from {every}")
