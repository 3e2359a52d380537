"""Which targets are vectors: forces, velocities, dipoles, by their names and widths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from symgnn.data._task import VECTOR_LEVELS

#: Words by which vectors are known, such as `forces` or `REF_forces`.
NAMES = frozenset(
    {"force", "forces", "f", "velocity", "velocities", "vel", "v", "momentum", "momenta"}
    | {"acceleration", "accelerations", "displacement", "displacements", "dipole", "dipoles"}
    | {"gradient", "gradients", "normal", "normals"}
)
#: Those of NAMES that are lengths, or lengths over time.
LENGTH_NAMES = frozenset({"velocity", "velocities", "vel", "displacement", "displacements"})
#: Words by which tensors are known; they turn as well, and no level has them.
TENSORS = frozenset({"stress", "stresses", "virial", "virials", "polarizability", "quadrupole"})
AXES = ("x", "y", "z")


class Column(NamedTuple):
    """A target as it was named, and how many numbers it has."""

    name: str
    width: int = 1
    unit: str = ""


class Vector(NamedTuple):
    """A vector target: its name, and the names of its components."""

    name: str
    components: tuple[str, ...]
    unit: str = ""


def component_names(name: str, n: int) -> tuple[str, ...]:
    """`name_x`, `name_y`, `name_z`; in more than three dimensions `name_0`, `name_1`, ..."""
    return tuple(f"{name}_{AXES[axis] if n <= len(AXES) else axis}" for axis in range(n))


def vectors_of(columns: Sequence[Column], n: int) -> list[Vector]:
    """The vectors that columns hold: arrays of n numbers, or n columns of one number each.

    Raises:
        ValueError: if the columns cannot be divided into vectors of n components.
    """
    found: list[Vector] = []
    single: list[Column] = []
    for column in columns:
        if column.width == n > 1 and not single:
            found.append(Vector(column.name, component_names(column.name, n), column.unit))
        elif column.width == 1:
            single.append(column)
            if len(single) == n:
                names = tuple(each.name for each in single)
                found.append(Vector(_stem(names), names, single[0].unit))
                single = []
        else:
            break
    else:
        if not single:
            return found
    named = ", ".join(f"{c.name} ({c.width} numbers)" if c.width > 1 else c.name for c in columns)
    raise ValueError(
        f"columns: {named} cannot be divided into vectors in {n} dimensions; name arrays of {n} "
        f"numbers, or for each vector its {n} columns in a row"
    )


def refuse_invariant(
    columns: Sequence[Column], level: str, n: int, *, chosen: bool, nodes: int
) -> None:
    """Refuse vectors as targets that do not turn, and as points.

    Args:
        columns: the targets.
        level: "graph", "node", "edge" or "coordinates".
        n: the number of dimensions.
        chosen: whether the user has chosen the level; then only targets that are vectors by their
            names are refused.
        nodes: how many nodes the first structure has.
    """
    if level == "coordinates":
        for name in [name for name in _vectors_among(columns, n) if NAMES & _words(name)]:
            raise ValueError(
                f"columns: {name} is a vector by its name, which does not move with the "
                "coordinates as a point does; pass level='node-vectors'"
            )
        return
    for column in columns:
        if TENSORS & _words(column.name) and column.width in (6, n * n):
            raise ValueError(
                f"columns: {column.name} is a tensor of {column.width} numbers, which turns with "
                "the structure, and no level has tensors; name other targets, or pass "
                "invariant=True to learn its numbers as they are"
            )
    for name in _vectors_among(columns, n):
        known = bool(NAMES & _words(name))
        if known or not chosen:
            _refuse(name, f"has {n} numbers for each {level}", level, n, known)
    if level == "node" and nodes == n > 1 and not chosen:
        for column in columns:  # [n] of a graph, which has n nodes
            if column.width == 1 and column.name.lower() in NAMES:
                _refuse(column.name, f"has {n} numbers for {n} nodes", "graph", n, True)


def _refuse(name: str, has: str, level: str, n: int, known: bool) -> None:
    vectors = f"{level}-vectors"
    fix = f"pass level={vectors!r} for vectors that rotate with the structure, or "
    if vectors not in VECTOR_LEVELS:
        fix = "no level has vectors of edges: "
    other = "invariant=True" if known else f"level={level!r}"
    raise ValueError(
        f"columns: {name} {has}, like a vector in {n} dimensions; {fix}{other} for "
        "invariant numbers"
    )


def all_lengths(vectors: Sequence[Vector]) -> bool:
    """Whether vectors are lengths by their names, as displacements and velocities are.

    Raises:
        ValueError: if some are and some are not.
    """
    answers = {bool(LENGTH_NAMES & _words(vector.name)): vector.name for vector in vectors}
    if len(answers) > 1:
        raise ValueError(
            f"lengths: {answers[True]} is a length, or a length per time, {answers[False]} is not; "
            "pass lengths=False to scale neither of them with the coordinates, or choose one column"
        )
    return True in answers


def _vectors_among(columns: Sequence[Column], n: int) -> list[str]:
    """The names of what can be a vector: n numbers, or n columns such as fx, fy and fz."""
    found = [c.name for c in columns if c.width == n and (n > 1 or NAMES & _words(c.name))]
    ends = {AXES[:n]} if n <= len(AXES) else set()
    families: dict[str, set[str]] = {}
    for column in columns:
        if column.width == 1 and column.name:
            families.setdefault(column.name[:-1], set()).add(column.name[-1].lower())
    for stem, there in families.items():
        named = stem.rstrip("_-. [(") or "".join(sorted(there))
        numbers = {tuple(str(first + axis) for axis in range(n)) for first in (0, 1)}
        sets = ends | (numbers if NAMES & _words(named) else set())
        if n > 1 and any(set(axes) <= there for axes in sets):
            found.append(named)
    return found


def _stem(names: Sequence[str]) -> str:
    """The common prefix of names: f of fx, fy, fz."""
    common = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in common).rstrip("_-. [(") or ", ".join(names)


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z]+", name.lower()))
