"""The task of graphs in memory, inferred from the shape and type of their `y`."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import Tensor
from torch_geometric.data import Data

from symgnn.data._task import VECTOR_LEVELS, Task
from symgnn.data.files._graph_list import Graphs

LEVELS = ("graph", "node", "edge", "coordinates", *VECTOR_LEVELS)


def with_task(graphs: Sequence[Data], level: str | None = None) -> tuple[Graphs, Task]:
    """Graphs whose `y` has the shape that their task asks for, and the task.

    Whole numbers are classes, other numbers are targets of regression. One row of `y` belongs to
    the graph, as many rows as there are nodes or edges to these.

    Args:
        graphs: Graphs with `y`; those that `symgnn.data.read` gave know their task.
        level: What `y` belongs to, where its shape fits several.

    Raises:
        ValueError: in one line, where the shape fits nothing or several, or may be vectors.
    """
    if isinstance(graphs, Graphs) and graphs.task is not None:
        if level not in (None, graphs.task.level):
            raise ValueError(f"level: is {level!r}, but the graphs have {graphs.task.level!r}")
        return graphs, graphs.task
    if level is not None and level not in LEVELS:
        raise ValueError(f"level: is {level!r}; choose from {', '.join(LEVELS)}")
    for number, graph in enumerate(graphs):
        if not isinstance(getattr(graph, "y", None), Tensor):
            raise ValueError(f"y: graph {number} has no y; give each graph its target as a tensor")
    place, n = level, graphs[0].pos.shape[1]
    if level == "coordinates" or level in VECTOR_LEVELS:
        place = VECTOR_LEVELS.get(level, "node")
    if place is None:
        place = _place(graphs)
    found = Graphs([_shaped(graph, place, k) for k, graph in enumerate(graphs)])
    widths = {graph.y.shape[1] for graph in found}
    if len(widths) > 1:
        raise ValueError(
            f"y: has {min(widths)} to {max(widths)} numbers in a row; give the same number in each"
        )
    width = widths.pop()
    if not found[0].y.is_floating_point():
        return _classes(found, place, width)
    if level is None and width == n and (n > 1) and place in ("graph", "node"):
        raise ValueError(
            f"level: is not given, and y has {n} numbers for each {place}, as many as there are "
            f"coordinates; give {place!r} if they are invariant, '{place}-vectors' if they rotate "
            "with the graph" + (", 'coordinates' if they are points" if place == "node" else "")
        )
    names = tuple(f"y{k}" for k in range(width)) if width > 1 else ("y",)
    vectors: tuple[str, ...] = ()
    if level in VECTOR_LEVELS:
        if width % n:
            raise ValueError(f"y: has {width} numbers in a row; vectors have {n} each")
        vectors = tuple(f"y{k}" for k in range(width // n)) if width > n else ("y",)
        names = tuple(f"{vector}_{axis}" for vector in vectors for axis in "xyzw"[:n] or range(n))
        if n > 4:
            names = tuple(f"{vector}_{axis}" for vector in vectors for axis in range(n))
    return found, Task(level or place, "regression", names, vectors=vectors)  # type: ignore[arg-type]


def _place(graphs: Sequence[Data]) -> str:
    """The levels whose number of rows fits every `y`."""
    fits = {
        "graph": all(g.y.numel() == 1 or (g.y.dim() == 2 and g.y.shape[0] == 1) for g in graphs),
        "node": all(g.y.dim() > 0 and g.y.shape[0] == g.num_nodes for g in graphs),
        "edge": all(g.y.dim() > 0 and g.y.shape[0] == g.num_edges for g in graphs),
    }
    found = [place for place, fit in fits.items() if fit]
    if len(found) == 1:
        return found[0]
    shape = list(graphs[0].y.shape)
    if not found:
        raise ValueError(
            f"y: has shape {shape} in the first graph; give [1, targets] for graphs, "
            "[N, targets] for nodes or [E, targets] for edges, whole numbers [rows] for classes"
        )
    raise ValueError(
        f"level: is not given, and y, of shape {shape} in the first graph, fits "
        f"{' and '.join(found)}; give one of them"
    )


def _shaped(graph: Data, place: str, number: int) -> Data:
    """A copy with `y [rows, width]`."""
    rows = {"graph": 1, "node": graph.num_nodes, "edge": graph.num_edges}[place]
    y = graph.y
    if rows and y.numel() % rows == 0 and (y.dim() <= 1 or y.shape[0] == rows):
        graph = copy.copy(graph)
        graph.y = y.reshape(rows, -1)
        return graph
    raise ValueError(
        f"y: graph {number} has shape {list(y.shape)}; give one row for each {place}, "
        f"[{rows}, targets]"
    )


def _classes(graphs: Graphs, place: str, width: int) -> tuple[Graphs, Task]:
    if width != 1:
        raise ValueError(f"y: has {width} whole numbers in a row; give one class for each {place}")
    for graph in graphs:
        graph.y = graph.y.reshape(-1).long()
    least = min(int(g.y.min()) for g in graphs if g.y.numel())
    most = max(int(g.y.max()) for g in graphs if g.y.numel())
    if least < 0:
        raise ValueError(f"y: has the class {least}; number classes from 0")
    classes = tuple(str(k) for k in range(max(most + 1, 2)))
    return graphs, Task(place, "classification", ("y",), classes=classes)  # type: ignore[arg-type]
