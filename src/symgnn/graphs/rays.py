"""Computation of a topology from `edge_index` by sorting and searching, with no loop over nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def ranks_of(edge_index: Tensor, num_nodes: int, shift: Tensor | None = None) -> Tensor:
    """For each edge `[E, 2]`, where its source stands among the neighbours of its target, and its
    target among those of its source, from 0; -1 for self-loops.

    They stay what they are when graphs are joined to a batch.
    """
    wanted, straight, shifts = _wanted(edge_index, num_nodes, shift)
    per_vertex = max(num_nodes * shifts, 1)
    key, found = wanted.unique(return_inverse=True)
    degree = torch.bincount(key // per_vertex, minlength=num_nodes)
    start = degree.cumsum(0) - degree
    ranks = edge_index.new_full((edge_index.shape[1], 2), -1)
    ranks[straight] = (found - start[wanted // per_vertex]).T
    return ranks


def lines_of(
    edge_index: Tensor, num_nodes: int, shift: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The lines `[2, L]`, each pair of nodes that edges join once, the line of each edge `[E]`,
    and one of the edges of each line `[L]`.
    """
    low, high = edge_index.min(0).values, edge_index.max(0).values
    (there, back), shifts = _shifts(edge_index, shift)
    image = torch.where(edge_index[0] == low, there, back)  # seen from the higher node
    image = torch.where(low == high, torch.minimum(there, back), image)
    key, line = ((low * num_nodes + high) * shifts + image).unique(return_inverse=True)
    edge = line.new_empty(len(key))
    edge[line] = torch.arange(len(line), device=line.device)
    return torch.stack([low[edge], high[edge]]), line, edge


def joined(
    edge_index: Tensor, num_nodes: int, ranks: Tensor | None = None, shift: Tensor | None = None
) -> dict[str, Any]:
    """The rays of the vertices that have angles, and how they join to the edges; `ranks [E, 2]`
    are those of `ranks_of`, where they are known.
    """
    wanted, straight, shifts = _wanted(edge_index, num_nodes, shift)
    per_vertex = max(num_nodes * shifts, 1)
    numbered = None if ranks is None else _by_rank(wanted, straight, ranks, num_nodes, per_vertex)
    key, which = numbered or wanted.unique(return_inverse=True)
    found = which
    if wanted.shape[1] < edge_index.shape[1]:  # self-loops are no rays
        found = torch.full_like(edge_index, key.numel())
        found[:, straight] = which
    vertex, neighbour = key // per_vertex, key // shifts % max(num_nodes, 1)

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


def _wanted(edge_index: Tensor, num_nodes: int, shift: Tensor | None) -> tuple[Tensor, Tensor, int]:
    """The rays (target, source) of each edge, then its rays (source, target), as numbers that
    sort as rays do `[2, S]`, of the edges that are no self-loops, which these are `[E]`, and how
    many different shifts there are.
    """
    source, target = edge_index
    straight = source != target
    wanted = torch.stack([target * num_nodes + source, source * num_nodes + target])
    images, shifts = _shifts(edge_index, shift)
    if shift is not None:
        straight = straight | (shift != 0).any(-1)
        wanted = wanted * shifts + images
    return wanted if bool(straight.all()) else wanted[:, straight], straight, shifts


def _shifts(edge_index: Tensor, shift: Tensor | None) -> tuple[Tensor, int]:
    """The number of the shift of each edge, and of the shift of its reverse `[2, E]`, among all
    different ones, and how many these are.
    """
    if shift is None:
        return torch.zeros_like(edge_index), 1
    both = torch.cat([shift, -shift]) + 0.0  # a negative zero is a zero
    number, count = both.new_zeros(len(both), dtype=torch.long), 1
    for column in both.unbind(1):  # as unique(dim=0), which is slow
        values, place = column.contiguous().unique(return_inverse=True)
        different, number = (number * len(values) + place).unique(return_inverse=True)
        count = max(len(different), 1)
    return number.view(2, -1), count


def _by_rank(
    wanted: Tensor, straight: Tensor, ranks: Tensor, num_nodes: int, per_vertex: int
) -> tuple[Tensor, Tensor] | None:
    """All rays that are wanted, sorted, and which of them each is; without sorting.

    None where the ranks are those of other edges, or of other numbers of the nodes.
    """
    if ranks.shape != (len(straight), 2):
        return None
    rank = ranks.T.long()[:, straight]
    vertex = wanted // per_vertex
    degree = vertex.new_zeros(num_nodes)
    degree.scatter_reduce_(0, vertex.flatten(), rank.flatten() + 1, "amax")
    count = int(degree.sum())
    if count > wanted.numel() or bool((rank < 0).any()):
        return None
    found = (degree.cumsum(0) - degree)[vertex] + rank
    key = wanted.new_full((count,), -1)
    key[found.flatten()] = wanted.flatten()
    before = torch.cat([key.new_full((1,), -1), key[:-1]])
    if bool((key <= before).any()) or not torch.equal(key[found], wanted):
        return None
    return key, found


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
