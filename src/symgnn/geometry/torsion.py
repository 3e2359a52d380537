"""Torsions: turns of a part of a graph about a bridge.

They are made for the coordinates they are given: parameters are computed in float64 on the CPU and
cast when the map is applied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Generator, Tensor

from symgnn.geometry.base import Transformation, check_dimension, like
from symgnn.geometry.deformations import NoSuchTransformation, check_nodes, graph_of
from symgnn.geometry.sampling import Cloud, cloud_of, random_rotation

if TYPE_CHECKING:
    import networkx as nx
    from typing_extensions import Self


def _sides(graph: nx.Graph, a: int, b: int) -> tuple[list[int], list[int]]:
    """The nodes that stay connected to `a`, and to `b`, when the edge between them is cut."""
    import networkx as nx

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
    """A rotation of all nodes on one side of a bridge about that bridge.

    The nodes on the side of `b` of the `bridge` `(a, b)`, marked in `moved` `[N]`, move from `x` to
    `x_b + R (x - x_b)`, where `matrix` `R` `[n, n]` fixes the direction of the bridge: a rotation,
    or for n = 2 the reflection, of determinant -1. Edge lengths and angles between the neighbours
    of a node are kept in the coordinates for which it was made, and in all others in which the
    bridge has the same direction.
    """

    name: ClassVar[str] = "torsion"
    bridge: tuple[int, int]
    matrix: Tensor
    moved: Tensor

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, len(self.matrix))
        check_nodes(self.name, pos, len(self.moved))
        pivot = pos[self.bridge[1]]
        turned = pivot + (pos - pivot) @ like(self.matrix, pos).T
        return torch.where(self.moved.to(pos.device).unsqueeze(1), turned, pos)

    @classmethod
    def random(
        cls, pos: Tensor, edge_index: Tensor | None = None, *, generator: Generator | None = None
    ) -> Self:
        """A torsion about a random bridge, Haar-distributed on the rotations that fix its axis.

        Only bridges with a node off their line on both sides are used, since otherwise no distance
        would change.
        """
        cloud = cloud_of(pos)
        graph = graph_of(cloud, edge_index)
        if cloud.n == 1:
            raise NoSuchTransformation("torsion: needs a dimension of 2 or more; pos has 1")
        import networkx as nx

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
        """The torsion about a given bridge `(a, b)` in 3 dimensions, by an angle in radians.

        The side of `b` is rotated right-handed about the direction from `a` to `b`.
        """
        cloud = cloud_of(pos)
        if cloud.n != 3:
            raise ValueError(f"pos: has dimension {cloud.n}; an angle gives a torsion only in 3")
        if not math.isfinite(angle):
            raise ValueError(f"angle: must be finite, got {angle}; pass an angle in radians")
        a, b = bridge
        graph = graph_of(cloud, edge_index)
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
