"""Maps of the whole of space, or of the node numbers, with random elements of each kind.

Parameters are drawn in float64 on the CPU and cast when a map is applied. Points are rows: a
matrix `A` acts as `pos @ A.T`.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Generator, Tensor

from symgnn._argument_checks import check_positive
from symgnn.geometry.base import Transformation, check_dimension, like
from symgnn.geometry.sampling import (
    Cloud,
    affine_scale,
    cloud_of,
    random_direction,
    random_orthogonal,
    random_rotation,
    uniform,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class Translation(Transformation):
    """The map `x -> x + t`, with `offset` `t` `[n]`.

    Random: of uniform direction, and of a length between half and twice the cloud's radius.

    Example:
        >>> symgnn.geometry.Translation(torch.tensor([1.0, 0.0]))(torch.zeros(1, 2))
        tensor([[1., 0.]])
    """

    name: ClassVar[str] = "translation"
    offset: Tensor

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, len(self.offset))
        return pos + like(self.offset, pos)

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        length = cloud.radius * uniform(0.5, 2.0, generator)
        return cls(length * random_direction(cloud.n, generator))


@dataclass(frozen=True, eq=False)
class Rotation(Transformation):
    """The map `x -> R x` about the origin, with `matrix` `R` `[n, n]` of determinant 1.

    Random: Haar-distributed on SO(n), which in one dimension is the identity.
    """

    name: ClassVar[str] = "rotation"
    matrix: Tensor

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, len(self.matrix))
        return pos @ like(self.matrix, pos).T

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        return cls(random_rotation(cloud.n, generator))


@dataclass(frozen=True, eq=False)
class Reflection(Transformation):
    """The map `x -> x - 2 (v.x) v` in the hyperplane through the origin with unit `normal` `[n]`.

    Random: the normal is uniform on the sphere.

    Example:
        >>> symgnn.geometry.Reflection(torch.tensor([1.0, 0.0]))(torch.ones(1, 2))
        tensor([[-1.,  1.]])
    """

    name: ClassVar[str] = "reflection"
    normal: Tensor

    @property
    def matrix(self) -> Tensor:
        """The Householder matrix `[n, n]`, of determinant -1."""
        return torch.eye(len(self.normal)).to(self.normal) - 2 * self.normal.outer(self.normal)

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, len(self.normal))
        return pos @ like(self.matrix, pos).T

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        return cls(random_direction(cloud.n, generator))


@dataclass(frozen=True, eq=False)
class Dilation(Transformation):
    """The map `x -> gamma x` about the origin, with `factor` `gamma > 0`.

    Random: log-uniform on `[0.1, 0.8]` and `[1.25, 10]`, so never close to the identity.

    Example:
        >>> symgnn.geometry.Dilation(2.0)(torch.ones(1, 2))
        tensor([[2., 2.]])
    """

    name: ClassVar[str] = "dilation"
    factor: float

    def __post_init__(self) -> None:
        check_positive("factor", self.factor)

    def __call__(self, pos: Tensor) -> Tensor:
        return self.factor * pos

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        # both intervals have the length log(8) on the logarithmic axis
        u = uniform(-math.log(8), math.log(8), generator)
        return cls((0.8 if u < 0 else 1.25) * math.exp(u))


@dataclass(frozen=True, eq=False)
class Inversion(Transformation):
    """The map `x -> c + r^2 (x - c) / |x - c|^2`, with `centre` `c` `[n]` and `radius` `r`.

    Random: the centre is at least half the cloud's radius away from every point and from the
    centroid, and at most two radii from the centroid, beyond which the map is nearly a similarity.

    Example:
        >>> symgnn.geometry.Inversion(torch.zeros(2), 1.0)(torch.tensor([[2.0, 0.0]]))
        tensor([[0.5000, 0.0000]])
    """

    name: ClassVar[str] = "inversion"
    centre: Tensor
    radius: float

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, len(self.centre))
        centre = like(self.centre, pos)
        offset = pos - centre
        return centre + self.radius**2 * offset / offset.square().sum(1, keepdim=True)

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        radius = cloud.radius * uniform(0.75, 1.5, generator)
        # a centre between the points is tried first; 1.5 radii away, every centre is far enough
        for nearest in torch.linspace(0.5, 1.55, 16).tolist():
            distance = cloud.radius * uniform(nearest, 2.0, generator)
            centre = cloud.centroid + distance * random_direction(cloud.n, generator)
            if ((cloud.points - centre).norm(dim=1) >= 0.5 * cloud.radius).all():
                break
        return cls(centre, radius)


@dataclass(frozen=True, eq=False)
class SpecialConformal(Transformation):
    """The map `y -> (y - b|y|^2) / (1 - 2 b.y + |b|^2 |y|^2)` of `y = x - c`, moved back to `c`.

    `vector` is `b` `[n]`, `centre` is `c` `[n]`. Random: about the centroid, with `|b|` between
    0.35 and 0.55 over the cloud's radius, so that the denominator is at least 0.2 on the cloud.
    """

    name: ClassVar[str] = "special-conformal"
    vector: Tensor
    centre: Tensor

    def denominator(self, pos: Tensor) -> Tensor:
        """The denominator at each point, `[N, n] -> [N]`; it is zero only at the pole."""
        check_dimension(self.name, pos, len(self.vector))
        offset, vector = pos - like(self.centre, pos), like(self.vector, pos)
        return 1 - 2 * (offset @ vector) + vector.square().sum() * offset.square().sum(1)

    def __call__(self, pos: Tensor) -> Tensor:
        denominator = self.denominator(pos).unsqueeze(1)
        centre = like(self.centre, pos)
        offset = pos - centre
        image = offset - like(self.vector, pos) * offset.square().sum(1, keepdim=True)
        return centre + image / denominator

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        # The denominator is at least (1 - |b||y|)^2. Where it is the same at all points, the map
        # is a similarity of them, so a direction in which it varies is looked for.
        drawn: list[tuple[float, Self]] = []
        while len(drawn) < 32 and (not drawn or drawn[-1][0] < 2):
            size = uniform(0.35, 0.55, generator) / cloud.radius
            element = cls(size * random_direction(cloud.n, generator), cloud.centroid)
            values = element.denominator(cloud.points)
            drawn.append((float(values.max() / values.min()) if len(values) else 2.0, element))
        return max(drawn, key=lambda pair: pair[0])[1]


@dataclass(frozen=True, eq=False)
class Affine(Transformation):
    """The map `x -> gamma A x + q`: `matrix` `A` `[n, n]`, `offset` `q` `[n]`, `factor` `gamma`."""

    name: ClassVar[str] = "affine"
    matrix: Tensor
    offset: Tensor
    factor: float = 1.0

    def __call__(self, pos: Tensor) -> Tensor:
        check_dimension(self.name, pos, len(self.matrix))
        return self.factor * (pos @ like(self.matrix, pos).T) + like(self.offset, pos)

    @classmethod
    def random(
        cls,
        pos: Tensor,
        edge_index: Tensor | None = None,
        *,
        generator: Generator | None = None,
        mu: float = 1.0,
        dilation: bool = False,
    ) -> Self:
        """`A = Q + s Z` with the mean of `|A^T A - I|_F` equal to `mu`, and `q` standard normal.

        `mu = 0` gives Euclidean maps. `gamma` is 1, or uniform on `[0.1, 10]` with `dilation`.
        """
        n = cloud_of(pos).n
        scale = affine_scale(n, float(mu))
        orthogonal = random_orthogonal(n, generator)
        noise = torch.randn(n, n, generator=generator, dtype=torch.float64)
        offset = torch.randn(n, generator=generator, dtype=torch.float64)
        factor = uniform(0.1, 10.0, generator) if dilation else 1.0
        return cls(orthogonal + scale * noise, offset, factor)


@dataclass(frozen=True, eq=False)
class Permutation(Transformation):
    """A relabelling: node `order[i]` of the old graph is node `i` of the new, `order` `[N]`."""

    name: ClassVar[str] = "permutation"
    order: Tensor

    def __post_init__(self) -> None:
        if not torch.equal(self.order.sort().values.cpu(), torch.arange(self.order.numel())):
            raise ValueError("order: must hold each of 0, ..., N - 1 once; pass torch.randperm(N)")

    def __call__(self, pos: Tensor) -> Tensor:
        if len(pos) != len(self.order):
            raise ValueError(
                f"pos: has {len(pos)} nodes, but this permutation orders {len(self.order)}; "
                "make one for this graph"
            )
        return pos[self.order.to(pos.device)]

    def apply(self, data: Data) -> Data:
        """A copy of the graph with node attributes reordered and node numbers relabelled.

        As in PyTorch Geometric, `face` and all attributes with `index` in their name hold node
        numbers. The order of the edges is kept.
        """
        if data.num_nodes != len(self.order):
            raise ValueError(
                f"data: has {data.num_nodes} nodes, but this permutation orders "
                f"{len(self.order)}; make one for this graph"
            )
        out, numbers = copy.copy(data), self.order.argsort()
        out.topology = None  # it is that of the old numbers
        del out.topology
        for key, value in data.to_dict().items():
            if key == "angle_attr" and isinstance(value, Tensor):
                continue  # below: in the order of the new angles
            if _is_sparse(value):
                raise ValueError(f"data: {key} is sparse; pass an edge_index instead")
            if isinstance(value, Tensor) and ("index" in key or key == "face"):
                out[key] = numbers.to(value.device)[value]
            elif data.is_node_attr(key) and isinstance(value, list | tuple):
                out[key] = type(value)(value[i] for i in self.order.tolist())
            elif data.is_node_attr(key) and isinstance(value, Tensor):
                out[key] = value[self.order.to(value.device)]
            elif data.is_node_attr(key):
                out[key] = value[self.order.cpu().numpy()]
        if isinstance(data.to_dict().get("angle_attr"), Tensor):
            out.angle_attr = data.angle_attr[_old_angles(data, out, self.order)]
        return out

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        return cls(torch.randperm(len(cloud.points), generator=generator))


def _is_sparse(value: object) -> bool:
    """Whether it is a sparse tensor, of torch or of torch_sparse."""
    if isinstance(value, Tensor):
        return value.layout is not torch.strided
    return type(value).__name__ == "SparseTensor"


def _old_angles(old: Data, new: Data, order: Tensor) -> Tensor:
    """The number that each angle of a relabelled graph had before `[A]`."""

    def keys(angles: Tensor) -> Tensor:
        j, i, k = angles
        return (i * old.num_nodes + j) * old.num_nodes + k

    before, after = (angles_of(graph.edge_index) for graph in (old, new))
    return torch.searchsorted(keys(before), keys(order.to(after.device)[after]))


def angles_of(edge_index: Tensor) -> Tensor:
    """The angles (j, i, k) of a graph, j and k different neighbours of i, `[2, E] -> [3, A]`.

    Sorted by i, j and k; neighbours are those along edges in either direction, each once.
    """
    straight = edge_index[:, edge_index[0] != edge_index[1]]
    rays = torch.cat([straight, straight.flip(0)], 1).unique(dim=1)  # of vertices and neighbours
    vertex, neighbour = rays
    degree = torch.bincount(vertex)
    start = degree.cumsum(0) - degree
    first = torch.arange(len(vertex), device=vertex.device).repeat_interleave(degree[vertex])
    row = torch.arange(len(first), device=vertex.device)
    before = degree[vertex].cumsum(0) - degree[vertex]
    second = start[vertex[first]] + row - before[first]
    first, second = first[first != second], second[first != second]
    return torch.stack([neighbour[first], vertex[first], neighbour[second]])
