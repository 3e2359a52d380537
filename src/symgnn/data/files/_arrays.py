"""Tensors: .npz, .pt, and PyG graphs in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from symgnn._argument_checks import shown
from symgnn.data._npz import load_npz
from symgnn.data._rescaling import LENGTHS, SCALE, as_number
from symgnn.data.files._file_structure import FileStructure, How, Piece

FIELDS = ("z", "x", "edge_attr", "face")
#: The classes of which a saved PyG graph consists; nothing else is unpickled.
SAFE = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


def parse_npz(piece: Piece, how: How) -> list[FileStructure]:
    """A graph from arrays named as PyG's; with `pos [T, N, n]` (or `R`), T graphs."""
    try:
        arrays = load_npz(piece.path)
    except ValueError as error:
        reason = shown(str(error).partition("\n")[0])
        raise ValueError(f"cannot be read ({reason}); save arrays with numpy.savez") from None
    if "pos" not in arrays and "R" in arrays:
        arrays["pos"] = arrays.pop("R")
    stem = piece.path.stem
    pos = arrays.get("pos")
    if pos is None or pos.ndim != 3:
        return [from_mapping(arrays, stem, piece.where, (stem, piece.path.name))]
    frames = len(pos)
    each = {name for name, array in arrays.items() if array.ndim and len(array) == frames}
    # of these it is plain by their axes, also where there are as many frames as nodes
    static = {"z": 1, "x": 2, "edge_attr": 2, "edge_index": 2, "face": 2}
    each -= {name for name in each & static.keys() if arrays[name].ndim == static[name]}
    return [
        from_mapping(
            {name: array[t] if name in each else array for name, array in arrays.items()},
            f"{stem}-{t}",
            f"{piece.where}, frame {t}",
        )
        for t in range(frames)
    ]


def parse_pt(piece: Piece, how: How) -> list[FileStructure]:
    """A PyG graph, a list of them, or dictionaries of tensors; loaded with weights only."""
    with torch.serialization.safe_globals(SAFE):
        try:
            loaded = torch.load(piece.path, map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged or foreign file raises almost anything
            wanted = "save a list of PyG Data, or dictionaries of tensors, with torch.save"
            said = str(error).partition("Unsupported global: GLOBAL ")[2].split()
            reason = f"it holds a {said[0]}" if said else "it is damaged, or not torch's"
            raise ValueError(f"cannot be read with weights only ({reason}); {wanted}") from None
    stem = piece.path.stem
    if not isinstance(loaded, list | tuple):
        return [from_graph(loaded, stem, piece.where, (stem, piece.path.name))]
    return [
        from_graph(graph, f"{stem}-{index}", f"{piece.where}, graph {index}")
        for index, graph in enumerate(loaded)
    ]


def from_graph(graph: Any, name: str, where: str, aliases: tuple[str, ...] = ()) -> FileStructure:
    """A PyG graph, or a dictionary."""
    if isinstance(graph, Data):
        graph = graph.to_dict()
    if not isinstance(graph, Mapping):
        raise ValueError(f"{where}: is a {type(graph).__name__}; give a PyG Data")
    return from_mapping(graph, name, where, aliases)


def from_mapping(
    given: Mapping[str, Any], name: str, where: str, aliases: tuple[str, ...] = ()
) -> FileStructure:
    """Arrays named as in PyG; others are values of nodes, edges or graph, as their shapes allow."""
    arrays = {
        key: value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        for key, value in given.items()
        if value is not None
    }
    scale = as_number(arrays.pop(SCALE, None))
    for key in LENGTHS:
        if key in arrays and scale != 1.0:
            arrays[key] = np.asarray(arrays[key], dtype=np.float64) / scale
    pos = arrays.pop("pos", None)
    if pos is None:
        raise ValueError(f"{where}: has no pos, but {', '.join(arrays) or 'nothing'}")
    edges = arrays.pop("edge_index", None)
    structure = FileStructure(
        str(arrays.pop("name", name)),
        where,
        np.asarray(pos, dtype=np.float64),
        edges=None if edges is None else np.asarray(edges),
        joined=None if edges is None else "given",
        aliases=aliases,
        pos_scale=scale,
    )
    for key in FIELDS:
        if key in arrays:
            setattr(structure, key, np.asarray(arrays.pop(key)))
    structure.extra = {key: value for key, value in arrays.items() if key != "y"}
    if "u" in arrays and np.asarray(arrays["u"]).ndim < 2:
        structure.extra["u"] = np.asarray(arrays["u"]).reshape(1, -1)
    count = {"node": len(pos), "edge": -1 if edges is None else np.shape(edges)[-1]}
    for key, value in arrays.items():
        array = np.asarray(value)
        if array.dtype.kind not in "fiubU":
            continue
        for level, size in count.items():
            if array.ndim and len(array) == size:
                structure.values[level][key] = array
        structure.values["graph"][key] = array.reshape(-1)
    return structure
