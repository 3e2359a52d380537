"""`symgnn.discover`: which symmetry data have, and the network to use."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_positive, named
from symgnn.discovery._discovery_report import DiscoveryReport
from symgnn.discovery._given_data import LEAST_GRAPHS, read_given
from symgnn.discovery._search import QUESTIONS, Search
from symgnn.discovery._stage_store import StageStore
from symgnn.progress import bar

#: At most so many graphs are looked at; of more, so many are drawn.
MOST_GRAPHS = 1_000
#: Fewer, but not fewer than so many, where they have more nodes and edges than this together.
FEW_GRAPHS, MOST_NODES, MOST_EDGES = 50, 100_000, 1_000_000


def discover(
    graphs: Any,
    *,
    minutes: float = 10,
    level: str | None = None,
    data: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    seed: int = 0,
    questions: Sequence[str] = QUESTIONS,
    progress: bool | None = None,
) -> DiscoveryReport:
    """Find out which transformations the targets of data keep, and which network to use.

    Three questions are answered apart, for each kind of transformation that the graphs admit: are
    the inputs spread over its orbits, do the targets keep it, and can the targets be told from
    the pose alone.

    Args:
        graphs: A list of PyG `Data` with `pos`, `edge_index` and `y`; the `Splits` of
            `symgnn.data.load`; the name of a dataset; a file or folder; a config.
        minutes: When to stop with what is known.
        level: What `y` belongs to, where its shape does not say it, as for :func:`symgnn.fit`.
        data: Further options of a dataset or folder.
        out: A directory to which results are written as they come.
        resume: Whether to go on with the search in `out`.
        seed: Of all random numbers; one seed gives one report.
        questions: What is asked beside the targets, which always are: "inputs", "pose", and
            "checks": knock-outs and Christie and Aston's test, which decide nothing.
        progress: Whether to show a bar; if not given, where stderr is a terminal.

    Returns:
        The report: `print(report)`, `report.verdicts`, `report.build()`, `report.save(path)`.

    Example:
        >>> import symgnn
        >>> solids = symgnn.data.load("polytopes-3d", copies=10)
        >>> report = symgnn.discover(solids, minutes=1, progress=False)
        >>> report.verdicts["rotation"].verdict
        'kept'
    """
    check_positive("minutes", minutes)
    for question in questions:
        named("questions", question, dict.fromkeys(QUESTIONS))
    if resume and out is None:
        raise ValueError("resume: is True, but out is not given; give the directory to go on with")
    begin = time.monotonic()
    given, task, section = read_given(graphs, level, data)
    drawn = _chosen(given, seed)
    chosen = without_copies(drawn)
    path = None if out is None else Path(out) / "steps.json"
    with bar("discover", progress) as on_progress:
        key = {"data": fingerprint(chosen), "seed": seed, "task": asdict(task)}
        store = StageStore(path, _plain(key), begin + 60 * minutes, 60, on_progress)
        if resume:
            store.read()
        report = Search(chosen, task, seed, store, questions).report()
    report.config = {"data": section, "model": report.model, "train": {}}
    report.seconds = time.monotonic() - begin
    if len(given) > len(drawn):
        report.warnings.append(
            f"{len(drawn):,} of {len(given):,} graphs were read, drawn at random."
        )
    if len(drawn) > len(chosen):
        report.warnings.append(
            f"{len(drawn) - len(chosen):,} of {len(drawn):,} graphs are exact copies of others and "
            "were left out."
        )
    return report


def _chosen(graphs: Sequence[Data], seed: int) -> list[Data]:
    """As many graphs as can be judged, drawn at random where there are more."""
    nodes = sum(graph.pos.shape[0] for graph in graphs) / len(graphs)
    edges = sum(graph.edge_index.shape[1] for graph in graphs) / len(graphs)
    affordable = int(min(MOST_GRAPHS, MOST_NODES / max(nodes, 1), MOST_EDGES / max(edges, 1)))
    most = max(affordable, FEW_GRAPHS)
    if len(graphs) <= most:
        return list(graphs)
    generator = torch.Generator().manual_seed(seed)
    return [graphs[k] for k in torch.randperm(len(graphs), generator=generator)[:most]]


def without_copies(graphs: Sequence[Data]) -> list[Data]:
    """Each graph once: a copy among held-out graphs would make any predictor look right.

    Raises:
        ValueError: if too few are left.
    """
    found = list({fingerprint([graph]): graph for graph in reversed(graphs)}.values())[::-1]
    if len(found) < LEAST_GRAPHS:
        raise ValueError(
            f"graphs: {len(found)} of {len(graphs)} differ; at least {LEAST_GRAPHS} are needed to "
            "say anything"
        )
    return found


def fingerprint(graphs: Sequence[Data]) -> str:
    """A name of graphs that changes with their coordinates, edges, features and targets."""
    sums = hashlib.sha256()
    for graph in graphs:
        for name in ("pos", "edge_index", "y", "x", "z", "edge_attr", "vel"):
            value = graph.get(name)
            if value is not None:
                sums.update(f"{name} {list(value.shape)}".encode())
                sums.update(value.detach().cpu().contiguous().numpy().tobytes())
    return sums.hexdigest()[:16]


def _plain(value: Any) -> Any:
    """With lists for tuples, as JSON gives it back."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
