"""Randomly transformed polytopes: the test sets of the paper's classification experiments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data, InMemoryDataset

from symgnn._argument_checks import unknown_name
from symgnn.data._polytopes import polytopes
from symgnn.geometry import Affine, SpecialConformal, affine_scale, random_orthogonal
from symgnn.geometry.transformations import Transformation

#: The transformations of the test sets `x -> gamma A x + q`, as (mu, whether gamma is drawn); mu
#: is the mean of |A'A - I|_F. What the paper leaves open about A, q and gamma is in a `Law`.
AFFINE_SETS: dict[str, tuple[float, bool]] = {
    "orthogonal": (0.0, False),
    "orthogonal+dilation": (0.0, True),
    "non-orthogonal mu=0.5": (0.5, True),
    "non-orthogonal mu=1.5": (1.5, True),
    "non-orthogonal mu=3.0": (3.0, True),
}
#: The sets of test graphs: by which maps the polytopes were moved.
SETS = (*AFFINE_SETS, "special-conformal")

#: The law of q: normal with this deviation, or "uniform" in [-1, 1], one number per coordinate.
OFFSETS: dict[str, float | None] = {"normal": 1.0, "none": 0.0, "tripled": 3.0, "uniform": None}
#: The law of A for mu > 0; Q and P are Haar-orthogonal, Z and z Gaussian: "noise" Q + s Z,
#: "unrotated" I + s Z, "stretch" Q diag(1 + s z) P.
MATRICES = ("noise", "unrotated", "stretch")
#: The law of gamma, where it is drawn: standard normal, or uniform in [0.1, 10].
FACTORS = ("normal", "uniform")


@dataclass(frozen=True)
class Law:
    """How q, A (for mu > 0) and gamma of `x -> gamma A x + q` are drawn.

    Args:
        offset: One of :data:`OFFSETS`.
        matrix: One of :data:`MATRICES`.
        factor: One of :data:`FACTORS`.
    """

    offset: str = "normal"
    matrix: str = "noise"
    factor: str = "normal"

    def __post_init__(self) -> None:
        known = {"offset": tuple(OFFSETS), "matrix": MATRICES, "factor": FACTORS}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise ValueError(unknown_name(name, getattr(self, name), choices, "known"))

    def draw(self, n: int, mu: float, dilation: bool, generator: Generator) -> Affine:
        """A random map of n coordinates."""
        matrix = self._matrix(n, mu, generator)
        size = OFFSETS[self.offset]
        if size is None:
            offset = 2 * torch.rand(n, generator=generator, dtype=torch.float64) - 1
        else:
            offset = size * torch.randn(n, generator=generator, dtype=torch.float64)
        factor = 1.0
        if dilation and self.factor == "uniform":
            factor = 0.1 + 9.9 * float(torch.rand((), generator=generator, dtype=torch.float64))
        elif dilation:
            factor = float(torch.randn((), generator=generator, dtype=torch.float64))
        return Affine(matrix, offset, factor)

    def _matrix(self, n: int, mu: float, generator: Generator) -> Tensor:
        rotation = random_orthogonal(n, generator)
        if mu == 0:
            return rotation
        if self.matrix == "stretch":
            factors = torch.randn(n, generator=generator, dtype=torch.float64)
            along = random_orthogonal(n, generator)
            return rotation * (1 + stretch_scale(n, mu) * factors) @ along
        noise = torch.randn(n, n, generator=generator, dtype=torch.float64)
        start = rotation if self.matrix == "noise" else torch.eye(n, dtype=torch.float64)
        return start + affine_scale(n, mu) * noise  # as Q' Z is Gaussian, one scale for both


@lru_cache(maxsize=64)
def stretch_scale(n: int, mu: float) -> float:
    """The `s` for which the mean of `|A^T A - I|_F` over `A = Q diag(1 + s z) P` is `mu`.

    The mean is a Monte-Carlo one over fixed samples, accurate to better than 1 %.
    """
    z = torch.randn(100_000, n, generator=Generator().manual_seed(0), dtype=torch.float64)
    low, high = 0.0, mu  # at s = mu the mean is larger than mu, for any n
    for _ in range(40):
        middle = (low + high) / 2
        mean = float(((1 + middle * z).square() - 1).norm(dim=1).mean())
        low, high = (middle, high) if mean < mu else (low, middle)
    return high


#: As the tables of the paper are read: of 72 readings, the one nearest to the paper's 252 cells
#: (`symgnn reproduce polytopes-readings`).
READ = Law(offset="tripled")
#: The node features that `Polytopes` can have.
FEATURES = ("random", "constant", "one marked", "half marked")


def draw(kind: str, graph: Data, generator: Generator, law: Law = READ) -> Transformation:
    """A random transformation of the given test set."""
    if kind == "special-conformal":
        return SpecialConformal.random(graph.pos, generator=generator)
    if kind not in AFFINE_SETS:
        raise ValueError(f"transformation: {kind!r} is not known; choose from {', '.join(SETS)}")
    return law.draw(graph.pos.shape[1], *AFFINE_SETS[kind], generator)


class Polytopes(InMemoryDataset):
    """The regular polytopes of a dimension as graphs, one class each.

    Args:
        dimension: The number of coordinates, from 2 on.
        transformation: None for one graph per class with circumradius 1, centred; or one of
            :data:`SETS`, for `copies` of each class, every copy transformed at random.
        copies: The number of copies of each class.
        seed: The same seed gives the same set.
        node_features: None (or False) for none; "random" (or True), two numbers per node, the same
            in every set and for every copy of a class; "constant", a one; "one marked", a one at
            the first vertex and zeros elsewhere; "half marked", ones at half of the vertices
            (rounded down), chosen at random for every graph: in three dimensions, where all
            numbers of vertices are even, the fraction of marks is the same for all classes.
        dtype: The dtype of coordinates and features.
        transform: A transform, as in PyTorch Geometric.
        law: The distributions of the transformations.

    Example:
        >>> len(symgnn.data.Polytopes(3, "orthogonal", copies=2))
        10
    """

    def __init__(
        self,
        dimension: int,
        transformation: str | None = None,
        copies: int = 1,
        *,
        seed: int = 0,
        node_features: bool | str | None = None,
        dtype: torch.dtype = torch.float32,
        transform: object = None,
        law: Law = READ,
    ) -> None:
        super().__init__(None, transform)
        graphs = polytopes(dimension, dtype=torch.float64)
        self.names = [graph.name for graph in graphs]
        kind = "random" if node_features is True else node_features or None
        if kind is not None and kind not in FEATURES:
            raise ValueError(unknown_name("node_features", kind, FEATURES, "known"))
        if kind == "random":
            features = Generator().manual_seed(0)
            for graph in graphs:
                graph.x = torch.randn(len(graph.pos), 2, generator=features, dtype=torch.float64)
        if transformation is not None:
            generator = Generator().manual_seed(seed)
            graphs = [
                draw(transformation, graph, generator, law).apply(graph)
                for graph in graphs
                for _ in range(copies)
            ]
        marks = Generator().manual_seed(seed + 1)
        for graph in graphs:
            del graph.name
            if kind not in (None, "random"):
                graph.x = _marked(str(kind), len(graph.pos), marks)
            graph.pos = graph.pos.to(dtype)
            if graph.x is not None:
                graph.x = graph.x.to(dtype)
        self.data, self.slices = self.collate(graphs)


def _marked(kind: str, nodes: int, generator: Generator) -> Tensor:
    """The feature of a node `[N, 1]`."""
    if kind == "constant":
        return torch.ones(nodes, 1, dtype=torch.float64)
    found = torch.zeros(nodes, 1, dtype=torch.float64)
    chosen = torch.randperm(nodes, generator=generator)[: nodes // 2]
    found[chosen if kind == "half marked" else torch.zeros(1, dtype=torch.long)] = 1
    return found
