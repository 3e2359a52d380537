"""The topology of a graph or a batch: everything the blocks need that is not a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.geometry.measures import second_of
from symgnn.topology.checks import check_edges, check_positions
from symgnn.topology.rays import all_pairs, buckets, sorted_rays


class Chunk(NamedTuple):
    """Some vertices of one degree d, with all their angles."""

    number: int
    vertices: Tensor  # [m]
    neighbours: Tensor  # [m, d]
    start: int  # their first ray
    stop: int  # one past their last ray

    def angles(self, first_angle: Tensor) -> Tensor:
        """The numbers of their angles `[m, d, d - 1]`, given that of each vertex's first."""
        degree = self.neighbours.shape[1]
        second = second_of(degree, self.neighbours.device)
        first = torch.arange(degree, device=second.device).unsqueeze(-1)
        within = first * (degree - 1) + second - (second > first).long()
        return first_angle[self.vertices][:, None, None] + within


@dataclass(frozen=True)
class Topology:
    """Neighbours, angles and counts of a graph or batch with N nodes, E edges and G graphs.

    Make it once with :meth:`of`, outside forward. A *ray* (i, j) joins a vertex i to a node j of
    its in- and out-neighbours (each once, itself never), and an *angle* (j, i, k) is an ordered
    pair of different rays of i. Vertices of equal degree d form a bucket, whose angles are a dense
    grid `[m, d, d - 1]`; rays are numbered bucket by bucket. Vertices of degree 0 and 1 have no
    angles, so their rays are left out.
    """

    edge_index: Tensor  # [2, E], source and target
    batch: Tensor  # [N], the graph of a node
    nodes_of_graph: Tensor  # [G], how many
    edges_of_node: Tensor  # [N], how many end there
    # the angles
    vertices: list[Tensor]  # per bucket [m]
    neighbours: list[Tensor]  # per bucket [m, d]
    ray_edge: Tensor | None = None  # [R, p], the edges i -> j, or, where there are none, j -> i
    ray_edge_weight: Tensor | None = None  # [R, p], 1 / their number; None where p = 1
    target_ray: Tensor | None = None  # [E], the ray (target, source); R where there is none
    source_ray: Tensor | None = None  # [E], the ray (source, target); R where there is none
    # all ordered pairs of different nodes of a graph
    pair_index: Tensor | None = None  # [2, P]
    edge_pair: Tensor | None = None  # [E], the pair of an edge; P for a self-loop

    @staticmethod
    def of(data: Data, *, angles: bool = True, pairs: bool = False) -> Topology:
        """The topology of a `Data` or `Batch` with `pos` and `edge_index`.

        Uses `data.topology` where it is and has what is asked for, and the neighbours that
        :class:`AddTopology` has sorted. Everything is checked here, so that forward need not.
        """
        known = getattr(data, "topology", None)
        if isinstance(known, Topology):  # a batch of graphs that have one each has a list
            known.check(data.edge_index, getattr(data, "batch", None))
            if (not angles or known.has_angles) and (not pairs or known.has_pairs):
                return known
        if torch.compiler.is_compiling():
            raise RuntimeError(
                "topology: cannot be made inside torch.compile; before, set "
                "data.topology = model.topology(data)"
            )
        pos: Any = getattr(data, "pos", None)
        edge_index: Any = getattr(data, "edge_index", None)
        check_positions(pos)
        batch = getattr(data, "batch", None)
        graphs = data.num_graphs if batch is not None and hasattr(data, "ptr") else None
        return Topology.build(
            edge_index,
            num_nodes=pos.shape[0],
            batch=batch,
            num_graphs=graphs,
            angles=angles,
            pairs=pairs,
            ray_index=getattr(data, "ray_index", None),
        )

    @staticmethod
    def build(
        edge_index: Tensor,
        num_nodes: int,
        batch: Tensor | None = None,
        *,
        num_graphs: int | None = None,
        angles: bool = True,
        pairs: bool = False,
        ray_index: Tensor | None = None,
    ) -> Topology:
        """The topology from `edge_index [2, E]` and `batch [N]`, as PyG's layers get them."""
        check_edges(edge_index, num_nodes, batch)
        if batch is None:
            batch = edge_index.new_zeros(num_nodes)
        if num_graphs is None:
            num_graphs = int(batch.max()) + 1 if num_nodes and batch.numel() else 1
        topology = Topology(
            edge_index=edge_index,
            batch=batch,
            nodes_of_graph=torch.bincount(batch, minlength=num_graphs),
            edges_of_node=torch.bincount(edge_index[1], minlength=num_nodes),
            vertices=[],
            neighbours=[],
        )
        if angles:
            if ray_index is None:
                ray_index = sorted_rays(edge_index, num_nodes)
            topology = dataclasses.replace(topology, **buckets(edge_index, ray_index, num_nodes))
        if pairs:
            topology = dataclasses.replace(topology, **all_pairs(edge_index, batch, num_graphs))
        return topology

    def check(self, edge_index: Any, batch: Tensor | None = None) -> None:
        """Refuse to stand for a graph with other edges, or for another batch."""
        if torch.compiler.is_compiling():
            return
        if batch is not None and batch is not self.batch and not torch.equal(self.batch, batch):
            raise ValueError(
                "topology: was made for another batch; apply AddTopology again, or "
                "del data.topology"
            )
        if self.edge_index is edge_index:
            return
        check_edges(edge_index, self.num_nodes)
        if not torch.equal(self.edge_index, edge_index):
            raise ValueError(
                f"topology: was made for other edges ({self.num_edges}) than edge_index has "
                f"({edge_index.shape[1]}); apply AddTopology again, or del data.topology"
            )

    @property
    def num_nodes(self) -> int:
        return self.batch.shape[0]

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    @property
    def num_graphs(self) -> int:
        return self.nodes_of_graph.shape[0]

    @property
    def num_rays(self) -> int:
        return sum(n.shape[0] * n.shape[1] for n in self.neighbours)

    @property
    def num_angles(self) -> int:
        return sum(n.shape[0] * n.shape[1] * (n.shape[1] - 1) for n in self.neighbours)

    @property
    def ray_vertex(self) -> Tensor:
        """The vertex of each ray `[R]`."""
        rays = zip(self.vertices, self.neighbours, strict=True)
        parts = [v.unsqueeze(1).expand_as(n).flatten() for v, n in rays]
        return torch.cat(parts) if parts else self.batch.new_empty(0)

    @property
    def ray_neighbour(self) -> Tensor:
        """The neighbour of each ray `[R]`."""
        parts = [n.flatten() for n in self.neighbours]
        return torch.cat(parts) if parts else self.batch.new_empty(0)

    @property
    def has_angles(self) -> bool:
        return self.ray_edge is not None

    @property
    def has_pairs(self) -> bool:
        return self.pair_index is not None

    def chunks(self, angles: int | None = None) -> Iterator[Chunk]:
        """The buckets, cut so that no chunk has more than `angles` angles (but one vertex)."""
        number = start = 0
        for vertices, neighbours in zip(self.vertices, self.neighbours, strict=True):
            m, d = neighbours.shape
            size = m if angles is None else max(1, angles // (d * (d - 1)))
            for low in [0] if angles is None else range(0, m, size):
                part = vertices if angles is None else vertices[low : low + size]
                near = neighbours if angles is None else neighbours[low : low + size]
                stop = start + near.shape[0] * d
                yield Chunk(number, part, near, start, stop)
                number, start = number + 1, stop

    @property
    def degree(self) -> Tensor:
        """How many neighbours each vertex of an angle has `[N]`; 0 for the other nodes."""
        degree = self.batch.new_zeros(self.num_nodes)
        for vertices, neighbours in zip(self.vertices, self.neighbours, strict=True):
            degree = degree.index_fill(0, vertices, neighbours.shape[1])
        return degree

    @property
    def first_angle(self) -> Tensor:
        """The number of the first angle of each vertex `[N]`, in the order of `angle_index`."""
        count = self.degree * (self.degree - 1)
        return count.cumsum(0) - count

    @property
    def angle_index(self) -> Tensor:
        """All angles `[3, A]` as (j, i, k), vertex in the middle: the order of `angle_attr`.

        Sorted by vertex, first and second ray, so that PyG's batching, which concatenates the
        features of the angles, keeps them in order.
        """
        index = self.edge_index.new_empty(3, self.num_angles)
        first = self.first_angle
        for chunk in self.chunks():
            second = second_of(chunk.neighbours.shape[1], chunk.neighbours.device)
            k = chunk.neighbours[:, second]
            j = chunk.neighbours.unsqueeze(-1).expand_as(k)
            i = chunk.vertices[:, None, None].expand_as(k)
            rows = chunk.angles(first)
            index[:, rows.flatten()] = torch.stack([j, i, k]).flatten(1)
        return index

    def on_pairs(self) -> Topology:
        """The graph whose edges are all pairs."""
        assert self.pair_index is not None
        counts = (self.nodes_of_graph - 1).index_select(0, self.batch)
        return Topology(self.pair_index, self.batch, self.nodes_of_graph, counts, [], [])

    def to(self, *args: Any, **kwargs: Any) -> Topology:
        """The topology with every tensor moved, as `Tensor.to`."""
        return self._map(lambda t: t.to(*args, **kwargs))

    def cpu(self) -> Topology:
        """The topology on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = "cuda", non_blocking: bool = False) -> Topology:
        """The topology on a GPU."""
        return self.to("cuda" if device is None else device, non_blocking=non_blocking)

    def pin_memory(self) -> Topology:
        """The topology in pinned memory, for the DataLoader."""
        return self._map(lambda t: t.pin_memory())

    def _map(self, function: Any) -> Topology:
        def apply(value: Any) -> Any:
            if isinstance(value, list):
                return [function(t) for t in value]
            return None if value is None else function(value)

        fields = dataclasses.fields(self)
        return Topology(**{f.name: apply(getattr(self, f.name)) for f in fields})

    def __repr__(self) -> str:
        return (
            f"Topology(graphs={self.num_graphs}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"angles={self.num_angles if self.has_angles else None})"
        )


torch.export.register_dataclass(Topology, serialized_type_name="symgnn.Topology")
