"""Angles of product form, against edges alone and against angles through an MLP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Batch, Data

from symgnn.bench._measure import Rounds, medians, paired
from symgnn.bench._shapes import MOLECULES, SHAPES, TOURS, Shape
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import model_step, network
from symgnn.bench._suite import Suite, SuitePart
from symgnn.graphs import KNNGraph

FINDING = (
    "A sum over the pairs of d neighbours is computed as an inner product of moments, at a cost "
    "proportional to d instead of its square: the advantage over AGN's MLP grows with the "
    "number of neighbours. Compared with DGN it adds two matrix products per ray in every layer "
    "except the first, with as many channels as the other values; fewer channels add less, and so "
    "do tied factors, which map both rays by the same weights. In a first layer whose nodes have "
    "few features, the features themselves are summed over rays."
)
#: As in the paper's networks: embeddings of 32 numbers, hidden layers of 64.
WIDTHS = {"hidden": 32, "mlp_hidden": 64}
OVER_DGN, OVER_SEPARABLE, FLAT = 1.5, 5.0, 1.3
NEIGHBOURS = (8, 16, 32, 64)
HALF = "AGN-separable of 16 channels"
TIED = "AGN-separable, tied"
#: Specifications with sums over angles that leave one ray free.
FREE = ("agn-to-edges", "dimenet")
#: The networks that are compared.
BLOCKS: dict[str, tuple[str, dict[str, Any]]] = {
    "DGN": ("dgn", WIDTHS),
    "AGN-separable": ("agn-separable", WIDTHS),
    HALF: ("agn-separable", {**WIDTHS, "channels": WIDTHS["hidden"] // 2}),
    TIED: ("agn-separable", {**WIDTHS, "tied": True}),
    "AGN": ("agn", WIDTHS),
}


def by_processor(rounds: Rounds) -> Rounds:
    """With one thread, seconds of the processor: those of others do not count."""
    return replace(rounds, clock=time.process_time) if torch.get_num_threads() == 1 else rounds


def cloud(k: int, edges: int) -> Batch:
    """Points of a cube, each joined to its k nearest, in graphs of 128 points."""
    rng = torch.Generator().manual_seed(0)
    points = [torch.rand(128, 3, generator=rng) for _ in range(max(edges // (128 * k), 1))]
    return Batch.from_data_list([KNNGraph(k=k)(Data(pos=pos)) for pos in points])


def compare(name: str, batch: Batch, slower: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """AGN-separable and its variants over DGN, and AGN over AGN-separable."""
    rounds = by_processor(rounds)
    models = {block: network(each, batch, **options) for block, (each, options) in BLOCKS.items()}
    times = rounds.alternate({block: model_step(model, batch) for block, model in models.items()})
    topology = models["AGN-separable"].topology(batch)
    note = f"{topology.num_edges:,} edges, {topology.num_angles:,} angles"
    for above, below, bound, at in (
        ("AGN-separable", "DGN", OVER_DGN, "most"),
        (HALF, "DGN", OVER_DGN, "most"),
        (TIED, "DGN", OVER_DGN, "most"),
        ("AGN", "AGN-separable", OVER_SEPARABLE if slower else None, "least"),
    ):
        yield SpeedClaim(
            name,
            f"{above} over {below}",
            paired(times[above], times[below]),
            bound,
            "most" if at == "most" else "least",
            seconds=medians(times, above, below),
            note=note,
        )


def of_shape(shape: Shape, quick: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """The blocks on one of the shapes."""
    yield from compare(shape.name, shape.batch(quick), shape is TOURS, rounds)


def of_cloud(k: int, edges: int, rounds: Rounds) -> Iterator[SpeedClaim]:
    """The blocks on points with k neighbours each."""
    yield from compare(f"cloud, k={k}", cloud(k, edges), k >= 16, rounds)


def per_edge(ks: Sequence[int], edges: int, rounds: Rounds) -> Iterator[SpeedClaim]:
    """The time for each edge with many neighbours over that with few, training and predicting."""
    rounds = by_processor(rounds)
    few, many = (cloud(k, edges) for k in (ks[0], ks[-1]))
    counts = few.num_edges, many.num_edges
    models = [network("agn-separable", batch, **WIDTHS) for batch in (few, many)]
    steps = {"few": model_step(models[0], few), "many": model_step(models[1], many)}
    times = rounds.alternate(steps)
    each = [[t / count for t in times[k]] for k, count in zip(steps, counts, strict=True)]
    yield SpeedClaim(
        "clouds",
        f"AGN-separable, time for each edge, k={ks[-1]} over k={ks[0]}",
        paired(each[1], each[0]),
        FLAT,
        note=f"{counts[0]:,} and {counts[1]:,} edges",
    )


def inference(k: int, edges: int, rounds: Rounds) -> Iterator[SpeedClaim]:
    """Predictions, and predictions with forces, over those of DGN."""
    batch, rounds = cloud(k, edges), by_processor(rounds)
    blocks = {name: given for name, given in BLOCKS.items() if name != "AGN"}
    models = {block: network(each, batch, **options) for block, (each, options) in blocks.items()}

    def predict(block: str, forces: bool) -> None:
        data = batch.clone()
        data.topology = prepared[block]
        data.pos = batch.pos.clone().requires_grad_(forces)
        with torch.set_grad_enabled(forces):
            out = models[block](data)
        if forces:
            torch.autograd.grad(out.sum(), data.pos)

    prepared = {block: model.topology(batch) for block, model in models.items()}
    for what, forces in (("predicting", False), ("predicting with forces", True)):
        times = rounds.alternate({block: partial(predict, block, forces) for block in blocks})
        for block in ("AGN-separable", HALF, TIED):
            yield SpeedClaim(
                f"cloud, k={k}",
                f"{block} over DGN, {what}",
                paired(times[block], times["DGN"]),
                OVER_DGN,
                seconds=medians(times, block, "DGN"),
            )


def to_rays(name: str, make: Callable[[], Batch], rounds: Rounds) -> Iterator[SpeedClaim]:
    """Networks that read sums over angles with one ray left free, over DGN; without a bound."""
    batch = make()
    names = {"DGN": "dgn", **{f"{each}-separable": f"{each}-separable" for each in FREE}}
    models = {block: network(each, batch, **WIDTHS) for block, each in names.items()}
    steps = {block: model_step(model, batch) for block, model in models.items()}
    times = by_processor(rounds).alternate(steps)
    for block in list(names)[1:]:
        seconds = medians(times, block, "DGN")
        yield SpeedClaim(
            name, f"{block} over DGN", paired(times[block], times["DGN"]), None, seconds=seconds
        )


def parts(quick: bool) -> list[SuitePart]:
    """All shapes, clouds of more and more neighbours, and predictions."""
    edges = 1024 if quick else 2**15
    ks = NEIGHBOURS[:2] if quick else NEIGHBOURS
    found = [SuitePart(shape.name, partial(of_shape, shape, quick)) for shape in SHAPES]
    found += [SuitePart(f"cloud, k={k}", partial(of_cloud, k, edges)) for k in ks]
    found.append(SuitePart("clouds", partial(per_edge, ks, edges)))
    found.append(SuitePart("predictions", partial(inference, ks[1], edges)))
    batches = {
        MOLECULES.name: partial(MOLECULES.batch, quick),
        f"cloud, k={ks[1]}": partial(cloud, ks[1], edges),
    }
    return [
        *found,
        *(SuitePart(name, partial(to_rays, name, make)) for name, make in batches.items()),
    ]


SUITE = Suite("separable", FINDING, parts)
