"""The type of an output, and whether it belongs to the graph, to nodes or to edges."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.audit._cases import Case
from symgnn.audit._representations import blocks_of, matrices, parse_irreps, size_of

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

PLACES = ("graph", "node", "edge", "pair")


@dataclass(frozen=True)
class Output:
    """An output and how it should change when the graph is moved.

    Attributes:
        name: The name in the model's answer.
        type: One of :data:`symgnn.audit._representations.TYPES`, or irreps.
        place: "graph", "node", "edge", or "pair" where the first two axes run over nodes.
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

    def has_rows_for(self, value: Tensor, graphs: Sequence[Graph]) -> bool:
        """Whether a value has as many rows as the graphs have nodes or edges."""
        if not self.rows or not value.dim():
            return True
        if self.place == "graph":
            return True
        name = "num_edges" if self.place == "edge" else "num_nodes"
        count = sum(getattr(graph, name) for graph in graphs)
        axes = 2 if self.place == "pair" else 1
        return value.shape[:axes] == (count,) * axes

    def expected(self, value: Tensor, case: Case) -> Tensor:
        """The expected output after the transformation, given the output `value` before."""
        n = case.graphs[0].pos.size(1)
        if self.type != "invariant":
            value = self._joined(self._moved(self.parts(value, n), case), value)
        if not self.rows or self.place == "graph":
            return value
        if self.place == "edge":
            return value[case.edge_order]
        value = value[case.nodes]
        return value[:, case.nodes] if self.place == "pair" else value

    def _moved(self, parts: Tensor, case: Case) -> Tensor:
        place = "node" if self.place == "pair" else self.place
        if self.type == "coordinates":
            channels = [case.points(place, parts[:, c]) for c in range(parts.size(1))]
            return torch.stack(channels, 1)
        turn = matrices(self.type, case.linear(place))
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
        if self.place == "pair":  # both axes of nodes are rows
            parts = parts.reshape(len(parts) ** 2, -1, parts.size(2))
        sizes = blocks_of(self.type, n) if self.basis is None else [parts.size(2)]
        return torch.cat([function(part) for part in parts.split(sizes, 2)])


def candidates(name: str, value: Tensor, case: Case) -> list[Output]:
    """All that an output of this shape can be, the plainest first."""
    counts = {
        "graph": len(case.graphs),
        "node": sum(graph.num_nodes for graph in case.graphs),
        "edge": sum(graph.num_edges for graph in case.graphs),
        "pair": -2,
    }
    n = case.graphs[0].pos.size(1)
    first = value.size(0) if value.dim() else -1
    found: list[Output] = []
    if len(case.graphs) == 1 and value.shape[:2] == (counts["node"], counts["node"]):
        counts["pair"] = first
    places = [(p, True) for p in PLACES if counts[p] == first]
    if not places or (len(case.graphs) == 1 and counts["graph"] != first):
        places.append(("graph", False))
    for place, rows in places:
        found.append(Output(name, "invariant", place, rows=rows))
        if not rows and len(case.graphs) > 1:
            continue
        plain = Output(name, "pseudoscalar", place, rows=rows)
        start = 2 if place == "pair" else int(rows)  # the first axis that may hold components
        for type_, axes in _layouts(value, start, n):
            basis = _upper(n) if type_ == "upper" else None
            type_ = "voigt" if type_ == "upper" else type_
            found.append(replace(plain, type=type_, axes=axes, basis=basis))
        found.append(plain)
    return found


def _layouts(value: Tensor, start: int, n: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The types with components that the shape allows, each with the axes of the components."""
    free = list(range(start, value.dim()))
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
