"""Graphs in three parts or in folds, with edges about 1 long."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn._argument_checks import check_positive, unknown_name
from symgnn.data._rescaling import LENGTHS, common_scale, multiplied, stamp
from symgnn.data._task import Splits, Task
from symgnn.data.files._division import FRACTIONS, Division
from symgnn.data.files._graph_list import Graphs
from symgnn.data.files._metadata import called


def splits(
    graphs: Sequence[Data],
    *,
    by: str | None = None,
    column: str | None = None,
    task: Task | None = None,
    fractions: Sequence[float] | None = None,
    seed: int = 0,
    scale: float | None = None,
    missing: str | None = None,
) -> Splits:
    """Divide graphs into disjoint training, validation and test parts.

    Parts are stratified by class, as far as the numbers allow. The given graphs are not changed;
    the graphs of the splits are copies with coordinates multiplied by `scale`.

    Args:
        graphs: the result of `read`, or any PyG graphs with `pos`, `edge_index` and `y`.
        by: "random"; "column", whose value is train, validation or test for each graph; "group",
            which keeps all graphs with the same value in one part; or "scaffold", which keeps
            molecules with the same Bemis-Murcko scaffold together, the most frequent scaffolds in
            the training part. The default is "column" if `column` is given, else "random".
        column: a column of the targets or of the files, `file`, `folder`, or an attribute of each
            graph.
        task: the task of `y`; the default is the task of the graphs from `read`.
        fractions: the fractions of the three parts, by default 0.8, 0.1 and 0.1; their sum is 1.
        seed: the same seed divides the same graphs in the same way; not used for scaffolds.
        scale: 1.0 for unchanged coordinates; by default the factor, rounded to three digits, that
            makes the median edge of the training graphs 1 long.
        missing: "mask" if labels may be missing (NaN, or the class -1); by default the option that
            was passed to `read`.

    Returns:
        Three lists of graphs with their task: `train`, `validation` and `test`.

    Example:
        >>> graphs = symgnn.data.read(symgnn.data.sample("sdf"), columns=["dipole"])
        >>> divided = symgnn.data.splits(graphs, fractions=(0.5, 0.25, 0.25))
        >>> len(divided.train) + len(divided.validation) + len(divided.test)
        18
    """
    known, task = _checked(graphs, task)
    division = Division.of(by, column)
    parts = division.parts(known, task, fractions, seed)
    about: dict[str, Any] = {"seed": seed, "split": dataclasses.asdict(division)}
    if division.by != "column":
        about["fractions"] = [float(f) for f in (FRACTIONS if fractions is None else fractions)]
    return _splits(known, parts, task, scale, missing, about)


def folds(
    graphs: Sequence[Data],
    k: int | None = None,
    *,
    by: str | None = None,
    column: str | None = None,
    validation: float = 0.1,
    task: Task | None = None,
    seed: int = 0,
    scale: float | None = None,
    missing: str | None = None,
) -> list[Splits]:
    """Splits for k-fold cross-validation: each graph is in the test part of exactly one of them.

    Args:
        graphs, task, seed, scale, missing: as for :func:`splits`.
        k: the number of folds, 5 if not given.
        by: "random", stratified by class; "group" or "scaffold", which are never divided, in folds
            of about the same size; or "column", whose values are the folds of the graphs.
        column: the column of the groups or folds, as for :func:`splits`.
        validation: the fraction of the graphs outside the test fold that is used for validation,
            chosen in the same way (at random, if a column names the folds).

    Returns:
        The splits of each fold.

    Example:
        >>> import symgnn
        >>> graphs = symgnn.data.read(symgnn.data.sample("sdf"), columns=["dipole"])
        >>> [len(fold.test) for fold in symgnn.data.folds(graphs, k=3)]
        [6, 6, 6]
    """
    known, task = _checked(graphs, task)
    division = Division.of(by, column)
    if isinstance(validation, bool) or not isinstance(validation, int | float):
        raise ValueError(f"validation: is {validation!r}; give a number between 0 and 1")
    if not 0 < validation < 1:
        raise ValueError(f"validation: is {validation}; give a number between 0 and 1")
    tests = division.folds(known, task, k, seed)
    found = []
    for number, test in enumerate(tests, 1):
        outside = sorted(set(range(len(known))) - set(test))
        inner = Division("random") if division.by == "column" else division
        try:
            train, chosen, _ = inner.parts(
                known.take(outside), task, (1 - validation, validation, 0.0), seed
            )
        except ValueError as error:
            said = str(error).replace("fractions:", "validation:", 1)
            raise ValueError(f"{said} (outside fold {number})") from None
        parts = [[outside[i] for i in train], [outside[i] for i in chosen], test]
        about = {
            "seed": seed,
            "split": dataclasses.asdict(division),
            "folds": len(tests),
            "fold": number,
            "validation": float(validation),
        }
        found.append(_splits(known, parts, task, scale, missing, about))
    return found


def _checked(graphs: Sequence[Data], task: Task | None) -> tuple[Graphs, Task]:
    known = graphs if isinstance(graphs, Graphs) else Graphs(graphs)
    task = task or known.task
    if task is None:
        unknown = "task: is not known; pass columns to `read`, or task=Task(...)"
        raise ValueError(known.unclear or unknown)
    for index, graph in enumerate(known):
        for name in ("pos", "edge_index", "y"):
            if getattr(graph, name, None) is None:
                raise ValueError(f"{name}: {called(graph, index)} has no {name}; add it")
    return known, task


def _splits(
    graphs: Graphs,
    parts: Sequence[Sequence[int]],
    task: Task,
    scale: float | None,
    missing: str | None,
    about: dict[str, Any],
) -> Splits:
    """The graphs with these indices, scaled."""
    if missing not in (None, "error", "mask"):
        raise ValueError(unknown_name("missing", missing, ("error", "mask"), "known"))
    chosen = [[graphs[index] for index in part] for part in parts]
    if task.level == "potential" and scale not in (None, 1.0):
        raise ValueError(
            f"scale: is {scale}, but a potential needs coordinates in Angstrom; remove scale"
        )
    if scale is None:
        scale = 1.0 if task.level == "potential" else unit_scale(chosen[0])
    check_positive("scale", scale, "1.0 to change nothing")
    train, validation, test = ([scaled(graph, scale, task) for graph in part] for part in chosen)
    in_all = common_scale([train])
    about = {
        "graphs": len(graphs),
        "skipped": list(graphs.skipped),
        **about,
        "missing": missing or graphs.missing,
        "read": {**graphs.options, "scale": in_all},
    }
    return Splits(train, validation, test, task, in_all, about)


def unit_scale(graphs: Sequence[Data]) -> float:
    """1 / the median length of the edges, to three digits; 1 if no edge has a length."""
    lengths = torch.cat([edge_lengths(graph) for graph in graphs])
    lengths = lengths[lengths > 0]
    return float(f"{1 / float(lengths.median()):.3g}") if len(lengths) else 1.0


def edge_lengths(graph: Data) -> Tensor:
    """`[E]`."""
    source, target = graph.edge_index
    rays = graph.pos[source] - graph.pos[target]
    shift = graph.get("edge_shift")
    return (rays if shift is None else rays + shift).norm(dim=1)


def scaled(graph: Data, scale: float, task: Task) -> Data:
    """A copy with its coordinates and velocities, and targets that are lengths, times `scale`.

    It carries the scale that it then has, in all: `pos_scale`.
    """
    copy = graph.clone()
    for name in LENGTHS:
        if name in graph:
            copy[name] = graph[name] * scale
    if task.lengths:
        copy.y = graph.y * scale
    return stamp(copy, multiplied(graph, scale))
