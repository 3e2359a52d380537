"""What an output is: a number, a vector or a point, of the graph, of nodes or of edges."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symgnn.audit.elements import Case

TYPES = ("invariant", "vector", "coordinates")
PLACES = ("graph", "node", "edge")


@dataclass(frozen=True)
class Output:
    """An output and how it should change when the graph is moved.

    `axis` is the axis of the vectors, which may hold several in a row; None for invariants.
    `rows` is False where the first axis does not run over graphs, nodes or edges.
    """

    name: str
    type: str
    place: str
    axis: int | None = None
    rows: bool = True
    known: str = "inferred"  # or "told", or "unclear"

    def __str__(self) -> str:
        return f"{self.type} per {self.place}"

    def expected(self, value: Tensor, case: Case) -> Tensor:
        """What has to come out after, if `value` came out before."""
        value = value if self.rows else value.unsqueeze(0)
        if self.axis is not None:
            axis = self.axis if self.rows else self.axis + 1
            value = self._moved(value, axis, case)
        if self.place == "node":
            value = value[case.nodes]
        elif self.place == "edge":
            value = value[case.edge_order]
        return value if self.rows else value.squeeze(0)

    def _moved(self, value: Tensor, axis: int, case: Case) -> Tensor:
        n = case.graphs[0].pos.size(1)
        last = value.movedim(axis, -1)
        vectors = last.reshape(len(value), -1, n)  # [R, C, n]
        if self.type == "vector":
            moved = torch.einsum("rij,rcj->rci", case.linear(self.place), vectors)
        else:
            channels = [case.points(self.place, vectors[:, c]) for c in range(vectors.size(1))]
            moved = torch.stack(channels, 1)
        return moved.reshape(last.shape).movedim(-1, axis)

    def channels(self, value: Tensor) -> Tensor:
        """The value as `[rows, channels]`; what turns into one another is one channel."""
        if self.axis is not None or value.dim() < 2:
            return value.reshape(-1, 1)
        return value.reshape(len(value), -1) if self.rows else value.reshape(1, -1)


def candidates(name: str, value: Tensor, case: Case) -> list[Output]:
    """All that an output of this shape can be."""
    counts = {
        "graph": len(case.graphs),
        "node": sum(graph.num_nodes for graph in case.graphs),
        "edge": sum(graph.num_edges for graph in case.graphs),
    }
    n = case.graphs[0].pos.size(1)
    first = value.size(0) if value.dim() else -1
    found = []
    for place in [p for p in PLACES if counts[p] == first] or ["graph"]:
        rows = counts[place] == first
        found.append(Output(name, "invariant", place, rows=rows))
        if not rows and len(case.graphs) > 1:
            continue
        axes = [a for a in range(1 if rows else 0, value.dim()) if value.size(a) % n == 0]
        exact = [a for a in axes if value.size(a) == n] or axes[-1:]
        found += [Output(name, kind, place, a, rows) for a in exact for kind in TYPES[1:]]
    return found


def told(name: str, text: str, options: Sequence[Output]) -> list[Output]:
    """The candidates that fit what the user said, such as "vector" or "vector per edge"."""
    kind, _, place = text.partition(" per ")
    if kind not in TYPES or (place and place not in PLACES):
        near = difflib.get_close_matches(kind, TYPES, 1, 0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"outputs: {name!r} is said to be {text!r}; {hint}choose from {', '.join(TYPES)}, with "
            "' per graph', ' per node' or ' per edge' if it is not clear"
        )
    fits = [o for o in options if o.type == kind and place in ("", o.place)]
    if not fits:
        can = ", ".join(dict.fromkeys(str(o) for o in options))
        raise ValueError(f"outputs: {name!r} cannot be {text!r} by its shape, only {can}")
    return [Output(o.name, o.type, o.place, o.axis, o.rows, "told") for o in fits]


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


def choose(
    options: Sequence[Output], mismatch: Mapping[str, Sequence[float]], tolerance: float
) -> Output:
    """The candidate that fits best.

    `mismatch` has an error for each candidate: of permutations, of rotations and of translations.
    """

    def best(left: list[int], kind: str) -> list[int]:
        errors = mismatch[kind]
        least = min(errors[k] for k in left)
        return [k for k in left if errors[k] <= max(4 * least, tolerance)]

    left = list(range(len(options)))
    if len({option.place for option in options}) > 1:
        left = best(left, "permutation")
    left = best(left, "rotation")
    kept = [k for k in left if mismatch["translation"][k] <= tolerance]
    index = kept[0] if kept else min(left, key=lambda k: mismatch["translation"][k])
    found = options[index]
    unclear = mismatch["rotation"][index] > 0.1 and len(options) > 1
    return replace(found, known="unclear") if unclear and found.known == "inferred" else found
