"""The topology of a graph or batch: neighbours, rays, angles and counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import _register_namedtuple
from torch_geometric.data import Data

from symgnn.graphs.angle_grid import Grid
from symgnn.graphs.budget import require_memory
from symgnn.graphs.checks import check_edges, check_positions, check_shift, check_shift_dimension
from symgnn.graphs.cuts import (
    Cut,
    EdgeCut,
    EdgePart,
    Part,
    angle_cuts,
    edge_cuts,
    part_of_edges,
)
from symgnn.graphs.movement import (
    AngleRays,
    EdgeEnds,
    Movement,
    RayEnds,
    gather_by,
    lift_by,
    narrow_type,
    pairs_of,
    two_lifts,
)
from symgnn.graphs.rays import all_pairs, joined, lines_of

#: Up to how many lines there may be for each edge, so that they are worth it.
MOSTLY_BOTH_WAYS = 0.7
#: Bytes for each angle and for each pair of nodes while they are made, measured.
EACH_ANGLE = 60
EACH_PAIR = 110


@dataclass(frozen=True)
class Topology:
    """Neighbours, angles and counts of a graph or batch with N nodes, E edges and G graphs.

    Compute it once with :meth:`of`, outside forward. A *ray* (i, j) is a vertex i and one of its
    in- or out-neighbours j (each once, never i itself), and an *angle* (j, i, k) is an ordered
    pair of different rays of i. Rays are sorted by vertex and neighbour, angles by their first and
    second ray. Vertices of degree 0 and 1 have no angles, so their rays are omitted.

    With `edge_shift`, an edge j -> i with the shift s goes from `x_j + s` to `x_i`: in a periodic
    cell, s is the shift of the image of j. Rays are then distinguished by vertex, neighbour and
    shift, so a node may have the same neighbour several times, and itself, by different images.

    Example:
        >>> topology = symgnn.graphs.Topology.of(symgnn.data.polytope("hypercube", 3))
        >>> topology.num_nodes, topology.num_edges, topology.num_angles
        (8, 24, 48)
    """

    edge_index: Tensor  # [2, E], source and target
    batch: Tensor  # [N], the graph of a node
    nodes_of_graph: Tensor  # [G], how many
    edges_of_node: Tensor  # [N], how many end there
    graphs: Movement  # from graphs to nodes
    edges: EdgeEnds  # from nodes to edges
    # the angles
    rays: RayEnds | None = None  # from nodes to rays
    pairs: AngleRays | None = None  # from rays to angles; None where read in parts
    ray_index: Tensor | None = None  # [2, R], vertex and neighbour
    rays_in: Movement | None = None  # from edges to rays: the edges j -> i of a ray (i, j)
    ray_edge: Tensor | None = None  # [R, p], the edges i -> j, or, where there are none, j -> i
    ray_edge_weight: Tensor | None = None  # [R, p], 1 / their number; None where p = 1
    target_ray: Tensor | None = None  # [E], the ray (target, source); R where there is none
    source_ray: Tensor | None = None  # [E], the ray (source, target); R where there is none
    # an edge and its reverse are one line; None where few edges have theirs
    lines: Movement | None = None  # from lines to edges
    line_index: Tensor | None = None  # [2, L], the two ends
    # the graph whose edges are all ordered pairs of different nodes
    all_pairs: Topology | None = None
    edge_pair: Tensor | None = None  # [E], the pair of an edge; one past the last for a self-loop
    # for periodic cells
    edge_shift: Tensor | None = None  # [E, n], what is added to the source of each edge
    line_edge: Tensor | None = None  # [L], one of the edges of each line

    @staticmethod
    def of(
        data: Data,
        *,
        angles: bool = True,
        whole: bool = True,
        pairs: bool = False,
        lines: bool = False,
    ) -> Topology:
        """The topology of a `Data` or `Batch` with `pos` and `edge_index`.

        `angles`: list the angles; with `whole=False` only in parts, one after the other, which
        saves memory. `pairs`: list all pairs of nodes. `lines`: match each edge with its reverse,
        which makes updates that read distances faster. Angles and pairs that do not fit into memory
        are refused before they are listed. An existing `data.topology` is used if it has the
        requested parts (`lines` are optional), and so are neighbours that :class:`AddTopology` has
        sorted. All inputs are checked here, so that forward need not.
        """
        known = getattr(data, "topology", None)
        if isinstance(known, Topology):  # a batch of graphs that have one each has a list
            known.check(data.edge_index, getattr(data, "batch", None))
            known.check_shift(getattr(data, "edge_shift", None))
            if known.has(angles=angles, whole=whole, pairs=pairs):
                return known
        if torch.compiler.is_compiling():
            raise RuntimeError(
                "topology: cannot be made inside torch.compile; before, set "
                "data.topology = model.topology(data)"
            )
        pos: Any = getattr(data, "pos", None)
        edge_index: Any = getattr(data, "edge_index", None)
        check_positions(pos)
        shift: Any = getattr(data, "edge_shift", None)
        check_shift_dimension(shift, pos)
        batch = getattr(data, "batch", None)
        graphs = data.num_graphs if batch is not None and hasattr(data, "ptr") else None
        return Topology.build(
            edge_index,
            num_nodes=pos.shape[0],
            batch=batch,
            num_graphs=graphs,
            angles=angles,
            whole=whole,
            pairs=pairs,
            lines=lines,
            ray_ranks=getattr(data, "ray_ranks", None),
            edge_shift=shift,
        )

    @staticmethod
    def build(
        edge_index: Tensor,
        num_nodes: int,
        batch: Tensor | None = None,
        *,
        num_graphs: int | None = None,
        angles: bool = True,
        whole: bool = True,
        pairs: bool = False,
        lines: bool = False,
        ray_ranks: Tensor | None = None,
        edge_shift: Tensor | None = None,
    ) -> Topology:
        """The topology from `edge_index [2, E]` and `batch [N]`, as PyG's layers take them.

        `edge_shift [E, n]` is added to the source of each edge, as for the images of nodes in a
        periodic cell.
        """
        check_edges(edge_index, num_nodes, batch)
        check_shift(edge_shift, edge_index, pairs)
        if batch is None:
            batch = edge_index.new_zeros(num_nodes)
        if num_graphs is None:
            num_graphs = int(batch.max()) + 1 if num_nodes and batch.numel() else 1
        topology = Topology(
            edge_index=edge_index,
            batch=batch,
            nodes_of_graph=torch.bincount(batch, minlength=num_graphs),
            edges_of_node=torch.bincount(edge_index[1], minlength=num_nodes),
            graphs=lift_by(batch, num_graphs),
            edges=EdgeEnds(*two_lifts(edge_index[1], edge_index[0], num_nodes)),
            edge_shift=edge_shift,
        )
        if angles:
            rays = joined(edge_index, num_nodes, ray_ranks, edge_shift)
            vertex, neighbour = rays["ray_index"]
            ends = RayEnds(*two_lifts(vertex, neighbour, num_nodes))
            inwards = gather_by(rays["target_ray"], len(vertex))
            topology = dataclasses.replace(topology, rays=ends, rays_in=inwards, **rays)
            if whole:
                topology._check_angles()
                topology = dataclasses.replace(topology, pairs=topology._pairs(*topology.cuts()))
        if lines:
            line_index, line, line_edge = lines_of(edge_index, num_nodes, edge_shift)
            if line_index.shape[1] <= MOSTLY_BOTH_WAYS * edge_index.shape[1]:
                topology = dataclasses.replace(
                    topology,
                    lines=lift_by(line, line_index.shape[1]),
                    line_index=line_index,
                    line_edge=None if edge_shift is None else line_edge,
                )
        if pairs:
            size = topology.nodes_of_graph
            require_memory(
                f"pos: {num_nodes:,} nodes (graphs: {num_graphs:,}) make {{count}} pairs",
                int((size * (size - 1)).sum()),
                EACH_PAIR,
                "give smaller graphs or batches, or a coordinate map over edges",
                edge_index.device,
            )
            index, edge_pair = all_pairs(edge_index, batch, num_graphs)
            complete = Topology.build(index, num_nodes, batch, num_graphs=num_graphs, angles=False)
            topology = dataclasses.replace(topology, all_pairs=complete, edge_pair=edge_pair)
        return topology

    def _check_angles(self) -> None:
        require_memory(
            f"edge_index: {self.num_edges:,} edges between {self.num_nodes:,} nodes make {{count}} "
            "angles",
            self.num_angles,
            EACH_ANGLE,
            "make angles in parts, build(..., chunk=1_000_000), or give a smaller radius or k",
            self.edge_index.device,
        )

    def check_shift(self, edge_shift: Tensor | None) -> None:
        """Raise an error if a graph has other shifts than this topology."""
        if torch.compiler.is_compiling() or edge_shift is self.edge_shift:
            return
        known = self.edge_shift
        if edge_shift is None or known is None or not torch.equal(edge_shift, known):
            raise ValueError(
                "topology: was made for another edge_shift; apply AddTopology again, or "
                "del data.topology"
            )

    def check(self, edge_index: Any, batch: Tensor | None = None) -> None:
        """Raise an error if a graph has other edges, or another batch, than this topology."""
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
        """N, over all graphs of the batch."""
        return self.batch.shape[0]

    @property
    def num_edges(self) -> int:
        """E, the columns of `edge_index`."""
        return self.edge_index.shape[1]

    @property
    def num_graphs(self) -> int:
        """G, the graphs of the batch."""
        return self.nodes_of_graph.shape[0]

    @property
    def num_rays(self) -> int:
        """The pairs (vertex, neighbour), of vertices with two neighbours or more."""
        return 0 if self.ray_index is None else self.ray_index.shape[1]

    @property
    def num_angles(self) -> int:
        """A, the ordered pairs of two rays at one vertex; 0 without angles."""
        if self.pairs is not None:
            return self.pairs.first.reads.shape[0]
        if self.rays is None:
            return 0
        return int((self.degree * (self.degree - 1)).sum())

    @property
    def ray_vertex(self) -> Tensor:
        """The vertex of each ray `[R]`."""
        return self._ray_index[0]

    @property
    def ray_neighbour(self) -> Tensor:
        """The neighbour of each ray `[R]`."""
        return self._ray_index[1]

    @property
    def _ray_index(self) -> Tensor:
        return self.batch.new_empty(2, 0) if self.ray_index is None else self.ray_index

    def has(self, *, angles: bool, whole: bool, pairs: bool) -> bool:
        """Whether the requested parts are present."""
        return (
            (not angles or self.ray_index is not None)
            and (not angles or not whole or self.pairs is not None)
            and (not pairs or self.all_pairs is not None)
        )

    @property
    def degree(self) -> Tensor:
        """How many rays each node has `[N]`; 0 for those with one neighbour."""
        if self.rays is None:
            return self.batch.new_zeros(self.num_nodes)
        return self.rays.vertex.back_offsets.diff().long()

    def size(self, domain: str) -> int:
        """How many nodes, edges, angles or graphs there are."""
        if domain == "angle":
            return self.num_angles
        return {"node": self.num_nodes, "edge": self.num_edges, "graph": self.num_graphs}[domain]

    @property
    def angle_rays(self) -> Tensor:
        """The first and the second ray of each angle `[2, A]`."""
        ((_, _, pairs),) = self.parts()
        return torch.stack([pairs.first.reads, pairs.second.reads]).long()

    def index_in(self, domain: str, of: str, place: str = "") -> Tensor:
        """For each row of a domain, the row of a coarser one that it belongs to.

        Args:
            domain: "angle", "edge" or "node".
            of: "node" or "graph".
            place: For nodes of edges "source" or "target", which is the default; for nodes of
                angles "first", "second" or "vertex", which is the default.

        Returns:
            `[rows of domain]`.
        """
        if of == "graph":
            return self.batch if domain == "node" else self.batch[self.index_in(domain, "node")]
        if domain == "edge":
            return self.edge_index[0 if place == "source" else 1]
        first, second = self.angle_rays
        if place == "second":
            return self.ray_neighbour[second]
        return (self.ray_neighbour if place == "first" else self.ray_vertex)[first]

    def rays_of_edges(self, end: str) -> Tensor:
        """The ray of each edge whose vertex is its "target" or "source" `[E]`; R for none."""
        ray = self.target_ray if end == "target" else self.source_ray
        assert ray is not None
        return ray

    def on_rays(self, shift: Tensor) -> Tensor:
        """The shift of the neighbour of each ray, of those of the edges `[E, n] -> [R, n]`."""
        assert self.ray_edge is not None
        edge = self.ray_edge[:, 0]
        rays = torch.arange(edge.shape[0], device=edge.device)
        leaves = self.rays_of_edges("source")[edge] == rays  # the edge goes to the neighbour
        arrives = self.rays_of_edges("target")[edge] == rays
        found = shift.index_select(0, edge)
        return torch.where((leaves & ~arrives).unsqueeze(-1), -found, found)

    def on_lines(self, shift: Tensor) -> Tensor:
        """The shift of the first end of each line, of those of the edges `[E, n] -> [L, n]`."""
        assert self.line_edge is not None
        assert self.line_index is not None
        found = shift.index_select(0, self.line_edge)
        same = self.edge_index[0][self.line_edge] == self.line_index[0]
        return torch.where(same.unsqueeze(-1), found, -found)

    def cuts(self, angles: int | None = None) -> list[Cut]:
        """All vertices, or as many at a time as have at most that many angles (but one)."""
        if angles is None:
            vertices, rays = slice(0, self.num_nodes), slice(0, self.num_rays)
            return [Cut(vertices, rays, slice(0, self.num_angles))]
        known: dict[int, list[Cut]] = self.__dict__.setdefault("_cuts", {})
        if angles not in known:
            assert self.rays is not None
            known[angles] = angle_cuts(self.rays.vertex.back_offsets, angles)
        return known[angles]

    def edge_cuts(self, edges: int) -> list[EdgeCut]:
        """As many consecutive vertices at a time as at most that many edges end at (but one)."""
        known: dict[int, list[EdgeCut]] = self.__dict__.setdefault("_edge_cuts", {})
        if edges not in known:
            known[edges] = edge_cuts(self.edges.target.back_offsets, edges)
        return known[edges]

    def edge_part(self, cut: EdgeCut) -> EdgePart:
        """The edges that end at some consecutive vertices."""
        return part_of_edges(self.edges, cut)

    def tiles(self, angles: int) -> list[Part]:
        """All :meth:`parts`, made once and kept."""
        known: dict[int, list[Part]] = self.__dict__.setdefault("_tiles", {})
        if angles not in known:
            known[angles] = list(self.parts(angles))
        return known[angles]

    def parts(self, angles: int | None = None) -> Iterator[Part]:
        """The cuts with their pairs, made one after the other."""
        for number in range(len(self.cuts(angles))):
            yield self.part(number, angles)

    def part(self, number: int, angles: int | None = None) -> Part:
        """One of the cuts with its pairs."""
        cut = self.cuts(angles)[number]
        return Part(number, cut, self._pairs(cut))

    def _pairs(self, cut: Cut) -> AngleRays:
        assert self.rays is not None
        if self.pairs is not None:
            if cut.angles == slice(0, self.num_angles):
                return self.pairs
            first, second, both = self.pairs
            twice = slice(2 * cut.rays.start, 2 * cut.rays.stop)
            rays = cut.rays
            return AngleRays(
                first.part(cut.angles, rays),
                second.part(cut.angles, rays),
                both.part(cut.angles, twice),
            )
        vertex = self.ray_vertex[cut.rays]
        number = torch.arange(cut.rays.start, cut.rays.stop, device=vertex.device)
        kind = narrow_type(cut.angles.stop - cut.angles.start)
        number = number - self.rays.vertex.back_offsets[vertex]
        return pairs_of(self.degree[vertex].to(kind), number.to(kind))

    def grid(self, part: Part) -> Grid:
        """The angles of a part as squares; of all angles, made once and kept."""
        if part.cut.rays != slice(0, self.num_rays):
            return Grid.of(part.pairs, self.ray_vertex[part.cut.rays])
        known: dict[str, Grid] = self.__dict__
        if "_grid" not in known:
            known["_grid"] = Grid.of(part.pairs, self.ray_vertex)
        return known["_grid"]

    @property
    def angle_index(self) -> Tensor:
        """All angles `[3, A]` as (j, i, k), vertex in the middle: the order of `angle_attr`.

        Sorted by vertex, first and second ray, so that PyG's batching, which concatenates the
        features of the angles, keeps them in order.
        """
        (part,) = self.parts()
        first, second = part.pairs.both.reads.long().view(-1, 2).T // 2
        neighbour = self.ray_neighbour
        return torch.stack([neighbour[first], self.ray_vertex[first], neighbour[second]])

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
            if isinstance(value, tuple):
                return type(value)(*map(apply, value))
            if isinstance(value, Topology):
                return value._map(function)
            return None if value is None else function(value)

        fields = dataclasses.fields(self)
        return Topology(**{f.name: apply(getattr(self, f.name)) for f in fields})

    def __repr__(self) -> str:
        return (
            f"Topology(graphs={self.num_graphs}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"angles={None if self.ray_index is None else self.num_angles})"
        )


torch.export.register_dataclass(Topology, serialized_type_name="symgnn.Topology")
# so that a program that takes a topology can be saved
for part in (Movement, EdgeEnds, RayEnds, AngleRays):
    _register_namedtuple(part, serialized_type_name=f"symgnn.{part.__name__}")
