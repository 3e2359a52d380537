"""The paper's table of step times, as ratios to the standard graph network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from rich.console import Console
from torch.nn import functional
from torch_geometric.data import Batch, Data

from symgnn.data import Polytopes, Splits, load
from symgnn.experiments import _paper as paper
from symgnn.experiments import _polytope_training as polytope_training
from symgnn.experiments._dataset_protocols import EXPERIMENTS
from symgnn.experiments._engines import HERE
from symgnn.experiments._paper_verdicts import measured
from symgnn.experiments._polytope_training import Row
from symgnn.experiments._resume import run_parts, write_results
from symgnn.nn import Model

NAME = "step-time"
TITLE = "Time of a training step, over that of GN"
BLOCKS = ("AGN", "SDGN", "DGN", "GN", "CGN", "Combined")
#: Graphs in a batch where the paper's is large.
CPU_BATCH = {"MNIST": 16, "CIFAR10": 8, "TSP": 1, "QM9": 64}


def run_step_time(
    directory: Path,
    *,
    protocol: str = "cpu",
    source: str | None = None,
    rounds: int = 7,
    console: Console | None = None,
) -> dict[str, Any]:
    """Time a training step of every block on every dataset; write and return results.json.

    The blocks take turns, so that other load on the machine affects all of them; a ratio compares
    steps of the same round. In a cell, "mean" is the median over the rounds and "std" half the
    interquartile range. Without a `source`, the samples in the package are repeated until the batch
    is full. With the protocol "cpu", batches are smaller than the paper's if those are large.
    """
    columns = list(paper.tables()[NAME]["batch_size"])
    settings = {"protocol": protocol, "source": source, "rounds": rounds}
    parts = {column: partial(run_dataset, column, protocol, source, rounds) for column in columns}
    # one by one: two at once would slow each other
    done = run_parts(parts, directory / "datasets", settings, rounds, console, HERE)
    return write_results(
        directory,
        done,
        name=NAME,
        title=TITLE,
        seeds=1,
        epochs=rounds,
        columns=columns,
        rows=[
            {
                **Row(block, "sum").key,
                "cells": {each["column"]: each["cells"][block] for each in done},
            }
            for block in BLOCKS
        ],
        claims=[],
        protocol=protocol,
        threads=torch.get_num_threads(),
        batch_size={each["column"]: each["batch_size"] for each in done},
    )


def run_dataset(
    column: str,
    protocol: str,
    source: str | None,
    rounds: int,
    on_round: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """The ratio of each block on one dataset, one value for each round, and a step's time."""
    began = time.perf_counter()
    size = paper.tables()[NAME]["batch_size"][column]
    if protocol == "cpu":
        size = min(size, CPU_BATCH.get(column, size))
    models, batch = _polytopes(column) if "=" in column else _dataset(column, source, size)
    steps = {block: _step(model, batch) for block, model in models.items()}
    taken: dict[str, list[float]] = {block: [] for block in steps}
    for number in range(-1, rounds):  # the first is not counted: it warms up
        for block, step in steps.items():
            start = time.perf_counter()
            step()
            if number >= 0:
                taken[block].append(time.perf_counter() - start)
        if on_round is not None and number >= 0:
            on_round()
    return {
        "column": column,
        "batch_size": size,
        "cells": {block: _cell(column, block, taken) for block in BLOCKS},
        "seconds": time.perf_counter() - began,
    }


def _cell(column: str, block: str, taken: Mapping[str, list[float]]) -> dict[str, Any]:
    ratios = [a / b for a, b in zip(taken[block], taken["GN"], strict=True)]
    theirs = {row["block"]: row[column] for row in paper.tables()[NAME]["rows"]}
    known = theirs.get(block) is not None
    ratio = {"mean": theirs[block] / theirs["GN"] if known else None, "std": None}
    quarters = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return {
        **measured(ratios, ratio),
        # not moved by a round in which the machine did something else
        "mean": median(ratios),
        "std": (quarters[2] - quarters[0]) / 2,
        "milliseconds": 1000 * median(taken[block]),
    }


def _polytopes(column: str) -> tuple[dict[str, Model], Batch]:
    dimension = int(column[-1])
    graphs = Polytopes(dimension)
    models = {
        block: polytope_training.network(Row(block, "sum"), dimension, len(graphs.names))
        for block in BLOCKS
    }
    return models, Batch.from_data_list(list(graphs))


def _dataset(column: str, source: str | None, size: int) -> tuple[dict[str, Model], Batch]:
    experiment = next(each for each in EXPERIMENTS.values() if each.paper == column)
    splits: Splits = load(experiment.name, source=source or "sample", limit=size)
    graphs: Iterable[Data] = islice(cycle(splits.train), size)
    models = {block: experiment.make(block, splits) for block in BLOCKS}
    return models, Batch.from_data_list(list(graphs))


def _step(model: Model, batch: Batch) -> Callable[[], None]:
    """A step of Adam on the batch; its topology is made once, as by a loader."""
    batch = batch.clone()
    batch.topology = model.topology(batch)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    loss = functional.mse_loss if batch.y.is_floating_point() else functional.cross_entropy

    def step() -> None:
        optimiser.zero_grad()
        loss(model(batch), batch.y).backward()
        optimiser.step()

    return step
