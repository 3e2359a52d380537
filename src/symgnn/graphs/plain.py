"""The topology in operations that `torch.export` can record, for graphs of any size.

The results are those of :meth:`Topology.build`, without its checks and shortcuts: no control flow
depends on the values of a tensor, and only the sizes of results do. Tensors that only a backward
pass reads are left empty.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from symgnn.graphs.movement import AngleRays, EdgeEnds, Movement, RayEnds
from symgnn.graphs.topology import Topology


def plain_topology(
    edge_index: Tensor,
    batch: Tensor,
    *,
    num_graphs: int | None = None,
    num_angles: int | None = None,
    angles: bool = True,
    whole: bool = True,
    pairs: bool = False,
    edge_shift: Tensor | None = None,
) -> Topology:
    """The topology of a batch of graphs.

    Args:
        edge_index: Source and target of each edge, `[2, E]`.
        batch: The graph of each node, `[N]`.
        num_graphs: How many graphs there are; one more than the largest number in `batch`, if not
            given.
        num_angles: How many angles there are, where that is known.
        angles: Whether there are rays of angles.
        whole: Whether the angles are listed, not their rays alone.
        pairs: Whether all pairs of nodes of a graph are listed.
        edge_shift: The shift of the source of each edge, `[E, n]`; that of its reverse is opposite
            to the last digit.
    """
    nodes = batch.shape[0]
    if num_graphs is None:
        num_graphs = _count(torch.cat([batch, batch.new_full((1,), -1)]).max() + 1)
    source, target = edge_index[0], edge_index[1]
    fields: dict[str, Any] = {
        "edge_index": edge_index,
        "batch": batch,
        "nodes_of_graph": _counts(batch, num_graphs),
        "edges_of_node": _counts(target, nodes),
        "graphs": _lift(batch, num_graphs),
        "edges": EdgeEnds(*_two_lifts(target, source, nodes)),
        "edge_shift": edge_shift,
    }
    if angles:
        fields |= _angles(edge_index, nodes, num_angles, whole, edge_shift)
    if pairs:
        index, edge_pair = _all_pairs(edge_index, batch, num_graphs)
        fields["all_pairs"] = plain_topology(index, batch, num_graphs=num_graphs, angles=False)
        fields["edge_pair"] = edge_pair
    return Topology(**fields)


def _count(number: Tensor) -> int:
    """A number in a tensor as a size."""
    size: Any = number.item()  # while it is recorded, a symbol: not to be made an int of
    torch._check(size >= 0)
    return size


def _counts(index: Tensor, size: int) -> Tensor:
    """How often each of `size` numbers stands in `index`, as bincount, which cannot be recorded."""
    return index.new_zeros(size).index_add(0, index, torch.ones_like(index))


def _starts(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _lift(index: Tensor, size: int) -> Movement:
    nothing = index[:0]
    return Movement(index, nothing, nothing, _starts(_counts(index, size)))


def _two_lifts(one: Tensor, other: Tensor, size: int) -> tuple[Movement, Movement, Movement]:
    both = torch.stack([2 * one, 2 * other + 1], 1).flatten()
    offsets = 2 * torch.arange(one.shape[0] + 1, device=one.device)
    sum_of_both = Movement(both, offsets, one[:0], offsets[:1])
    return _lift(one, size), _lift(other, size), sum_of_both


def _angles(
    edge_index: Tensor, nodes: int, num_angles: int | None, whole: bool, shift: Tensor | None
) -> dict[str, Any]:
    """The rays of the vertices that have angles, sorted, their pairs, and how edges join them."""
    source, target = edge_index[0], edge_index[1]
    some = torch.sym_max(nodes, 1)
    # a self-loop is no ray: it stands last, as a ray of a vertex that is not there
    ray = torch.stack([target * nodes + source, source * nodes + target])
    straight, images = source != target, 1
    if shift is not None:
        image, images = _images(shift.detach())
        straight, ray = straight | (shift != 0).any(-1), ray * images + image
    last = nodes * some * images
    key, found = torch.where(straight, ray, last).unique(return_inverse=True)
    torch._check(key.shape[0] >= 0)
    vertex = key // (some * images)
    has_angles = (_counts(vertex, nodes + 1).index_select(0, vertex) > 1) & (vertex < nodes)
    kept = has_angles.nonzero().squeeze(1)
    count = kept.shape[0]
    vertex, neighbour = (each.index_select(0, kept) for each in (vertex, key // images % some))
    place = torch.where(has_angles, has_angles.cumsum(0) - 1, count)
    target_ray, source_ray = place.index_select(0, found.flatten()).view_as(found).unbind(0)
    rays = RayEnds(*_two_lifts(vertex, neighbour, nodes))
    ray_edge, weight = _edges_of_rays(source_ray, target_ray, count)
    return {
        "rays": rays,
        "ray_index": torch.stack([vertex, neighbour]),
        "pairs": _pairs(rays.vertex, num_angles) if whole else None,
        "rays_in": _gather(target_ray, count),
        "ray_edge": ray_edge,
        "ray_edge_weight": weight,
        "target_ray": target_ray,
        "source_ray": source_ray,
    }


def _images(shift: Tensor) -> tuple[Tensor, int]:
    """The number of the shift of each edge, and of its reverse `[2, E]`, among all different ones,
    and how many these are, at least 1.
    """
    none = shift.new_zeros(1, shift.shape[1])
    different, number = torch.cat([shift, -shift, none]).add(0.0).unique(dim=0, return_inverse=True)
    torch._check(different.shape[0] >= 1)
    return number[:-1].view(2, -1), different.shape[0]


def _pairs(of_vertex: Movement, total: int | None) -> AngleRays:
    """All ordered pairs of different rays of the same vertex, sorted by first and second ray."""
    vertex, first_ray = of_vertex.reads, of_vertex.back_offsets
    rays = torch.arange(vertex.shape[0], device=vertex.device)
    number = rays - first_ray.index_select(0, vertex)
    others = first_ray.diff().index_select(0, vertex) - 1
    start = _starts(others)
    total = _count(start[-1]) if total is None else total
    first = torch.repeat_interleave(rays, others, output_size=total)
    j = number.index_select(0, first)
    k = torch.arange(total, device=vertex.device) - start.index_select(0, first)
    second = first - j + k + (k >= j).long()  # a ray makes no pair with itself
    nothing = first[:0]
    both = torch.stack([2 * first, 2 * second + 1], 1).flatten()
    offsets = 2 * torch.arange(total + 1, device=vertex.device)
    return AngleRays(
        Movement(first, nothing, nothing, start),
        Movement(second, nothing, nothing, start),
        Movement(both, offsets, nothing, offsets[:1]),
    )


def _gather(index: Tensor, size: int) -> Movement:
    """The sum of the rows by where `index [L]` sends them; those sent to `size` are left out."""
    starts = _starts(_counts(index, size + 1))[:-1]
    kept = _count(starts[-1])
    torch._check(kept <= index.shape[0])
    order = torch.argsort(index, stable=True)[:kept]
    return Movement(order, starts, index[:0], starts[:1])


def _edges_of_rays(out: Tensor, into: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For each ray (i, j) the edges i -> j, or, where there are none, the edges j -> i."""
    outgoing = _counts(out, count + 1).index_select(0, into)
    ray = torch.cat([out, torch.where(outgoing > 0, count, into)])
    edge = torch.arange(out.shape[0], device=out.device).repeat(2)
    parallel = _counts(ray, count + 1)
    width = _count(torch.cat([parallel[:-1], parallel.new_ones(1)]).max())
    torch._check(width >= 1)
    ray, order = ray.sort(stable=True)
    column = torch.arange(ray.shape[0], device=ray.device)
    column = column - _starts(parallel)[:-1].index_select(0, ray)
    # those of no ray have as many columns as they like: they go to one spare place
    place = torch.where(ray < count, ray * width + column, count * width)
    ray_edge = edge.new_zeros(count * width + 1)
    ray_edge = ray_edge.index_copy(0, place, edge.index_select(0, order))[:-1]
    weight = 1 / parallel.index_select(0, ray).double()
    weight = weight.new_zeros(count * width + 1).index_copy(0, place, weight)[:-1]
    return ray_edge.view(count, width), weight.view(count, width)


def _all_pairs(edge_index: Tensor, batch: Tensor, num_graphs: int) -> tuple[Tensor, Tensor]:
    """All ordered pairs of different nodes of a graph `[2, P]`, and the pair of each edge `[E]`."""
    order = torch.argsort(batch, stable=True)
    size = _counts(batch, num_graphs)
    number = torch.arange(order.shape[0], device=batch.device)
    rank = torch.empty_like(order).index_copy(0, order, number)
    within = rank - (size.cumsum(0) - size).index_select(0, batch)  # number of a node in its graph
    others = size.index_select(0, batch) - 1
    sorted_others = others.index_select(0, order)
    start = torch.empty_like(rank).index_copy(0, order, sorted_others.cumsum(0) - sorted_others)
    total = _count(others.sum())
    target = torch.repeat_interleave(order, sorted_others, output_size=total)
    k = torch.arange(total, device=batch.device) - start.index_select(0, target)
    here = within.index_select(0, target)
    k = k + (k >= here).long()  # leave out the node itself
    source = order.index_select(0, rank.index_select(0, target) - here + k)
    j, i = edge_index[0], edge_index[1]
    of_j, of_i = within.index_select(0, j), within.index_select(0, i)
    pair = start.index_select(0, i) + of_j - (of_j > of_i).long()
    return torch.stack([source, target]), torch.where(i == j, total, pair)
