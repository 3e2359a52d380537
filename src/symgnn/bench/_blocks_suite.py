"""The blocks against each other, in the paper's networks, beside the paper's ratios."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch_geometric.data import Batch

from symgnn.bench._measure import Rounds, medians, paired
from symgnn.bench._shapes import COLOURED, MOLECULES, POLYTOPES, SUPERPIXELS, TOURS, Shape
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import model_step
from symgnn.bench._suite import Suite, SuitePart
from symgnn.data import Splits, Task
from symgnn.experiments import _paper as paper
from symgnn.experiments import _polytope_training as polytope_training
from symgnn.experiments._dataset_protocols import EXPERIMENTS
from symgnn.experiments._polytope_training import Row
from symgnn.nn import Model

FINDING = (
    "The scaling of SDGN is one pass over the edges. AGN has d - 1 angles for each edge into a "
    "node with d neighbours: on the paper's GPU the fixed cost of a step hides their cost, on a "
    "CPU it does not."
)
BLOCKS = ("AGN", "SDGN", "DGN")
SCALING = 1.1


def papers_ratio(column: str, above: str = "AGN", below: str = "DGN") -> float:
    """The paper's step time of a block over that of another, to two decimals."""
    rows = {row["block"]: row for row in paper.tables()["step-time"]["rows"]}
    return round(rows[above][column] / rows[below][column], 2)


def papers_network(block: str, shape: Shape, batch: Batch) -> Model:
    """The network that the paper trains on graphs like these."""
    torch.manual_seed(0)
    if shape in POLYTOPES.values():
        return polytope_training.network(Row(block, "sum"), batch.pos.shape[1], batch.num_graphs)
    experiment = next(each for each in EXPERIMENTS.values() if each.paper == shape.paper)
    graphs, numbers = [batch[0]], tuple(map(str, range(12)))
    task = {
        "TSP": Task("edge", "classification", ("on the tour",), classes=("no", "yes")),
        "QM9": Task("graph", "regression", numbers),
    }.get(shape.paper, Task("graph", "classification", ("class",), classes=numbers[:10]))
    return experiment.make(block, Splits(graphs, graphs, graphs, task))


def compare(shape: Shape, quick: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """SDGN and AGN over DGN."""
    batch = shape.batch(quick)
    models = {block: papers_network(block, shape, batch) for block in BLOCKS}
    times = rounds.alternate({block: model_step(model, batch) for block, model in models.items()})
    bounds = {"SDGN": SCALING, "AGN": papers_ratio(shape.paper)}
    topology = models["AGN"].topology(batch)
    notes = {"AGN": f"{topology.num_edges:,} edges, {topology.num_angles:,} angles"}
    for block, bound in bounds.items():
        ratio, seconds = paired(times[block], times["DGN"]), medians(times, block, "DGN")
        yield SpeedClaim(
            shape.name,
            f"{block} over DGN",
            ratio,
            bound,
            seconds=seconds,
            note=notes.get(block, ""),
        )


def parts(quick: bool) -> list[SuitePart]:
    """A part for each of the paper's datasets."""
    shapes = (*POLYTOPES.values(), SUPERPIXELS, COLOURED, TOURS, MOLECULES)
    return [SuitePart(shape.name, partial(compare, shape, quick)) for shape in shapes]


SUITE = Suite("blocks", FINDING, parts)
