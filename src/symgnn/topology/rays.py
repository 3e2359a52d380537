"""How a topology is computed from `edge_index`: sorting and searching, no loop over nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def sorted_rays(edge_index: Tensor, num_nodes: int) -> Tensor:
    """All rays `[2, R]` as (vertex, neighbour), each once, sorted; self-loops are no rays."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    key = torch.cat([target * num_nodes + source, source * num_nodes + target]).unique()
    return torch.stack([key // max(num_nodes, 1), key % max(num_nodes, 1)])


def lines_of(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The lines `[2, L]`, each pair of nodes that edges join once, and the line of each edge."""
    low, high = edge_index.min(0).values, edge_index.max(0).values
    key, line = (low * num_nodes + high).unique(return_inverse=True)
    return torch.stack([key // max(num_nodes, 1), key % max(num_nodes, 1)]), line


def joined(edge_index: Tensor, num_nodes: int, rays: Tensor | None = None) -> dict[str, Any]:
    """The rays of the vertices that have angles, and how they join to the edges; `rays [2, R]`
    are those of all vertices, sorted, where that was done before.
    """
    source, target = edge_index
    # the ray (target, source) of each edge, then the ray (source, target)
    wanted = torch.stack([target * num_nodes + source, source * num_nodes + target])
    loops = source == target
    key, found = (
        _numbered(wanted, loops) if rays is None else _found(wanted, loops, rays, num_nodes)
    )
    vertex, neighbour = key // max(num_nodes, 1), key % max(num_nodes, 1)

    has_angles = torch.bincount(vertex, minlength=num_nodes)[vertex] > 1
    vertex, neighbour = vertex[has_angles], neighbour[has_angles]
    count = vertex.numel()
    # where each ray went; those of vertices with one neighbour went nowhere
    place = torch.where(has_angles, has_angles.cumsum(0) - 1, count)
    place = torch.cat([place, place.new_full((1,), count)])
    target_ray, source_ray = place.index_select(0, found.flatten()).view_as(found)
    ray_edge, weight = _edges_of_rays(source_ray, target_ray, count)
    return {
        "ray_index": torch.stack([vertex, neighbour]),
        "ray_edge": ray_edge,
        "ray_edge_weight": weight,
        "target_ray": target_ray,
        "source_ray": source_ray,
    }


def _numbered(wanted: Tensor, loops: Tensor) -> tuple[Tensor, Tensor]:
    """All rays that are wanted, sorted, and which of them each is; one past the last for loops."""
    if not bool(loops.any()):
        return wanted.unique(return_inverse=True)
    key, which = wanted[:, ~loops].unique(return_inverse=True)
    found = torch.full_like(wanted, key.numel())
    found[:, ~loops] = which
    return key, found


def _found(wanted: Tensor, loops: Tensor, rays: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The same, of rays that were sorted before."""
    key = rays[0] * num_nodes + rays[1]
    if bool((key.diff() <= 0).any()):  # relabelled since it was sorted
        key = key.sort().values
    found = torch.where(loops, key.numel(), torch.searchsorted(key, wanted))
    _check_rays(key, wanted, found, loops)
    return key, found


def _check_rays(key: Tensor, wanted: Tensor, found: Tensor, loops: Tensor) -> None:
    """The sorted rays are exactly those of the edges that are no loops.

    They may come from elsewhere. `found [2, E]` is where those that are `wanted` should be.
    """
    hit = torch.zeros(key.numel() + 1, dtype=torch.bool, device=key.device)
    hit[found.flatten()] = True
    there = torch.cat([key, key.new_full((1,), -1)]).index_select(0, found.flatten())
    right = (there.view_as(wanted) == wanted) | loops
    if not bool(right.all()) or not bool(hit[:-1].all()):
        raise ValueError(
            "ray_index: does not belong to edge_index; apply AddTopology once the edges are final"
        )


def _edges_of_rays(out: Tensor, into: Tensor, count: int) -> tuple[Tensor, Tensor | None]:
    """For each ray (i, j) the edges i -> j, or, where there are none, the edges j -> i."""
    outgoing = torch.bincount(out, minlength=count + 1)
    edges = torch.arange(out.numel(), device=out.device)
    if bool((outgoing[:count] == 1).all()):  # as where every edge is there both ways, once
        alone = edges.new_empty(count + 1)
        alone[out] = edges
        return alone[:count].unsqueeze(1), None
    ray = torch.cat([out, torch.where(outgoing[into] > 0, count, into)])
    edge = edges.repeat(2)
    ray, order = ray.sort(stable=True)
    edge = edge[order][ray < count]
    ray = ray[ray < count]
    parallel = torch.bincount(ray, minlength=count)
    width = int(parallel.max()) if count else 1
    if width <= 1:
        return edge.view(count, 1), None
    column = torch.arange(ray.numel(), device=ray.device) - (parallel.cumsum(0) - parallel)[ray]
    ray_edge = edge.new_zeros(count, width)
    weight = torch.zeros(count, width, device=out.device, dtype=torch.float64)
    ray_edge[ray, column] = edge
    weight[ray, column] = 1 / parallel[ray].double()
    return ray_edge, weight


def all_pairs(edge_index: Tensor, batch: Tensor, num_graphs: int) -> tuple[Tensor, Tensor]:
    """All ordered pairs of different nodes of a graph `[2, P]`, and the pair of each edge `[E]`.

    Sorted by target; a self-loop is no pair, and has the number P.
    """
    order = torch.argsort(batch, stable=True)
    size = torch.bincount(batch, minlength=num_graphs)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device)
    within = rank - (size.cumsum(0) - size)[batch]  # the number of a node in its graph
    others = size[batch] - 1
    start = torch.empty_like(rank)  # the first pair that ends at a node
    start[order] = others[order].cumsum(0) - others[order]

    target = torch.repeat_interleave(order, others[order])
    k = torch.arange(target.numel(), device=batch.device) - start[target]
    k = k + (k >= within[target])  # leave out the node itself
    source = order[rank[target] - within[target] + k]

    j, i = edge_index
    pair = start[i] + within[j] - (within[j] > within[i]).long()
    return torch.stack([source, target]), torch.where(i == j, target.numel(), pair)
