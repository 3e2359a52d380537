"""The graphs and the task of whatever is given: a list, splits, a dataset, a folder, a config."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data import DATASETS, Splits, Task
from symgnn.data._task_of_graphs import with_task
from symgnn.train._config import check_data
from symgnn.train._run_data import load

#: Fewer graphs say nothing.
LEAST_GRAPHS = 20


def read_given(
    given: Any, level: str | None = None, options: Mapping[str, Any] | None = None
) -> tuple[list[Data], Task, dict[str, Any]]:
    """Graphs with their task, and the section `data` of a config that names them.

    The graphs of splits are those to train on and to choose by: the test set stays unseen.

    Raises:
        ValueError: in one line, for data that cannot be judged.
    """
    section: dict[str, Any] = {}
    options = dict(options or {})
    if isinstance(given, str | os.PathLike):
        given, section = _named(given, options, level)
    elif isinstance(given, Mapping):
        section = check_data({**given, **options})
        given = load(section)
    elif options:
        raise ValueError(f"data: is {options}; graphs in memory take no options: leave it out")
    if isinstance(given, Splits):
        if level not in (None, given.task.level):
            raise ValueError(f"level: is {level!r}, but the graphs have {given.task.level!r}")
        graphs = [*given.train, *given.validation]
        task = given.task
    elif isinstance(given, Sequence) and not isinstance(given, str) and not len(given):
        raise ValueError(f"graphs: there are 0; at least {LEAST_GRAPHS} are needed to say anything")
    elif isinstance(given, Sequence) and all(isinstance(graph, Data) for graph in given):
        _check_coordinates(given)
        known, task = with_task(given, level)
        graphs = list(known)
    else:
        raise ValueError(
            f"graphs: is {_described(given)}; give a list of PyG Data, Splits, the name of a "
            "dataset, a folder or a config"
        )
    _check(graphs, task)
    return graphs, task, section


def _described(given: Any) -> str:
    """What was given, by its type, such as 'a list of dict'."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        others = sorted({type(part).__name__ for part in given if not isinstance(part, Data)})
        return f"a {type(given).__name__} of {', '.join(others)}"
    return f"of type {type(given).__name__}"


def _named(
    given: str | os.PathLike[str], options: dict[str, Any], level: str | None
) -> tuple[Splits, dict[str, Any]]:
    text = os.fspath(given)
    if Path(text).suffix in (".yaml", ".yml") and Path(text).is_file():
        found = yaml.safe_load(Path(text).read_text())
        if not isinstance(found, dict) or not isinstance(found.get("data"), dict):
            raise ValueError(f"data: {text} has no section data; give name or path in it")
        section = check_data({**found["data"], **options})
        return load(section), section
    key = "name" if text in DATASETS and not Path(text).exists() else "path"
    if key == "path" and not Path(text).exists():
        raise ValueError(
            f"data: {text!r} is neither a file nor a dataset; the datasets are "
            f"{', '.join(DATASETS)}"
        )
    if level is not None and key == "path":
        options["level"] = level
    section = check_data({key: text, **options})
    return load(section), section


def _check_coordinates(graphs: Sequence[Data]) -> None:
    """Every graph has finite coordinates in as many dimensions as the first one."""
    n = None
    for number, graph in enumerate(graphs):
        pos = graph.get("pos")
        if not isinstance(pos, Tensor) or pos.dim() != 2 or not pos.is_floating_point():
            raise ValueError(
                f"pos: graph {number} has no floating-point tensor of shape [N, n]; give "
                "coordinates"
            )
        if not len(pos):
            raise ValueError(f"pos: graph {number} has no nodes; leave it out")
        n = pos.shape[1] if n is None else n
        if pos.shape[1] != n:
            raise ValueError(
                f"pos: graph {number} has shape {list(pos.shape)}; the first has {n} columns"
            )
        if not bool(torch.isfinite(pos).all()):
            raise ValueError(f"pos: graph {number} has coordinates that are not finite")


def _check_features(graphs: Sequence[Data]) -> None:
    """Features are in all graphs or in none, are finite, and have the same columns."""
    for name in ("x", "z", "edge_attr", "vel"):
        first = graphs[0].get(name)
        for number, graph in enumerate(graphs):
            value = graph.get(name)
            if (value is None) != (first is None):
                with_it, without = (0, number) if value is None else (number, 0)
                raise ValueError(
                    f"{name}: graph {with_it} has it, graph {without} has not; give it to all or "
                    "to none"
                )
            if value is None:
                continue
            if value.shape[1:] != first.shape[1:]:
                raise ValueError(
                    f"{name}: graph {number} has shape {list(value.shape)}, the first has "
                    f"{list(first.shape)}; give the same number of columns"
                )
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise ValueError(f"{name}: graph {number} has values that are not finite")


def _check(graphs: Sequence[Data], task: Task) -> None:
    _check_coordinates(graphs)
    if len(graphs) < LEAST_GRAPHS:
        raise ValueError(
            f"graphs: there are {len(graphs)}; at least {LEAST_GRAPHS} are needed to say anything"
        )
    for number, graph in enumerate(graphs):
        edges = graph.get("edge_index")
        if edges is None or not edges.shape[1]:
            raise ValueError(
                f"edge_index: graph {number} has no edges; join its nodes first, for instance "
                "with symgnn.graphs.RadiusGraph"
            )
        if int(edges.min()) < 0 or int(edges.max()) >= len(graph.pos):
            raise ValueError(
                f"edge_index: graph {number} names nodes {int(edges.min())} to {int(edges.max())}, "
                f"but has {len(graph.pos)}; count them from 0"
            )
        shift = graph.get("edge_shift")
        if shift is not None and bool((shift != 0).any()):
            raise ValueError(
                f"edge_shift: graph {number} is periodic; discover judges finite graphs: leave "
                "edge_shift out"
            )
        if task.kind == "regression" and bool(graph.y.isinf().any()):
            raise ValueError(
                f"y: graph {number} has an infinite target; correct it or leave it out"
            )
        if task.kind == "regression" and task.place != "graph" and not len(graph.y):
            raise ValueError(f"y: graph {number} has none; leave it out")
    _check_features(graphs)
