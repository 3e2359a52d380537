"""Structures into PyG graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from symgnn.data._rescaling import LENGTHS, stamp
from symgnn.data._task import Task
from symgnn.data.files._edges import joined
from symgnn.data.files._features import as_columns, chosen, node_features
from symgnn.data.files._file_structure import FileStructure
from symgnn.data.files._graph_list import Troubles
from symgnn.progress import bar

#: Attributes of edges that a PyG graph may have, besides `edge_attr`.
OF_EDGES = ("edge_shift", "edge_weight", "edge_type", "angle_attr", "ray_ranks", "topology")


@dataclass(frozen=True)
class GraphForm:
    """Facts that all graphs share."""

    edges: str | None
    radius: float | None
    k: int | None
    elements: Sequence[str]
    features: Sequence[str]
    edge_features: Sequence[str]
    scale: float
    targets: frozenset[str] = frozenset()  # which no graph has besides as its y
    periodic: bool = False  # whether any of them has a cell, so that all have shifts of edges


def feature_names(
    structures: Sequence[FileStructure], level: str, given: list[str] | None, targets: set[str]
) -> list[str]:
    """The values that become features: those asked for, or those that are meant to, no targets."""
    if given is not None:
        return given
    names: dict[str, None] = {}
    for structure in structures:
        names |= dict.fromkeys(structure.features.get(level, ()))
    return [name for name in names if name not in targets]


def edge_features_of(structure: FileStructure, names: Sequence[str]) -> np.ndarray | None:
    """`[E, F]`: that of the file, and the values with these names."""
    parts = [] if structure.edge_attr is None else [structure.edge_attr]
    parts += [chosen(structure, "edge", name, "edge_features") for name in names]
    return np.concatenate([as_columns(part) for part in parts], axis=1) if parts else None


def assemble(
    structures: Sequence[FileStructure],
    ys: Sequence[np.ndarray | None],
    form: GraphForm,
    troubles: Troubles,
    progress: bool | None,
) -> tuple[list[Data], list[FileStructure]]:
    """A graph for each structure, and the structures that have one.

    A structure that cannot become a graph of this form is an error, or left out with its reason.
    """
    graphs: list[Data] = []
    kept: list[FileStructure] = []
    exact = needs_double(ys)
    with bar(f"joining the nodes of {len(structures)} graphs", progress) as on_progress:
        for number, (structure, y) in enumerate(zip(structures, ys, strict=True), 1):
            try:
                graph = graph_of(structure, y, form)
            except ValueError as error:
                if not troubles.skip:
                    raise
                troubles.add(str(error))
                continue
            if exact and y is not None:
                graph.y = torch.as_tensor(y, dtype=torch.float64)
            graphs.append(graph)
            kept.append(structure)
            if on_progress is not None:
                on_progress(number, len(structures))
    return graphs, kept


def needs_double(ys: Sequence[np.ndarray | None]) -> bool:
    """Whether targets are so large beside their spread that float32 would change them visibly."""
    given = [y for y in ys if y is not None]
    if not given or given[0].dtype.kind != "f":
        return False
    values = np.ma.masked_invalid(np.concatenate(given))  # without labels that are missing
    with np.errstate(over="ignore"):
        lost = np.abs(values - values.astype(np.float32)).max(axis=0)
    return bool((lost > 1e-5 * values.std(axis=0)).filled(False).any())


def graph_of(structure: FileStructure, y: np.ndarray | None, form: GraphForm) -> Data:
    """A PyG graph; what belongs to the edges of the file is left out if it gets others."""
    exact = torch.as_tensor(structure.pos, dtype=torch.float64)
    pos = exact.float()
    try:
        edge_index, own, shift = joined(structure, exact, form.edges, form.radius, form.k)
        check_resolution(exact, pos, edge_index, shift)
    except ValueError as error:
        raise type(error)(f"{structure.where}: {error}") from None
    arrays = {
        "z": structure.z,
        "face": structure.face,
        "x": node_features(structure, form.elements, form.features),
        "edge_attr": edge_features_of(structure, form.edge_features) if own else None,
        "y": y,
        **{
            key: value
            for key, value in structure.extra.items()
            if (own or key not in OF_EDGES) and key not in form.targets
        },
    }
    values = {key: as_tensor(value) for key, value in arrays.items() if value is not None}
    for key in ("x", "edge_attr"):
        if key in values:
            values[key] = values[key].float()
    graph = Data(pos=pos, edge_index=edge_index, name=structure.name, **values)
    if not own and (form.periodic or shift is not None):
        n = pos.shape[1]
        graph.edge_shift = pos.new_zeros(edge_index.shape[1], n) if shift is None else shift.float()
        if "cell" not in graph:  # a molecule among crystals
            graph.cell, graph.pbc = pos.new_zeros(1, n, n), torch.zeros(1, n, dtype=torch.bool)
    for name in LENGTHS:
        if name in graph:
            graph[name] = graph[name] * form.scale
    return stamp(graph, form.scale)


def check_resolution(
    exact: torch.Tensor, pos: torch.Tensor, edge_index: torch.Tensor, shift: torch.Tensor | None
) -> None:
    """Coordinates in float32 have edges as long as they were."""
    whole = exact.new_zeros(()) if shift is None else shift
    for start in range(0, edge_index.shape[1], 1 << 20):
        source, target = edge_index[:, start : start + (1 << 20)]
        moved = whole if shift is None else whole[start : start + (1 << 20)]
        lengths, rounded = (
            (p[source] + s - p[target]).norm(dim=1)
            for p, s in ((exact, moved), (pos.double(), moved.float().double()))
        )
        wrong = (lengths - rounded).abs() > 1e-3 * lengths
        if bool(wrong.any()):
            raise ValueError(
                f"pos: is up to {float(exact.abs().max()):.7g}, so that float32 cannot resolve an "
                f"edge of length {float(lengths[wrong].min()):.3g}; subtract a constant, such as "
                "the centroid, from all coordinates"
            )


def as_tensor(value: Any) -> Any:
    """Arrays as tensors, with numbers in float32 and int64; anything else as it is."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        return value
    kinds = {"f": torch.float32, "i": torch.int64, "u": torch.int64, "b": torch.bool}
    return torch.tensor(value, dtype=kinds[value.dtype.kind])


def check_targets(graphs: Sequence[Data], task: Task, scale: float) -> None:
    """There are as many targets as edges or coordinates; lengths are scaled as coordinates are."""
    for graph in graphs:
        if task.level == "edge" and len(graph.y) != graph.num_edges:
            raise ValueError(
                f"columns: {graph.name} has {len(graph.y)} targets of edges, but {graph.num_edges} "
                "edges; use the edges of the file, edges='given'"
            )
        if task.level == "coordinates" and graph.y.shape != graph.pos.shape:
            raise ValueError(
                f"columns: {graph.name} has {graph.y.shape[1]} targets for each node, but "
                f"{graph.pos.shape[1]} coordinates; level='coordinates' needs one for each"
            )
        if task.lengths:
            graph.y = graph.y * scale


def check_alike(graphs: Sequence[Data], structures: Sequence[FileStructure]) -> None:
    """All graphs have the same dimension and the same features."""
    first = graphs[0]
    for graph, structure in zip(graphs[1:], structures[1:], strict=True):
        for name in ("pos", "x", "edge_attr"):
            sizes = [_width(getattr(g, name)) for g in (first, graph)]
            if sizes[0] != sizes[1]:
                what = "coordinates" if name == "pos" else "features"
                raise ValueError(
                    f"{name}: {structures[0].where} has {sizes[0]} {what}, but {structure.where} "
                    f"has {sizes[1]}; read them separately, or convert them to the same form"
                )


def _width(value: torch.Tensor | None) -> int:
    return 0 if value is None else value.shape[1]
