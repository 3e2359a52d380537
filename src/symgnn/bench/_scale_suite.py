"""A training step of AGN on one graph of up to a million nodes: time for each angle, and memory.

Angles go through in chunks (`chunk` of `symgnn.nn.build`). Each graph has a process of its own, in
which its steps and steps on the graph of 10,000 nodes take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch

from symgnn.bench._measure import (
    GIB,
    Memory,
    MissingError,
    NoMemoryError,
    Rounds,
    Spread,
    in_child,
    paired,
)
from symgnn.bench._shapes import neighbours
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import model_step
from symgnn.bench._suite import Suite, SuitePart
from symgnn.nn import build
from symgnn.train import keep_memory

FINDING = (
    "With chunks, the hidden values of edges and angles are recomputed in the backward pass. "
    "Only the topology and the node values are kept in memory; nothing of a chunk is, not even "
    "its autograd graph, which would be scattered between large temporary tensors."
)
CHUNK, HIDDEN = 2**15, 32
SIZES = (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
#: From where on time for each angle has to be flat, and where both ways fit into memory.
REFERENCE, BOTH_FIT = 10_000, 100_000
FLAT, QUARTER, MOST = 1.3, 0.25, 8.0


def step_of(nodes: int, dimension: int, chunk: int | None) -> tuple[Callable[[], None], int]:
    """A training step on a graph of 8 nearest neighbours, and its number of angles."""
    torch.manual_seed(0)
    graph = neighbours(nodes, dimension)
    model = build("agn", hidden=HIDDEN, mlp_hidden=HIDDEN, layers=2, graph_state=False, chunk=chunk)
    return model_step(model, graph), model.topology(graph).num_angles


def times_of(nodes: int, reference: int, dimension: int, rounds: Rounds) -> dict[str, Any]:
    """Seconds for each angle of a step on a graph, and on one of `reference` nodes, by turns."""
    torch.set_num_threads(rounds.threads)
    keep_memory()
    small, few = step_of(reference, dimension, CHUNK)
    large, many = step_of(nodes, dimension, CHUNK)
    found: dict[str, list[float]] = {"small": [], "large": []}
    repeats = 3 if nodes > reference else 1

    def often() -> float:
        took = []
        for _ in range(repeats):
            start = time.perf_counter()
            small()
            took.append(time.perf_counter() - start)
        return median(took)

    began = time.perf_counter()
    for number in range(-min(rounds.warm_up, 1), rounds.repeats):
        before = often()
        start = time.perf_counter()
        large()
        took = time.perf_counter() - start
        if number >= 0:
            found["small"].append((before + often()) / 2 / few)
            found["large"].append(took / many)
        if number + 1 >= min(2, rounds.least) and time.perf_counter() - began > rounds.seconds:
            break
    return {**found, "angles": many}


def peak_of(nodes: int, dimension: int, chunk: int | None, threads: int) -> dict[str, int]:
    """Bytes that a step needs at most beyond the graph, its topology among it; and in all."""
    torch.set_num_threads(threads)
    memory = Memory()
    graph = neighbours(nodes, dimension)
    whole, before = memory.most(), memory.now()
    memory.forget()
    model = build("agn", hidden=HIDDEN, mlp_hidden=HIDDEN, layers=2, graph_state=False, chunk=chunk)
    model_step(model, graph)()
    peak = memory.most()
    return {"step": peak - before, "all": max(whole, peak)}


def time_for_each_angle(
    dimension: int, sizes: Sequence[int], reference: int, rounds: Rounds
) -> Iterator[SpeedClaim]:
    """Each size over the reference; and the slowest over the fastest, from there on."""
    shape, ratios = f"{dimension}-d", {}
    sent = replace(rounds, on_round=None)  # a callback cannot be sent to another process
    missing = None
    for nodes in sizes:
        try:
            found = in_child(times_of, nodes, reference, dimension, sent)
        except NoMemoryError as error:
            missing = MissingError(f"time of {nodes:,} nodes: {error}")
            break
        ratio = paired(found["large"], found["small"])
        ratios[nodes] = ratio.median
        seconds = {"step": found["angles"] * median(found["large"])}
        what = f"time for each angle, {nodes:,} nodes over {reference:,}"
        note = f"{found['angles']:,} angles"
        yield SpeedClaim(shape, what, ratio, seconds=seconds, note=note, nodes=nodes)
        rounds.count()
    flat = {nodes: ratio for nodes, ratio in ratios.items() if nodes >= reference}
    if flat:
        worst = max(flat.values()) / min(flat.values())
        what = f"slowest over fastest, {reference:,} to {max(flat):,} nodes"
        yield SpeedClaim(shape, what, Spread.of([worst]), FLAT)
    if missing is not None:
        raise missing


def memory_in_chunks(
    dimension: int, nodes: int, largest: int, rounds: Rounds
) -> Iterator[SpeedClaim]:
    """The peak in chunks over that of all angles at once; and of the largest graph in chunks."""
    shape = f"{dimension}-d"
    chunked = in_child(peak_of, nodes, dimension, CHUNK, rounds.threads)
    rounds.count()
    whole = in_child(peak_of, nodes, dimension, None, rounds.threads)
    rounds.count()
    ratio = chunked["step"] / whole["step"]
    note = f"{chunked['step'] / GIB:.2f} and {whole['step'] / GIB:.2f} GiB beyond the graph"
    what = f"peak memory in chunks over at once, {nodes:,} nodes"
    yield SpeedClaim(shape, what, Spread.of([ratio]), QUARTER, note=note)
    note = ""
    try:
        most = in_child(peak_of, largest, dimension, CHUNK, rounds.threads)["all"]
    except NoMemoryError as error:
        if error.limit <= MOST * GIB:  # it might have been inside the bound
            raise
        most, note = error.limit, f"at least: {error}"
    rounds.count()
    what = f"GiB of the process, {largest:,} nodes"
    yield SpeedClaim(shape, what, Spread.of([most / GIB]), MOST, note=note)


def parts(quick: bool) -> list[SuitePart]:
    """Time and memory, in the plane and in space."""
    sizes, reference, fit = ((300, 600), 300, 600) if quick else (SIZES, REFERENCE, BOTH_FIT)
    found = []
    for dimension in (2,) if quick else (2, 3):
        shape = f"{dimension}-d"
        found += [
            SuitePart(shape, partial(time_for_each_angle, dimension, sizes, reference)),
            SuitePart(shape, partial(memory_in_chunks, dimension, fit, max(sizes))),
        ]
    return found


SUITE = Suite("scale", FINDING, parts)
