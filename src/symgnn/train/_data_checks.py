"""Checks of the data of a run: answers, values that are left out, and data of an earlier run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn._argument_checks import unknown_name
from symgnn.data._task import Task
from symgnn.train._config import Config
from symgnn.train._loader import READ


def check_answers(graph: Data, task: Task, where: str, masked: bool = False) -> None:
    """The answers have the shape and type that the task has, and are finite.

    Where they are `masked`, some may be missing: NaN, or the class -1.
    """
    y = getattr(graph, "y", None)
    if not isinstance(y, Tensor):
        raise ValueError(f"y: {where} has no y; give each graph its target")
    rows = {"graph": 1, "edge": graph.num_edges, "node": graph.num_nodes}[task.place]
    hint = "leave that graph out, or train without such labels by data.missing: mask"
    if task.kind == "classification":
        if y.is_floating_point() or y.shape != (rows,):
            raise ValueError(f"y: {where} has {y.dtype} {list(y.shape)}; give whole numbers")
        if y.numel() and not -1 <= int(y.min()) <= int(y.max()) < len(task.classes):
            raise ValueError(f"y: {where} has a class that is not one of 0 to {task.outputs - 1}")
        if not masked and bool((y < 0).any()):
            raise ValueError(f"y: {where} has the class -1, which is a missing label; {hint}")
    elif y.shape != (rows, len(task.targets)):
        width = len(task.targets)
        raise ValueError(f"y: {where} has shape {list(y.shape)}; give [{rows}, {width}]")
    elif not masked and bool(_missing(y, task).any()):
        raise ValueError(f"y: {where} has a missing label (NaN); {hint}")
    elif bool(y.isinf().any()):
        raise ValueError(f"y: {where} has a value that is not finite; leave that graph out")


def _missing(y: Tensor, task: Task) -> Tensor:
    """Which labels are missing; energy and stress of a potential stand in the first row alone."""
    found = y.isnan()
    if task.level == "potential" and len(y):
        whole = ["force" not in name for name in task.targets]
        found = torch.cat([found[:1], found[1:] & ~torch.tensor(whole)])
    return found


def dropped(config: Config) -> list[str]:
    """The values that the section `data` takes away."""
    drop = config.data.get("drop") or []
    drop = [drop] if isinstance(drop, str) else drop
    if not isinstance(drop, list | tuple) or not all(isinstance(name, str) for name in drop):
        raise ValueError(f"data.drop: is {drop!r}; give names of values, such as [x]")
    return list(drop)


def check_drop(graph: Data, drop: Sequence[str]) -> None:
    """Check `data.drop`: graphs have these values, and can be trained on without them."""
    known = [n for n in (*graph.keys(), *READ) if n not in ("pos", "edge_index", "y", "name")]
    for name in drop:
        if name not in known:
            known = sorted(set(known))
            raise ValueError(unknown_name("data.drop", name, known, "a value that can be left out"))


def check_same(record: Mapping[str, Any], now: Mapping[str, Any], what_else: str) -> None:
    """The data are those of the record of a run; `what_else` is to be done if they are not."""
    for key in ("files", "graphs", "sha256"):
        before, after = (each.get("about", {}).get(key) for each in (record, now))
        if before is not None and after is not None and before != after:
            said = "a file has changed" if key == "sha256" else f"{after} {key}, not {before}"
            raise ValueError(
                f"data: differ from the training data of the run ({said}); {what_else}"
            )
    if "task" in record:  # perhaps in an older form
        record = {**record, "task": asdict(Task.of(record["task"]))}
    for key in ("task", "counts", "sizes", "scale", "scaler", "class_counts"):
        if key in now and key in record and not _alike(record[key], now[key]):
            raise ValueError(
                f"data: differ from the training data of the run ({key}: {now[key]}, not "
                f"{record[key]}); {what_else}"
            )


def _alike(one: Any, other: Any) -> bool:
    """Equal, numbers but for rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)
