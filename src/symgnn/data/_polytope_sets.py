"""Randomly transformed polytopes: the test sets of the paper's classification experiments."""

from __future__ import annotations

import torch
from torch import Generator
from torch_geometric.data import Data, InMemoryDataset

from symgnn.data._polytopes import polytopes
from symgnn.geometry import Affine, SpecialConformal
from symgnn.geometry.transformations import Transformation

#: The transformations of the test sets `x -> gamma A x + q`, as (mu, whether gamma is drawn):
#: A = Q + s Z with Q Haar-orthogonal, Z Gaussian and s such that the mean of |A'A - I|_F is mu;
#: gamma uniform in [0.1, 10], or 1; q standard normal.
AFFINE_SETS: dict[str, tuple[float, bool]] = {
    "orthogonal": (0.0, False),
    "orthogonal+dilation": (0.0, True),
    "non-orthogonal mu=0.5": (0.5, True),
    "non-orthogonal mu=1.5": (1.5, True),
    "non-orthogonal mu=3.0": (3.0, True),
}
#: The sets of test graphs: by which maps the polytopes were moved.
SETS = (*AFFINE_SETS, "special-conformal")


def draw(kind: str, graph: Data, generator: Generator) -> Transformation:
    """A random transformation of the given test set."""
    if kind == "special-conformal":
        return SpecialConformal.random(graph.pos, generator=generator)
    if kind not in AFFINE_SETS:
        raise ValueError(f"transformation: {kind!r} is not known; choose from {', '.join(SETS)}")
    mu, dilation = AFFINE_SETS[kind]
    return Affine.random(graph.pos, mu=mu, dilation=dilation, generator=generator)


class Polytopes(InMemoryDataset):
    """The regular polytopes of a dimension as graphs, one class each.

    Without `transformation`, one graph per class with circumradius 1, centred. With one of
    :data:`SETS`, `copies` of each, every copy transformed at random; the same seed gives the same
    set. Node features there are none; `node_features=True` adds two that are not all identical,
    the same in every set and for every copy of a class.
    """

    def __init__(
        self,
        dimension: int,
        transformation: str | None = None,
        copies: int = 1,
        *,
        seed: int = 0,
        node_features: bool = False,
        dtype: torch.dtype = torch.float32,
        transform: object = None,
    ) -> None:
        super().__init__(None, transform)
        graphs = polytopes(dimension, dtype=torch.float64)
        self.names = [graph.name for graph in graphs]
        if node_features:
            features = Generator().manual_seed(0)
            for graph in graphs:
                graph.x = torch.randn(len(graph.pos), 2, generator=features, dtype=torch.float64)
        if transformation is not None:
            generator = Generator().manual_seed(seed)
            graphs = [
                draw(transformation, graph, generator).apply(graph)
                for graph in graphs
                for _ in range(copies)
            ]
        for graph in graphs:
            del graph.name
            graph.pos = graph.pos.to(dtype)
            if graph.x is not None:
                graph.x = graph.x.to(dtype)
        self.data, self.slices = self.collate(graphs)
