"""Structures into PyG graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from symgnn.data.files.features import as_columns, chosen
from symgnn.data.files.structure import Structure


def feature_names(
    structures: Sequence[Structure], level: str, given: list[str] | None, targets: set[str]
) -> list[str]:
    """The values that become features: those asked for, or those that are meant to, no targets."""
    if given is not None:
        return given
    names: dict[str, None] = {}
    for structure in structures:
        names |= dict.fromkeys(structure.features.get(level, ()))
    return [name for name in names if name not in targets]


def edge_features_of(structure: Structure, names: Sequence[str]) -> np.ndarray | None:
    """`[E, F]`: that of the file, and the values with these names."""
    parts = [] if structure.edge_attr is None else [structure.edge_attr]
    parts += [chosen(structure, "edge", name, "edge_features") for name in names]
    return np.concatenate([as_columns(part) for part in parts], axis=1) if parts else None


def graph_of(
    structure: Structure,
    pos: torch.Tensor,
    edge_index: torch.Tensor,
    x: np.ndarray | None,
    edge_attr: np.ndarray | None,
    y: np.ndarray | None,
) -> Data:
    """A PyG graph of a structure and what was made of it."""
    values: dict[str, Any] = {"pos": pos, "edge_index": edge_index}
    for name, array in (("z", structure.z), ("face", structure.face)):
        if array is not None:
            values[name] = torch.as_tensor(array, dtype=torch.int64)
    for name, array in (("x", x), ("edge_attr", edge_attr)):
        if array is not None:
            values[name] = torch.as_tensor(array, dtype=torch.float32)
    if y is not None:
        whole = y.dtype.kind in "iu"
        values["y"] = torch.as_tensor(y, dtype=torch.int64 if whole else torch.float32)
    for name, value in structure.extra.items():
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
        values.setdefault(name, torch.as_tensor(value) if is_array else value)
    return Data(**values, name=structure.name)


def as_coordinates(graphs: Sequence[Data], scale: float) -> None:
    """Targets that are coordinates are as many, and scaled alike."""
    for graph in graphs:
        if graph.y.shape != graph.pos.shape:
            raise ValueError(
                f"columns: {graph.name} has {graph.y.shape[1]} targets for each node, but "
                f"{graph.pos.shape[1]} coordinates; level='coordinates' needs one for each"
            )
        graph.y = graph.y * scale


def check_alike(graphs: Sequence[Data], structures: Sequence[Structure]) -> None:
    """All graphs have the same dimension and the same features."""
    first = graphs[0]
    for graph, structure in zip(graphs[1:], structures[1:], strict=True):
        for name in ("pos", "x", "edge_attr"):
            sizes = [_width(getattr(g, name)) for g in (first, graph)]
            if sizes[0] != sizes[1]:
                what = "coordinates" if name == "pos" else "features"
                raise ValueError(
                    f"{name}: {structures[0].where} has {sizes[0]} {what}, but {structure.where} "
                    f"has {sizes[1]}; read them apart, or bring them to the same form"
                )


def _width(value: torch.Tensor | None) -> int:
    return 0 if value is None else value.shape[1]
