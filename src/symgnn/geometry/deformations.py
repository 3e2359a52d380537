"""Deformations of a graph: flexes, redrawings and angle flexes, each a displacement of its nodes.

They are made for the coordinates they are given: parameters are computed in float64 on the CPU and
cast when the map is applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Generator, Tensor

from symgnn.geometry.angle_rigidity import angle_flexed
from symgnn.geometry.base import Transformation, check_dimension, like
from symgnn.geometry.redrawing import redrawn
from symgnn.geometry.rigidity import flexed
from symgnn.geometry.sampling import Cloud, cloud_of

if TYPE_CHECKING:
    import networkx as nx
    from typing_extensions import Self


class NoSuchTransformation(ValueError):  # noqa: N818
    """Raised if the graph has no transformation of the requested kind."""


def check_nodes(name: str, pos: Tensor, nodes: int) -> None:
    """Refuse coordinates of another number of nodes."""
    if len(pos) != nodes:
        raise ValueError(
            f"pos: has {len(pos)} nodes, but this {name} was made for {nodes}; "
            "make one for this graph"
        )


def graph_of(cloud: Cloud, edge_index: Tensor | None) -> nx.Graph:
    """The undirected simple graph, without self-loops."""
    nodes = len(cloud.points)
    if edge_index is None:
        raise ValueError("edge_index: is needed to tell which parts can move; pass a [2, E] tensor")
    if edge_index.dim() != 2 or len(edge_index) != 2:
        raise ValueError(f"edge_index: has shape {list(edge_index.shape)}; pass a [2, E] tensor")
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
        raise ValueError(
            f"edge_index: names nodes {int(edge_index.min())} to {int(edge_index.max())}, but pos "
            f"has {nodes}; number the nodes from 0 to {nodes - 1}"
        )
    import networkx as nx  # when a graph is looked at: all else works without it

    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((a, b) for a, b in edge_index.T.tolist() if a != b)
    return graph


def _pairs(graph: nx.Graph) -> Tensor:
    """The ends of the edges `[2, E]`, each edge once."""
    return torch.tensor(sorted(map(sorted, graph.edges)), dtype=torch.long).reshape(-1, 2).T


@dataclass(frozen=True, eq=False)
class Displacement(Transformation):
    """Moves each node by what leads from `original` to `displaced`, both `[N, n]`.

    It has its property only for the coordinates that it was made for.
    """

    original: Tensor
    displaced: Tensor

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, self.displaced.size(1))
        check_nodes(self.name, pos, len(self.displaced))
        return pos + like(self.displaced - self.original, pos)


@dataclass(frozen=True, eq=False)
class Flex(Displacement):
    """A deformation that keeps the lengths of all edges, but not all distances."""

    name: ClassVar[str] = "flex"

    @classmethod
    def random(
        cls,
        pos: Tensor,
        edge_index: Tensor | None = None,
        *,
        generator: Generator | None = None,
        size: float = 0.3,
    ) -> Self:
        """A random one, by which some node goes about `size` times the cloud's radius.

        The random direction is taken in the null space of the rigidity matrix, without the rigid
        motions of the whole, and followed in small steps. The linear algebra is dense: meant for
        graphs of at most a few hundred nodes.
        """
        cloud = cloud_of(pos)
        graph = graph_of(cloud, edge_index)
        if not 1e-3 <= size <= 10:
            raise ValueError(f"size: must lie in [0.001, 10], got {size}; pass e.g. 0.3")
        displaced = flexed(cloud, _pairs(graph), size, generator) if len(pos) > 1 else None
        if displaced is None:
            raise NoSuchTransformation(
                "flex: the framework is rigid, no motion that keeps its edge lengths was found; "
                "use a graph with fewer edges"
            )
        # the cloud may share its memory with pos
        return cls(cloud.points.clone(), displaced)


@dataclass(frozen=True, eq=False)
class Redrawing(Displacement):
    """A parallel redrawing: every edge keeps its direction and may change its length.

    It keeps the angles at the vertices.
    """

    name: ClassVar[str] = "redrawing"

    @classmethod
    def random(
        cls, pos: Tensor, edge_index: Tensor | None = None, *, generator: Generator | None = None
    ) -> Self:
        """A random one, in which every edge has between 0.3 and 4 times its length.

        It is drawn from the redrawings that are neither translations nor dilations. The linear
        algebra is dense: meant for graphs of at most a few hundred nodes.
        """
        cloud = cloud_of(pos)
        pairs = _pairs(graph_of(cloud, edge_index))
        displaced = redrawn(cloud, pairs, generator) if len(pos) > 1 else None
        if displaced is None:
            raise NoSuchTransformation(
                "redrawing: the directions of the edges fix the graph up to translations and "
                "dilations; use a graph with fewer edges"
            )
        return cls(cloud.points.clone(), displaced)


@dataclass(frozen=True, eq=False)
class AngleFlex(Displacement):
    """A deformation that keeps the angles at the vertices and rotates each vertex differently.

    It is neither a similarity nor a combination of torsions and redrawings.
    """

    name: ClassVar[str] = "angle-flex"

    @classmethod
    def random(
        cls,
        pos: Tensor,
        edge_index: Tensor | None = None,
        *,
        generator: Generator | None = None,
        size: float = 0.3,
    ) -> Self:
        """A random one, by which some node goes about `size` times the cloud's radius.

        The random direction is taken in the null space of the angle rigidity matrix, without
        similarities, torsions and redrawings, and followed in small steps. The linear algebra is
        dense: meant for graphs of at most a hundred nodes.
        """
        cloud = cloud_of(pos)
        graph = graph_of(cloud, edge_index)
        if not 1e-3 <= size <= 10:
            raise ValueError(f"size: must lie in [0.001, 10], got {size}; pass e.g. 0.3")
        displaced = angle_flexed(cloud, graph, size, generator) if len(pos) > 1 else None
        if displaced is None:
            raise NoSuchTransformation(
                "angle-flex: no motion was found that keeps the angles at the vertices, beyond "
                "similarities, torsions and redrawings; use a graph with fewer edges"
            )
        return cls(cloud.points.clone(), displaced)
