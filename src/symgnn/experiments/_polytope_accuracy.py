"""Tests of trained networks on transformed polytopes, and what theory says of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.data import Polytopes
from symgnn.experiments._polytope_training import Row
from symgnn.geometry import Symmetry
from symgnn.train import Ensemble

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
class SetAccuracy:
    """The predictions of the networks of a row on a test set.

    Attributes:
        confusion: How often class i is taken for class j, for each seed, `[S, K, K]`.
        sampling: The deviation that an accuracy has because its test set is drawn, if there is one
            graph a class; with m graphs a class it is this over the root of m.
    """

    confusion: Tensor
    sampling: float

    @property
    def accuracy(self) -> Tensor:
        """The share that is right, for each seed, `[S]`."""
        return self.confusion.diagonal(dim1=1, dim2=2).mean(1)


@torch.no_grad()
def accuracy_on(ensemble: Ensemble, dataset: Polytopes, exact: bool = True) -> SetAccuracy:
    """Test networks on a set.

    If `exact` in float64, so that what symmetry guarantees is not decided by rounding; otherwise
    in the type of the models, which takes a third of the time.
    """
    classes = len(dataset.names)
    counts = torch.zeros(len(ensemble), classes, classes)
    models = copy.deepcopy(ensemble).double().eval() if exact else ensemble.eval()
    dtype = next(models.parameters()).dtype
    right: list[tuple[Tensor, Tensor]] = []
    for batch in _batches(dataset):
        batch.pos = batch.pos.to(dtype)
        if batch.x is not None:
            batch.x = batch.x.to(dtype)
        answers = models(batch).argmax(-1)
        for seed, predicted in enumerate(answers):
            index = batch.y * classes + predicted
            counts[seed] += torch.bincount(index, minlength=classes**2).view(classes, classes)
        right.append((batch.y, (answers == batch.y).double().mean(0)))
    labels, shares = (torch.cat(parts) for parts in zip(*right, strict=True))
    return SetAccuracy(counts / counts.sum(-1, keepdim=True), sampling_deviation(labels, shares))


def sampling_deviation(labels: Tensor, shares: Tensor) -> float:
    """The deviation of a mean over classes with one drawn graph each.

    Args:
        labels: The class of each graph, `[G]`.
        shares: The share of initialisations that are right about it, `[G]`.
    """
    classes = labels.unique()
    within = [shares[labels == k] for k in classes]
    variances = [float(part.var()) if len(part) > 1 else 0.0 for part in within]
    return float(sum(variances) ** 0.5 / len(classes))


def _batches(dataset: Polytopes) -> list[Batch]:
    """The graphs in batches of bounded size."""
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
