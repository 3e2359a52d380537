"""The scale of a graph: `pos` holds the coordinates of its source times `pos_scale`.

Networks learn best where edges are about 1 long, so coordinates are multiplied by a constant. The
graph carries that constant, and whoever reads the graph can bring it to another scale. A graph
without `pos_scale` has the coordinates of its source.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, overload

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn._argument_checks import check_positive

#: The values of a graph that are lengths, or lengths over time, and go with a change of scale.
LENGTHS = ("pos", "vel", "edge_shift", "cell")
#: The attribute of a graph: a float; in a batch, a tensor `[G]`.
SCALE = "pos_scale"
#: Scales that differ by less are equal: PyG's batches keep them in float32.
ROUNDING = 1e-6


def scales_of(graph: Data) -> Tensor | None:
    """The scale of a graph `[1]`, or of each graph of a batch `[G]`, in float64; None without."""
    given = graph.get(SCALE)
    if given is None:
        return None
    try:
        found = torch.as_tensor(given, dtype=torch.float64).reshape(-1).cpu()
    except (TypeError, ValueError, RuntimeError):
        found = torch.zeros(1)
    if not found.numel() or not bool((found.isfinite() & (found > 0)).all()):
        raise ValueError(
            f"{SCALE}: is {given!r}; give a positive number, what the coordinates of the source "
            "were multiplied by"
        )
    return found


def factor_to(graph: Data, scale: float) -> float | Tensor:
    """The factor that brings the lengths of a graph to `scale`; `[N, 1]` if it differs by graph."""
    found = scales_of(graph)
    if found is None:
        return float(scale)
    factors = scale / found
    factors = torch.where((factors - 1).abs() <= ROUNDING, 1.0, factors)
    if bool((factors == factors[0]).all()):
        return float(factors[0])
    return factors.to(graph.pos.device)[graph.batch][:, None]


def at_scale(graph: Data, scale: float, *, answers: bool = False) -> Data:
    """The graph with its lengths brought to `scale`, as a copy where anything changes.

    Args:
        graph: a graph or batch; without `pos_scale` it is taken to have the scale of its source.
        scale: what the coordinates of the source shall be multiplied by.
        answers: whether `y` holds coordinates, which are brought to the scale as well.
    """
    factor = factor_to(graph, scale)
    if isinstance(factor, float) and factor == 1.0:
        return graph
    found = copy.copy(graph)
    for name in (*LENGTHS, *(["y"] if answers else [])):
        value = graph.get(name)
        if value is not None:
            rows = factor
            if isinstance(factor, Tensor) and name == "edge_shift":
                rows = factor[graph.edge_index[1]]
            elif isinstance(factor, Tensor) and name == "cell":
                scales = scales_of(graph)
                assert scales is not None
                rows = (scale / scales).to(value.device)[:, None, None]
            found[name] = value * (rows if isinstance(rows, float) else rows.to(value.dtype))
    found[SCALE] = float(scale)
    return found


def stamp(graph: Data, scale: float) -> Data:
    """The graph, carrying the scale that its coordinates have."""
    graph[SCALE] = float(scale)
    return graph


def multiplied(graph: Data, factor: float) -> float:
    """The scale of a single graph after its lengths are multiplied by `factor`."""
    before = scales_of(graph)
    return factor if before is None else float(before[0]) * factor


class AtScale(Sequence[Data]):
    """Graphs, each brought to a scale when it is asked for; `known` is that of graphs without."""

    def __init__(
        self,
        graphs: Sequence[Data],
        scale: float,
        *,
        known: float | None = None,
        answers: bool = False,
    ) -> None:
        self.graphs, self.scale, self.known, self.answers = graphs, scale, known, answers

    def __len__(self) -> int:
        return len(self.graphs)

    @overload
    def __getitem__(self, place: int) -> Data: ...

    @overload
    def __getitem__(self, place: slice) -> AtScale: ...

    def __getitem__(self, place: int | slice) -> Data | AtScale:
        if isinstance(place, slice):
            part = [self.graphs[k] for k in range(len(self.graphs))[place]]
            return AtScale(part, self.scale, known=self.known, answers=self.answers)
        graph = self.graphs[place]
        if self.known is not None and scales_of(graph) is None:
            graph = stamp(copy.copy(graph), self.known)
        return at_scale(graph, self.scale, answers=self.answers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"


def common_scale(parts: Sequence[Sequence[Data]]) -> float:
    """The scale that the first graph carries, 1 without."""
    first = next((part[0] for part in parts if len(part)), None)
    found = None if first is None else scales_of(first)
    return 1.0 if found is None else float(found[0])


def carrying(graphs: Sequence[Data], scale: float, what: str) -> Sequence[Data]:
    """The graphs, each carrying `scale`; graphs that carry another are refused.

    Of a lazy sequence the first graph stands for all. Graphs without a scale are copied.
    """
    check_positive("scale", scale)
    lazy = not isinstance(graphs, list | tuple)
    missing = False
    for number in range(min(len(graphs), 1) if lazy else len(graphs)):
        found = scales_of(graphs[number])
        missing |= found is None
        if found is not None and not math.isclose(float(found[0]), scale, rel_tol=ROUNDING):
            name = getattr(graphs[number], "name", None)
            raise ValueError(
                f"scale: is {scale:g}, but graph {number} of {what}{f' ({name})' if name else ''} "
                f"has coordinates times {float(found[0]):g} ({SCALE}); give all the same scale, as "
                "symgnn.data.splits does"
            )
    if not missing or scale == 1.0:
        return graphs
    if lazy:
        return AtScale(graphs, scale, known=scale)
    return [g if g.get(SCALE) is not None else stamp(copy.copy(g), scale) for g in graphs]


def as_number(value: Any) -> float:
    """A scale that was read from a file or a graph, as a number."""
    found = scales_of(Data(**{SCALE: value}))
    return 1.0 if found is None else float(found[0])
