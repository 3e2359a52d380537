"""What an output is: its type, and whether it belongs to the graph, to nodes or to edges."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symgnn.audit._cases import Case
from symgnn.audit._representations import (
    blocks_of,
    canonical,
    matrices,
    parse_irreps,
    parse_weight,
    size_of,
)

PLACES = ("graph", "node", "edge")
#: Types that a name rules out: an energy that changes its sign in a mirror is a fault.
NEVER = {
    "energy": ("pseudoscalar",),
    "energies": ("pseudoscalar",),
    "force": ("pseudovector", "coordinates"),
    "dipole": ("pseudovector", "coordinates"),
    "velocit": ("pseudovector",),
    "charge": ("pseudoscalar",),
}


#: Types that a name asks for, where nothing fits.
USUAL = {
    "energy": ("invariant",),
    "force": ("vector",),
    "dipole": ("vector",),
    "stress": ("voigt", "tensor"),
    "virial": ("voigt", "tensor"),
    "polarizab": ("tensor", "voigt"),
}


@dataclass(frozen=True)
class Output:
    """An output and how it should change when the graph is moved.

    Attributes:
        name: The name in the model's answer.
        type: One of :data:`symgnn.audit._representations.TYPES`, or irreps.
        place: "graph", "node" or "edge".
        axes: The axes of the components, which may hold several values in a row; none for
            invariants.
        rows: False where the first axis does not run over graphs, nodes or edges.
        known: "inferred", "told" or "unclear".
        basis: The matrix `[d, r]` from the usual components to those of the output, or None.
    """

    name: str
    type: str
    place: str
    axes: tuple[int, ...] = ()
    rows: bool = True
    known: str = "inferred"
    basis: Tensor | None = None

    def __str__(self) -> str:
        own = " in a basis of its own" if self.basis is not None and self.is_irreps else ""
        return f"{self.type}{own} per {self.place}"

    @property
    def is_irreps(self) -> bool:
        """Whether the type is one in e3nn's notation."""
        return parse_irreps(self.type) is not None

    def expected(self, value: Tensor, case: Case) -> Tensor:
        """What has to come out after, if `value` came out before."""
        n = case.graphs[0].pos.size(1)
        if self.type != "invariant":
            value = self._joined(self._moved(self.parts(value, n), case), value)
        rows = {"node": case.nodes, "edge": case.edge_order}.get(self.place)
        if rows is None:
            return value
        return value[rows] if self.rows else value

    def _moved(self, parts: Tensor, case: Case) -> Tensor:
        if self.type == "coordinates":
            channels = [case.points(self.place, parts[:, c]) for c in range(parts.size(1))]
            return torch.stack(channels, 1)
        turn = matrices(self.type, case.linear(self.place))
        if self.basis is not None:
            turn = self.basis @ turn @ torch.linalg.pinv(self.basis)
        return torch.einsum("rij,rcj->rci", turn, parts)

    def size(self, n: int) -> int:
        """The number of components of one value."""
        return size_of(self.type, n) if self.basis is None else len(self.basis)

    def parts(self, value: Tensor, n: int) -> Tensor:
        """The value as `[rows, channels, components]`."""
        value = value if self.rows else value.unsqueeze(0)
        axes = [a if self.rows else a + 1 for a in self.axes]
        last = value.movedim(axes, list(range(-len(axes), 0))) if axes else value
        return last.reshape(len(value) if value.dim() else 1, -1, self.size(n))

    def _joined(self, parts: Tensor, like: Tensor) -> Tensor:
        value = like if self.rows else like.unsqueeze(0)
        axes = [a if self.rows else a + 1 for a in self.axes]
        ends = list(range(-len(axes), 0))
        shape = value.movedim(axes, ends).shape if axes else value.shape
        value = parts.reshape(shape)
        value = value.movedim(ends, axes) if axes else value
        return value if self.rows else value.squeeze(0)

    def peaks(self, change: Tensor, n: int) -> Tensor:
        """The largest entry of each channel, `[K]`; components that mix are one channel."""
        return self._reduced(change, n, lambda part: part.abs().amax((0, 2)))

    def deviations(self, change: Tensor, n: int) -> Tensor:
        """The root mean square of each channel, `[K]`."""
        return self._reduced(change, n, lambda part: part.square().mean((0, 2)).sqrt())

    def _reduced(self, change: Tensor, n: int, function) -> Tensor:  # type: ignore[no-untyped-def]
        parts = self.parts(change, n)
        if parts.numel() == 0:
            return torch.zeros(0, dtype=torch.float64)
        sizes = blocks_of(self.type, n) if self.basis is None else [parts.size(2)]
        return torch.cat([function(part) for part in parts.split(sizes, 2)])


def candidates(name: str, value: Tensor, case: Case) -> list[Output]:
    """All that an output of this shape can be, the plainest first."""
    counts = {
        "graph": len(case.graphs),
        "node": sum(graph.num_nodes for graph in case.graphs),
        "edge": sum(graph.num_edges for graph in case.graphs),
    }
    n = case.graphs[0].pos.size(1)
    first = value.size(0) if value.dim() else -1
    found: list[Output] = []
    places = [(p, True) for p in PLACES if counts[p] == first]
    if not places or (len(case.graphs) == 1 and counts["graph"] != first):
        places.append(("graph", False))
    for place, rows in places:
        found.append(Output(name, "invariant", place, rows=rows))
        if not rows and len(case.graphs) > 1:
            continue
        plain = Output(name, "pseudoscalar", place, rows=rows)
        for type_, axes in _layouts(value, rows, n):
            basis = _upper(n) if type_ == "upper" else None
            type_ = "voigt" if type_ == "upper" else type_
            found.append(replace(plain, type=type_, axes=axes, basis=basis))
        found.append(plain)
    return found


def _layouts(value: Tensor, rows: bool, n: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The types with components that the shape allows, each with the axes of the components."""
    free = list(range(1 if rows else 0, value.dim()))
    axes = [a for a in free if value.size(a) % n == 0]
    exact = [a for a in axes if value.size(a) == n] or axes[-1:]
    for axis in exact:
        yield "vector", (axis,)
        yield "coordinates", (axis,)
        if n == 3:
            yield "pseudovector", (axis,)
    if n == 1:
        return
    for a, b in itertools.pairwise(free):
        if value.size(a) == value.size(b) == n:
            yield "tensor", (a, b)
    for axis in [a for a in free if value.size(a) == n * n]:
        yield "tensor", (axis,)
    for axis in [a for a in free if value.size(a) == n * (n + 1) // 2]:
        yield "voigt", (axis,)
        if n > 2:
            yield "upper", (axis,)


def _upper(n: int) -> Tensor:
    """From Voigt's order to that of an upper triangle, row by row: xx, xy, xz, yy, yz, zz."""
    off = [(i, j) for i in range(n) for j in range(i + 1, n)]
    voigt = [(i, i) for i in range(n)] + sorted(off, key=lambda pair: (-pair[1], -pair[0]))
    upper = [(i, j) for i in range(n) for j in range(i, n)]
    matrix = torch.zeros(len(upper), len(voigt), dtype=torch.float64)
    for row, pair in enumerate(upper):
        matrix[row, voigt.index(pair)] = 1.0
    return matrix


def told(name: str, text: str, options: Sequence[Output], value: Tensor, n: int) -> list[Output]:
    """The candidates that fit what the user said, such as "vector" or "vector per edge"."""
    kind, _, place = text.partition(" per ")
    kind = canonical(kind, name, "outputs", n)
    if place and place not in PLACES:
        raise ValueError(
            f"outputs: {name!r} is said to be per {place!r}; choose ' per graph', ' per node' or "
            "' per edge'"
        )
    named = "tensor" if kind == "symmetric tensor" else kind
    named = "invariant" if parse_weight(kind) is not None else named
    fits = [o for o in options if o.type == named and o.basis is None and place in ("", o.place)]
    if parse_irreps(kind) is not None:
        fits = [o for o in _with_irreps(kind, options, value, n) if place in ("", o.place)]
    if not fits:
        can = ", ".join(dict.fromkeys(str(o) for o in options))
        raise ValueError(
            f"outputs: {name!r} cannot be {text!r} by its shape {list(value.shape)}, only {can}, "
            "or irreps"
        )
    return [replace(o, type=kind, known="told") for o in fits]


def _with_irreps(irreps: str, options: Sequence[Output], value: Tensor, n: int) -> Iterator[Output]:
    size = size_of(irreps, n)
    for plain in [o for o in options if o.type == "invariant"]:
        free = range(1 if plain.rows else 0, value.dim())
        axes = [a for a in free if value.size(a) == size]
        axes = axes or [a for a in free if value.size(a) % size == 0][-1:]
        if size == 1:
            yield replace(plain, type=irreps, axes=())
            continue
        for axis in axes[-1:]:
            yield replace(plain, type=irreps, axes=(axis,))


def chosen_names(found: Sequence[str], outputs: Mapping[str, str] | str | None) -> dict[str, str]:
    """Each output to audit with what the user said of it, "" where nothing."""
    if outputs is None:
        return dict.fromkeys(found, "")
    if isinstance(outputs, str):
        if len(found) > 1:
            raise ValueError(f"outputs: there are {', '.join(found)}; pass a type for each by name")
        return {found[0]: outputs}
    for name in outputs:
        if name not in found:
            near = difflib.get_close_matches(str(name), found, 1, 0.4)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(
                f"outputs: the model gives no {name!r}; {hint}choose from {', '.join(found)}"
            )
    return dict(outputs)


def ruled_out(option: Output) -> bool:
    """Whether the name of an output says that it cannot be of this type."""
    last = option.name.rpartition(".")[2].lower()
    return any(word in last and option.type in types for word, types in NEVER.items())


def _usual(option: Output) -> bool:
    last = option.name.rpartition(".")[2].lower()
    return any(word in last and option.type in types for word, types in USUAL.items())


def choose(
    options: Sequence[Output], mismatch: Mapping[str, Sequence[float]], tolerance: float
) -> tuple[Output, float]:
    """The candidate that fits best, and its error under rotations.

    `mismatch` has an error for each candidate and each of "permutation", "rotation", "reflection"
    and "translation".
    """

    def best(left: list[int], kind: str) -> list[int]:
        errors = mismatch[kind]
        least = min(errors[k] for k in left)
        return [k for k in left if errors[k] <= max(4 * least, tolerance)]

    left = [
        k for k, option in enumerate(options) if option.known == "told" or not ruled_out(option)
    ]
    if len({option.place for option in options}) > 1:
        left = best(left, "permutation")
    if min(mismatch["rotation"][k] for k in left) > tolerance:
        left = [k for k in left if _usual(options[k])] or left
    left = best(left, "rotation")
    kept = [k for k in left if mismatch["translation"][k] <= tolerance]
    left = kept or sorted(left, key=lambda k: mismatch["translation"][k])[:1]
    kept = [k for k in left if mismatch["reflection"][k] <= tolerance]
    index = (kept or left)[0]
    found, error = options[index], mismatch["rotation"][index]
    several = len({o.type for o in options} - {"pseudoscalar"}) > 1
    unclear = error > 0.1 and several and found.known == "inferred"
    return (replace(found, known="unclear") if unclear else found), error
