"""Checks of a dataset: files, counts, splits and every graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch_geometric.data import Data

from symgnn.data._dataset_store import PathLike, find, wrong
from symgnn.data._registry import dataset
from symgnn.data._task import Splits, Task
from symgnn.progress import bar

#: At most so many faults are listed.
MOST = 20


def check_files(
    name: str, *, root: PathLike | None = None, source: PathLike | None = None
) -> list[str]:
    """The faults of the source files of a dataset that are present."""
    faults = []
    local = None if source in ("sample", "generated", "qm9pack") else source
    for each in dataset(name).files:
        path = find(each, root=root, local=local)
        fault = wrong(each, path) if path is not None else ""
        if fault:
            faults.append(f"{path}: {fault}")
    return faults


def check_graphs(splits: Splits, progress: bool | None = None) -> list[str]:
    """The faults of the graphs, a line each; at most 20 lines."""
    faults = []
    for fault in _faults(splits, progress):
        faults.append(fault)
        if len(faults) >= MOST:
            break
    return faults


def _faults(splits: Splits, progress: bool | None) -> Iterator[str]:
    numbers: dict[int, str] = {}
    for split in ("train", "validation", "test"):
        graphs = getattr(splits, split)
        if not len(graphs):
            yield f"{split}: has no graphs"
        with bar(f"checking {split}", progress) as on_progress:
            for index in range(len(graphs)):
                data = graphs[index]
                yield from (f"{split} {index}: {fault}" for fault in _of_graph(data, splits.task))
                if "number" in data:
                    if data.number in numbers:
                        yield f"{split} {index}: is the same as {numbers[data.number]}"
                    numbers[data.number] = f"{split} {index}"
                if on_progress is not None:
                    on_progress(index + 1, len(graphs))


def _of_graph(data: Data, task: Task) -> Iterator[str]:
    count = len(data.pos)
    for name, value in data.to_dict().items():
        if isinstance(value, torch.Tensor) and not value.isfinite().all():
            yield f"{name} is not finite"
    edges = data.edge_index
    if edges.numel() and not (int(edges.min()) >= 0 and int(edges.max()) < count):
        yield "edge_index names nodes that are not there"
    if bool((edges[0] == edges[1]).any()):
        yield "edge_index has loops"
    if len(torch.unique(edges[0] * count + edges[1])) < edges.shape[1]:
        yield "edge_index has an edge twice"
    rows = {"graph": 1, "node": count, "edge": edges.shape[1]}[task.place]
    if len(data.y) != rows:
        yield f"y has {len(data.y)} rows, not {rows}"
    if task.kind == "classification":
        if int(data.y.min()) < 0 or int(data.y.max()) >= len(task.classes):
            yield "y names a class that is not there"
    elif data.y.shape[1] != len(task.targets):
        yield f"y has {data.y.shape[1]} columns, not {len(task.targets)}"


def facts(splits: Splits) -> dict[str, Any]:
    """Sizes, and means over the first thousand training graphs, for a summary."""
    some = [splits.train[index] for index in range(min(1000, len(splits.train)))]
    lengths = torch.cat(
        [(data.pos[data.edge_index[0]] - data.pos[data.edge_index[1]]).norm(dim=1) for data in some]
    )
    return {
        "graphs": tuple(len(part) for part in (splits.train, splits.validation, splits.test)),
        "nodes": sum(len(data.pos) for data in some) / len(some),
        "edges": sum(data.edge_index.shape[1] for data in some) / len(some),
        "median edge": float(lengths.median()) if len(lengths) else 0.0,
        "scale": splits.scale,
    }
