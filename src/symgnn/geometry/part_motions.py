"""Motions of the parts of a graph, each on its own, that keep the edges between them.

The paper's local transformations: subgraphs that are joined by a bond may each be turned about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Generator, Tensor

from symgnn.geometry.base import Transformation, check_dimension, like
from symgnn.geometry.deformations import NoSuchTransformation, check_nodes, graph_of
from symgnn.geometry.sampling import (
    Cloud,
    cloud_of,
    random_direction,
    random_rotation,
    uniform,
)

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class PartMotion(Transformation):
    """A rigid motion for each part of a graph that agree on the ends of edges between parts.

    Node i of part p moves to `M_p x_i + q_p`: `part` `[N]` has the part of each node,
    `matrices` M `[P, n, n]` are orthogonal, `offsets` q are `[P, n]`. If an edge joins two
    parts, the motions of both parts map each of its ends to the same point, so edge lengths and
    angles at vertices are kept in the coordinates for which it was made. A torsion about a bond
    is a motion of the two sides of the bond.
    """

    name: ClassVar[str] = "part-motion"
    part: Tensor
    matrices: Tensor
    offsets: Tensor

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, self.offsets.size(1))
        check_nodes(self.name, pos, len(self.part))
        part = self.part.to(pos.device)
        matrices, offsets = like(self.matrices, pos)[part], like(self.offsets, pos)[part]
        return (matrices @ pos.unsqueeze(-1)).squeeze(-1) + offsets

    @classmethod
    def random(
        cls,
        pos: Tensor,
        edge_index: Tensor | None = None,
        *,
        generator: Generator | None = None,
        part: Tensor | None = None,
    ) -> Self:
        """Draw random rotations of parts, and of all parts on one side of others.

        A part without edges to others moves freely. A part whose edges to others end in points
        of a line rotates about that line, Haar-distributed on the rotations that fix it; in general
        on those that fix the affine subspace of the points, or by the reflection in it if no
        rotation does. If the points span all of space, the part cannot move.

        Args:
            pos: The coordinates `[N, n]`.
            edge_index: `[2, E]`.
            generator: For the CPU.
            part: The part of each node `[N]`, numbered from 0.

        Raises:
            NoSuchTransformation: if no part can move on its own.
        """
        cloud = cloud_of(pos)
        graph = graph_of(cloud, edge_index)
        if part is None:
            raise NoSuchTransformation(
                "part-motion: the graph has no attribute part; set part [N], the number of the "
                "part of each node"
            )
        part = check_part(part, len(pos)).cpu()
        count = int(part.max()) + 1 if len(part) else 0
        cross = [(a, b) for a, b in graph.edges if part[a] != part[b]]
        ends = torch.tensor(cross, dtype=torch.long).reshape(-1, 2)
        x = cloud.points.clone()
        eye = torch.eye(cloud.n, dtype=torch.float64)
        matrices, offsets = eye.repeat(count, 1, 1), x.new_zeros(count, cloud.n)
        sets = _movable(part, cross, count)
        moved = False
        for k in torch.randperm(len(sets), generator=generator).tolist():
            chosen = torch.zeros(count, dtype=torch.bool)
            chosen[sorted(sets[k])] = True
            found = _motion(x, ends, chosen[part], cloud, generator)
            if found is None:
                continue
            matrix, offset = found
            matrices[chosen] = matrix @ matrices[chosen]
            offsets[chosen] = offsets[chosen] @ matrix.T + offset
            x = torch.where(chosen[part].unsqueeze(1), x @ matrix.T + offset, x)
            moved = True
        if not moved:
            raise NoSuchTransformation(
                "part-motion: no part can move on its own while the ends of the edges to others "
                "stay; use parts that are joined by fewer edges"
            )
        return cls(part, matrices, offsets)


def check_part(part: Tensor, nodes: int) -> Tensor:
    """The numbers of parts `[N]`, whole and not negative."""
    if part.dtype.is_floating_point or part.dtype.is_complex or part.shape != (nodes,):
        raise ValueError(
            f"part: is {part.dtype} of shape {list(part.shape)}; give a whole number for each "
            f"node, of shape [{nodes}]"
        )
    if part.numel() and int(part.min()) < 0:
        raise ValueError(f"part: has the number {int(part.min())}; number the parts from 0")
    return part.long()


def _movable(part: Tensor, cross: list[tuple[int, int]], count: int) -> list[set[int]]:
    """Sets of parts that may move as one: single ones, and the sides of single connections."""
    import networkx as nx  # when it is used: all else works without it

    parts = nx.Graph()
    parts.add_nodes_from(part.unique().tolist())
    parts.add_edges_from((int(part[a]), int(part[b])) for a, b in cross)
    sets = [{one} for one in parts] + [set(c) for c in nx.connected_components(parts)]
    for a, b in nx.bridges(parts):
        cut = nx.restricted_view(parts, [], [(a, b)])
        sets += [set(nx.node_connected_component(cut, one)) for one in (a, b)]
    unique = {frozenset(one) for one in sets if len(one) < len(parts)}
    # of two sets that make up the whole, one moves: both alike would move the whole
    every, first = frozenset(parts), min(parts, default=0)
    kept = [one for one in unique if first not in one or every - one not in unique]
    return [set(one) for one in sorted(kept, key=sorted)]


def _motion(
    x: Tensor, ends: Tensor, moved: Tensor, cloud: Cloud, generator: Generator | None
) -> tuple[Tensor, Tensor] | None:
    """A random motion of the nodes `moved` that fixes all ends of edges to the others."""
    n, eye = cloud.n, torch.eye(cloud.n, dtype=torch.float64)
    between = ends[moved[ends[:, 0]] != moved[ends[:, 1]]] if len(ends) else ends
    if not len(between):
        centre = x[moved].mean(0)
        matrix = random_rotation(n, generator)
        step = cloud.radius * uniform(0.5, 1.0, generator) * random_direction(n, generator)
        return matrix, centre - matrix @ centre + step
    fixed = x[between.flatten()]
    centre = fixed.mean(0)
    _, sizes, rows = torch.linalg.svd(fixed - centre, full_matrices=True)
    across = rows[int((sizes > 1e-9 * cloud.radius).sum()) :]  # [n - rank, n]
    if not len(across):
        return None
    # nodes that are fixed anyway do not count, neither here nor there
    width = ((x - centre) @ across.T).norm(dim=1)
    if min(float(width[moved].max()), float(width[~moved].max())) < 1e-6 * cloud.radius:
        return None
    flip = -torch.ones(1, 1, dtype=torch.float64)
    turn = flip if len(across) == 1 else random_rotation(len(across), generator)
    matrix = eye - across.T @ across + across.T @ turn @ across
    return matrix, centre - matrix @ centre
