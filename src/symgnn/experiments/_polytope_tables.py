"""The paper's classification of polytopes: what is trained, tested, and known beforehand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Batch, Data

from symgnn.data import SETS, Polytopes, Task
from symgnn.experiments._train_row import TrainedRow, train_row
from symgnn.geometry import Symmetry
from symgnn.nn import Model, NeighbourSum, build
from symgnn.train import Ensemble, Training
from symgnn.train._loader import GraphDataset
from symgnn.train._metrics import Judge, Scaler

LAYERS = {"GN": 3, "DGN": 3, "SDGN": 3, "AGN": 2, "CGN": 2, "Combined": 2}
COLUMNS = ("train", *SETS)
COPIES = 100
#: How many angles are tested at once, in all graphs of a batch: with ten initialisations in
#: float64, one value of an MLP on them takes 250 MB.
TEST_ANGLES = 50_000

#: The transformation of each test set, so that theory can say who keeps its accuracy.
KINDS_OF_SET = {
    "orthogonal": Symmetry(["translation", "rotation", "reflection"]),
    "orthogonal+dilation": Symmetry(["translation", "rotation", "reflection", "dilation"]),
    "special-conformal": Symmetry(["special-conformal"]),
}


@dataclass(frozen=True)
class Row:
    """One row of a table: a network."""

    block: str
    aggregation: str
    coordinate_map: str = "identity"

    def __str__(self) -> str:
        return f"{self.block} {self.aggregation} {self.coordinate_map}"

    @property
    def key(self) -> dict[str, str]:
        """Its fields, as in results.json."""
        return asdict(self)


@dataclass(frozen=True)
class PolytopeTable:
    """One of the paper's tables: its dimension, its name among the paper's, and its rows."""

    name: str
    title: str
    dimension: int
    paper: str
    rows: tuple[Row, ...]


def _rows(blocks: str, *maps: str) -> tuple[Row, ...]:
    """The rows of a table, in the paper's order."""
    return tuple(
        Row(block, aggregation, psi)
        for block in blocks.split()
        for aggregation in ("mean", "sum")
        for psi in (maps if block != "GN" else ("identity",))
        if block != "GN" or "identity" in maps
    )


_BOTH = ("identity", "neighbour-sum")
#: The tables on regular polytopes, by name.
TABLES = {
    table.name: table
    for table in (
        PolytopeTable(
            "polytopes-3d",
            "Polytopes in three dimensions",
            3,
            "polytopes-n3-identity",
            _rows("AGN SDGN DGN GN CGN Combined", "identity"),
        ),
        PolytopeTable(
            "polytopes-3d-map",
            "Polytopes in three dimensions, coordinates moved by the neighbour-sum",
            3,
            "polytopes-n3-neighbour-sum",
            _rows("AGN SDGN DGN CGN Combined", "neighbour-sum"),
        ),
        PolytopeTable(
            "polytopes-4d",
            "Polytopes in four dimensions",
            4,
            "polytopes-n4",
            _rows("AGN SDGN DGN GN CGN Combined", *_BOTH),
        ),
        PolytopeTable(
            "polytopes-5d",
            "Polytopes in five dimensions",
            5,
            "polytopes-n5",
            _rows("AGN SDGN DGN GN CGN Combined", *_BOTH),
        ),
    )
}


def network(row: Row, dimension: int, classes: int, node_features: int = 0) -> Model:
    """The paper's network: embeddings of 32, MLPs with one hidden layer of 64, swish."""
    # the paper's map, without the bound on growth
    psi = NeighbourSum(max_growth=None) if row.coordinate_map == "neighbour-sum" else "identity"
    return build(
        row.block,
        dimension=dimension,
        node_features=node_features,
        hidden=32,
        mlp_hidden=64,
        layers=LAYERS[row.block],
        aggregation=row.aggregation,
        coordinate_map=psi,
        # with a state of the graph, GN with sums generalises far better than the paper reports
        graph_state=False,
        outputs=classes,
        init="torch",  # as the paper's networks started, which its numbers depend on
    )


def loss(outputs: Tensor, data: Data) -> Tensor:
    """Cross-entropy."""
    return functional.cross_entropy(outputs, data.y)


def train_network(
    row: Row,
    train: Polytopes,
    dimension: int,
    seeds: int,
    epochs: int,
    node_features: int = 0,
    on_epoch: Callable[..., Any] | None = None,
) -> TrainedRow:
    """Train the network of a row on all polytopes at once, in the initialisations 0, 1, ..."""
    names = tuple(train.names)
    task = Task("graph", "classification", ("polytope",), classes=names)
    unit = torch.ones(1, dtype=torch.float64)
    settings = Training(
        epochs=epochs,
        batch_size=len(train),
        seed=0,
        seeds=seeds,
        weights="last",
        validate_every=epochs,
    )
    make = partial(network, row, dimension, len(names), node_features)
    graphs = GraphDataset(train, angles=make().needs_angles)
    judge = Judge(task, Scaler(0 * unit, unit))
    return train_row(make, graphs, judge, settings, on_epoch=on_epoch)


@torch.no_grad()
def confusion(ensemble: Ensemble, dataset: Polytopes, exact: bool = True) -> Tensor:
    """How often class i is taken for class j, for each seed, `[S, K, K]`.

    If `exact` in float64, so that what symmetry guarantees is not decided by rounding; otherwise
    in the type of the models, which takes a third of the time.
    """
    classes = len(dataset.names)
    counts = torch.zeros(len(ensemble), classes, classes)
    models = copy.deepcopy(ensemble).double().eval() if exact else ensemble.eval()
    dtype = next(models.parameters()).dtype
    for batch in _batches(dataset):
        batch.pos = batch.pos.to(dtype)
        if batch.x is not None:
            batch.x = batch.x.to(dtype)
        for seed, predicted in enumerate(models(batch).argmax(-1)):
            index = batch.y * classes + predicted
            counts[seed] += torch.bincount(index, minlength=classes**2).view(classes, classes)
    return counts / counts.sum(-1, keepdim=True)


def _batches(dataset: Polytopes) -> list[Batch]:
    """The graphs in float64, in batches of bounded size."""
    batches: list[Batch] = []
    part: list[Data] = []
    total = 0
    for graph in dataset:
        degree = graph.num_edges // graph.num_nodes
        angles = graph.num_edges * (degree - 1)
        if part and total + angles > TEST_ANGLES:
            batches.append(Batch.from_data_list(part))
            part, total = [], 0
        part.append(graph)
        total += angles
    return [*batches, Batch.from_data_list(part)]


def known_train(row: Row, dimension: int, classes: int) -> Fraction | None:
    """The accuracy on the training set that theory fixes.

    With means and unmoved coordinates every vertex sees the same, so only the edge length tells
    polytopes apart: scaled it never does (SDGN), and in four dimensions the tesseract and the
    24-cell have the same one (DGN). With the neighbour-sum map, a vertex of the simplex moves by
    a factor 1 - (n + 1) a and one of the orthoplex by 1 - 2 (n - 1) a: equal for n = 3 only.
    """
    if row.aggregation != "mean":
        return None
    if (row.block, row.coordinate_map) == ("SDGN", "identity"):
        return Fraction(1, classes)
    if (row.block, row.coordinate_map, dimension) == ("SDGN", "neighbour-sum", 3):
        return Fraction(classes - 1, classes)
    if (row.block, row.coordinate_map, dimension) == ("DGN", "identity", 4):
        return Fraction(classes - 1, classes)
    return None


def keeps(symmetry: Symmetry, column: str) -> bool:
    """Whether a network of this symmetry sees no difference between a test set and training."""
    return column in KINDS_OF_SET and KINDS_OF_SET[column] <= symmetry
