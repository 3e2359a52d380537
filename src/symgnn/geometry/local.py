"""Maps that move parts of a graph: torsions, flexes, redrawings and angle flexes.

They are made for the coordinates they are given: parameters are computed in float64 on the CPU and
cast when the map is applied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import networkx as nx
import torch
from torch import Generator, Tensor

from symgnn.geometry.angle_rigidity import angle_flexed
from symgnn.geometry.base import Transformation, check_dimension, like
from symgnn.geometry.redrawing import redrawn
from symgnn.geometry.rigidity import flexed
from symgnn.geometry.sampling import Cloud, cloud_of, random_rotation
from symgnn.geometry.transformations import (
    Affine,
    Dilation,
    Inversion,
    Permutation,
    Reflection,
    Rotation,
    SpecialConformal,
    Translation,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class NoSuchTransformation(ValueError):  # noqa: N818
    """The graph has no transformation of the kind that is asked for."""


def _check_nodes(name: str, pos: Tensor, nodes: int) -> None:
    if len(pos) != nodes:
        raise ValueError(
            f"pos: has {len(pos)} nodes, but this {name} was made for {nodes}; "
            "make one for this graph"
        )


def _graph(cloud: Cloud, edge_index: Tensor | None) -> nx.Graph:
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
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((a, b) for a, b in edge_index.T.tolist() if a != b)
    return graph


def _sides(graph: nx.Graph, a: int, b: int) -> tuple[list[int], list[int]]:
    """The nodes that stay connected to `a`, and to `b`, when the edge between them is cut."""
    cut = nx.restricted_view(graph, [], [(a, b)])
    return sorted(nx.node_connected_component(cut, a)), sorted(nx.node_connected_component(cut, b))


def _axis(cloud: Cloud, a: int, b: int) -> Tensor | None:
    """The unit vector from node `a` to node `b`, or None where they are in one place."""
    axis = cloud.points[b] - cloud.points[a]
    length = axis.norm()
    return axis / length if length > 1e-6 * cloud.radius else None


def _mask(nodes: int, chosen: list[int]) -> Tensor:
    mask = torch.zeros(nodes, dtype=torch.bool)
    mask[chosen] = True
    return mask


@dataclass(frozen=True, eq=False)
class Torsion(Transformation):
    """A turn of all nodes on one side of a bridge about that bridge.

    The nodes on the side of `b` of the `bridge` `(a, b)`, marked in `moved` `[N]`, go from `x` to
    `x_b + R (x - x_b)`, where `matrix` `R` `[n, n]` fixes the direction of the bridge: a rotation,
    or for n = 2 the flip, of determinant -1. Lengths of edges, and angles at a node between its
    neighbours, are kept in the coordinates it was made for, and where the bridge is parallel to
    what it was there.
    """

    name: ClassVar[str] = "torsion"
    bridge: tuple[int, int]
    matrix: Tensor
    moved: Tensor

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, len(self.matrix))
        _check_nodes(self.name, pos, len(self.moved))
        pivot = pos[self.bridge[1]]
        turned = pivot + (pos - pivot) @ like(self.matrix, pos).T
        return torch.where(self.moved.to(pos.device).unsqueeze(1), turned, pos)

    @classmethod
    def random(
        cls, pos: Tensor, edge_index: Tensor | None = None, *, generator: Generator | None = None
    ) -> Self:
        """About a random bridge, Haar-distributed on the rotations that fix its direction.

        Both sides of the bridge have a node off its line, since otherwise no distance would change.
        """
        cloud = cloud_of(pos)
        graph = _graph(cloud, edge_index)
        if cloud.n == 1:
            raise NoSuchTransformation("torsion: needs a dimension of 2 or more; pos has 1")
        bridges = sorted((min(edge), max(edge)) for edge in nx.bridges(graph))
        for k in torch.randperm(len(bridges), generator=generator).tolist():
            a, b = bridges[k]
            if torch.rand((), generator=generator, dtype=torch.float64) < 0.5:
                a, b = b, a
            axis = _axis(cloud, a, b)
            if axis is None:
                continue
            sides = _sides(graph, a, b)
            offsets = [cloud.points[side] - cloud.points[b] for side in sides]
            widths = [(x - (x @ axis).outer(axis)).norm(dim=1).max() for x in offsets]
            if min(widths) < 1e-6 * cloud.radius:
                continue
            others = torch.linalg.qr(axis.unsqueeze(1), mode="complete").Q[:, 1:]
            flip = -torch.ones(1, 1, dtype=torch.float64)
            turn = flip if cloud.n == 2 else random_rotation(cloud.n - 1, generator)
            matrix = axis.outer(axis) + others @ turn @ others.T
            return cls((a, b), matrix, _mask(len(pos), sides[1]))
        raise NoSuchTransformation(
            "torsion: no bridge of the graph has its ends apart and, on both sides, a node off its "
            "line; use a graph with such a bridge"
        )

    @classmethod
    def about(
        cls, pos: Tensor, edge_index: Tensor, *, bridge: tuple[int, int], angle: float
    ) -> Self:
        """About a given bridge `(a, b)` in 3 dimensions, by an angle in radians.

        The side of `b` is turned right-handed about the direction from `a` to `b`.
        """
        cloud = cloud_of(pos)
        if cloud.n != 3:
            raise ValueError(f"pos: has dimension {cloud.n}; an angle gives a torsion only in 3")
        if not math.isfinite(angle):
            raise ValueError(f"angle: must be finite, got {angle}; pass an angle in radians")
        a, b = bridge
        graph = _graph(cloud, edge_index)
        moved = _sides(graph, a, b)[1] if graph.has_edge(a, b) else [a]
        axis = _axis(cloud, a, b) if a not in moved else None
        if axis is None:
            raise NoSuchTransformation(
                f"bridge: ({a}, {b}) is not an edge with its ends apart whose removal separates "
                "them; choose one of networkx.bridges"
            )
        x, y, z = axis.tolist()
        cross = torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=torch.float64)
        along = axis.outer(axis)
        flat = torch.eye(3, dtype=torch.float64) - along
        matrix = along + math.cos(angle) * flat + math.sin(angle) * cross
        return cls((a, b), matrix, _mask(len(pos), moved))


@dataclass(frozen=True, eq=False)
class _Displacement(Transformation):
    """Moves each node by what leads from `original` to `displaced`, both `[N, n]`.

    It has its property only for the coordinates that it was made for.
    """

    original: Tensor
    displaced: Tensor

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, self.displaced.size(1))
        _check_nodes(self.name, pos, len(self.displaced))
        return pos + like(self.displaced - self.original, pos)


@dataclass(frozen=True, eq=False)
class Flex(_Displacement):
    """A deformation that keeps the lengths of all edges, and no more than that."""

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
        graph = _graph(cloud, edge_index)
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
class Redrawing(_Displacement):
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
        pairs = _pairs(_graph(cloud, edge_index))
        displaced = redrawn(cloud, pairs, generator) if len(pos) > 1 else None
        if displaced is None:
            raise NoSuchTransformation(
                "redrawing: the directions of the edges fix the graph up to translations and "
                "dilations; use a graph with fewer edges"
            )
        return cls(cloud.points.clone(), displaced)


@dataclass(frozen=True, eq=False)
class AngleFlex(_Displacement):
    """A deformation that keeps the angles at all vertices and turns each vertex by its own rotation.

    It is neither a similarity nor made of torsions and redrawings.
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
        graph = _graph(cloud, edge_index)
        if not 1e-3 <= size <= 10:
            raise ValueError(f"size: must lie in [0.001, 10], got {size}; pass e.g. 0.3")
        displaced = angle_flexed(cloud, graph, size, generator) if len(pos) > 1 else None
        if displaced is None:
            raise NoSuchTransformation(
                "angle-flex: no motion was found that keeps the angles at the vertices, beyond "
                "similarities, torsions and redrawings; use a graph with fewer edges"
            )
        return cls(cloud.points.clone(), displaced)


def _pairs(graph: nx.Graph) -> Tensor:
    """The ends of the edges `[2, E]`, each edge once."""
    return torch.tensor(sorted(map(sorted, graph.edges)), dtype=torch.long).reshape(-1, 2).T


#: Every kind of transformation by its name.
TRANSFORMATIONS: dict[str, type[Transformation]] = {
    kind.name: kind
    for kind in (
        Permutation,
        Translation,
        Rotation,
        Reflection,
        Dilation,
        Inversion,
        SpecialConformal,
        Affine,
        Torsion,
        Flex,
        Redrawing,
        AngleFlex,
    )
}
