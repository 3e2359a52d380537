"""Vectors of nodes and graphs: sums of rays with invariant weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symgnn.geometry.measures import at_least_float32, direction
from symgnn.geometry.symmetry import AFFINE, EUCLIDEAN, STARS, Symmetry
from symgnn.nn.state import State, centroid, spread

#: The two kinds of rays that vectors are made of.
RAYS = ("plain", "unit")


@dataclass(frozen=True)
class Vectors:
    """The read-out of vectors, with invariant weights a, b, c and q that MLPs compute.

    With the rays `r_ji = x_j - x_i` of the input coordinates, over the edges j -> i, and as many
    hops H as the network has layers::

        V^1_i = sum_j a^1_ji r_ji
        V^h_i = sum_j a^h_ji r_ji + mean_j b^h_ji V^(h-1)_j          h = 2 ... H
        node vector   = V^H_i + c_i vel_i
        graph vector  = pool_i (V^H_i + c_i vel_i + q_i (x_i - centroid))

    a and b are an MLP of v_j, v_i and e_ji, c and q one of v_i. The term of vel is there only if
    the network reads velocities. `V^h_i` spans the rays up to h edges away, so a node with
    a single neighbour is not bound to the direction of its only edge.

    Vectors turn with rotations and reflections, and translations leave them as they are. With
    plain rays they grow with the coordinates: a dilation by s multiplies them by s, if it leaves
    the weights as they are. With unit rays, `r / |r|`, and positions divided by their root mean
    square distance from the centroid, such a dilation leaves the vectors as they are. A ray of
    length zero adds zero.

    Args:
        of: "node" or "graph".
        count: How many vectors each node or graph has, k.
        hops: H.
        unit: Whether rays are unit vectors.
        velocity: Whether the network reads velocities.
        pool: "sum" or "mean", of graph vectors.
    """

    of: str
    count: int
    hops: int
    unit: bool = False
    velocity: bool = False
    pool: str = "mean"

    @property
    def widths(self) -> dict[str, int]:
        """How many numbers the read-out needs on each edge (e) and, if any, on each node (v)."""
        nodes = self.count * (self.velocity + (self.of == "graph"))
        edges = self.count * (2 * self.hops - 1)
        return {"e": edges, "v": nodes} if nodes else {"e": edges}

    @property
    def symmetry(self) -> Symmetry:
        """The maps by whose derivative the vectors transform, if the weights are invariant."""
        kept = EUCLIDEAN if self.unit else AFFINE
        # a torsion moves a node and its neighbours rigidly, but not the nodes further away
        near = self.of == "node" and self.hops == 1
        return kept | STARS if near else kept

    def __call__(self, state: State, pos: Tensor) -> Tensor:
        """The vectors, given the weights as values of edges and nodes, and the input coordinates.

        Shapes: `pos [N, n] -> [N, n]` or `[G, n]`; `[N, k, n]` or `[G, k, n]` for k > 1.
        """
        topology, k = state.topology, self.count
        x = at_least_float32(pos)
        assert state.e is not None
        weights = state.e.rows.unflatten(1, (2 * self.hops - 1, k, 1))
        edges, gather = topology.edges, state.engine.gather
        rays = gather(x, edges.source) - gather(x, edges.target)
        if topology.edge_shift is not None:
            rays = rays + topology.edge_shift.to(rays.dtype)
        rays = (direction(rays) if self.unit else rays).unsqueeze(1)
        vectors = _to_targets(weights[:, 0] * rays, state)
        degree = topology.edges_of_node.clamp(min=1).view(-1, 1, 1)
        for hop in range(1, self.hops):
            source = gather(vectors.flatten(1), edges.source).unflatten(1, (k, -1))
            passed = _to_targets(weights[:, 2 * hop] * source, state) / degree
            vectors = _to_targets(weights[:, 2 * hop - 1] * rays, state) + passed
        if state.v is not None and "v" in self.widths:
            of_nodes = state.v.rows.unflatten(1, (-1, k, 1))
            if self.velocity:
                assert state.velocity is not None
                vectors = vectors + of_nodes[:, -1] * state.velocity.unsqueeze(1)
            if self.of == "graph":
                vectors = vectors + of_nodes[:, 0] * self._places(x, state).unsqueeze(1)
        if self.of == "graph":
            total = state.engine.total(vectors.flatten(1), topology.graphs)
            if self.pool == "mean":
                total = total / topology.nodes_of_graph.clamp(min=1).unsqueeze(-1)
            vectors = total.unflatten(1, (k, -1))
        return vectors.squeeze(1) if k == 1 else vectors

    def _places(self, x: Tensor, state: State) -> Tensor:
        """The coordinates about the centroid of their graph `[N, n]`."""
        gather, graphs = state.engine.gather, state.topology.graphs
        away = x - gather(centroid(x, state), graphs)
        if not self.unit:
            return away
        size = gather(spread(away, state), graphs)
        return torch.where(size == 0, 0.0, away / torch.where(size == 0, 1.0, size))


def _to_targets(rows: Tensor, state: State) -> Tensor:
    """The sum of the edges that end in each node, `[E, k, n] -> [N, k, n]`."""
    target = state.topology.edges.target
    return state.engine.total(rows.flatten(1), target).unflatten(1, rows.shape[1:])
