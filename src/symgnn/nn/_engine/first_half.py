"""The first half of an additive form: inputs mapped where they live, added on the way up.

    hidden = bias + own W_own^T + lift(node W_node^T + lift(graph W_graph^T)) + ...

Each input is multiplied by its columns W of the first map on the rows of its own domain: a node
value on N rows instead of E or A. The bias, and what graphs add, are added to what nodes add at
their first place; this is lifted to edges, or to rays and from there to angles. Where the last map
of the update that made an own value folds, `own = last(before)`, W is multiplied by that map and
applied to `before`.

There are two ways through the same formula: `_Plain`, in operations that autograd, the compiler and
autocast know, and one function with a backward pass of its own, which takes a fraction of the time
on small graphs, and adds in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from symgnn.nn._engine.plan import Plan, Term
from symgnn.nn._engine.rows import bag, in_front, linear, move, plus_linear
from symgnn.nn._engine.torch_private import apply_function, transforms
from symgnn.topology import Movement, Topology


class Way(NamedTuple):
    """What is done to the tensors, for torch.func to pass on untouched."""

    plan: Plan
    domain: str
    topology: Topology
    folds: tuple[tuple[int, bool], ...]  # which own terms fold, and whether with a bias


class _Raw:
    """Without derivatives, in place, on tensors `[..., rows, w]`."""

    lift = staticmethod(bag)

    @staticmethod
    def product(rows: Tensor, weight: Tensor) -> Tensor:
        return rows @ weight.mT

    @staticmethod
    def plus(hidden: Tensor, value: Tensor, weight: Tensor) -> Tensor:
        if hidden.dim() == 2:
            return hidden.addmm_(value, weight.mT)
        if hidden.dim() == 3:
            return hidden.baddbmm_(value, weight.mT)
        hidden += value @ weight.mT
        return hidden

    @staticmethod
    def plus_first(table: Tensor, more: Tensor) -> Tensor:
        """Add `more [..., h]` to the first h columns."""
        table[..., : more.shape[-1]] += more
        return table


class _Plain:
    """In operations that autograd, the compiler and autocast know, on tensors `[rows, w]`."""

    lift, product, plus = staticmethod(move), staticmethod(linear), staticmethod(plus_linear)

    @staticmethod
    def plus_first(table: Tensor, more: Tensor) -> Tensor:
        rest = table.shape[-1] - more.shape[-1]
        return table + (torch.nn.functional.pad(more, (0, rest)) if rest else more)


class _Stacked(_Plain):
    """As `_Plain`, on tensors `[..., rows, w]`."""

    product = staticmethod(_Raw.product)

    @staticmethod
    def plus(hidden: Tensor, value: Tensor, weight: Tensor) -> Tensor:
        return hidden + value @ weight.mT


Ways = type[_Raw] | type[_Plain]


def first_half(way: Way, weight: Tensor, bias: Tensor, given: Sequence[Tensor]) -> Tensor:
    """The hidden rows of an update before the first activation, `[rows, h]`.

    Args:
        way: The plan, the graph, and which own terms fold.
        weight, bias: The first map over the concatenation of the inputs, `[h, w]` and `[h]`.
        given: The value of each term `[rows of its domain, w]`, then the weights and biases of the
            maps that are folded.
    """
    if not way.plan.terms:
        return bias.expand(way.topology.size(way.domain), -1)
    if torch.compiler.is_compiling() or torch.is_autocast_enabled(weight.device.type):
        return _compute(_Plain, way, weight, bias, given)
    given = [value if value.dtype == weight.dtype else value.to(weight.dtype) for value in given]
    return apply_function(_FirstHalf, way, weight, bias, *given)


def lower_tables(
    way: Way, weight: Tensor, bias: Tensor, given: Sequence[Tensor]
) -> tuple[Tensor, Tensor | None]:
    """What nodes add `[N, places * h]`, with the bias, and what rays add `[R, ends * h]`."""
    base, _ = _base(way, weight, bias, given)
    nodes, rays = _node_table(_Plain, way, weight, base, given), None
    if nodes is None:
        nodes = torch.nn.functional.pad(base, (0, (way.plan.places - 1) * len(bias)))
        nodes = nodes.expand(way.topology.num_nodes, -1)
    if way.plan.ray:
        rays = _ray_table(_Plain, way, weight, given)
    return nodes, rays


def own_maps(way: Way, weight: Tensor, given: Sequence[Tensor]) -> list[Tensor]:
    """The map that is applied to each own value."""
    folded = _folded(way, given)
    return [_own_map(k, term, weight, folded) for k, term in enumerate(way.plan.own)]


def _columns(weight: Tensor, some: slice) -> Tensor:
    return weight[..., some]


def _at_places(weight: Tensor, term: Term) -> Tensor:
    """The columns of a term for all places, one beneath the other, `[places * h, w]`."""
    found = [None if some is None else _columns(weight, some) for some in term.columns]
    (first, *_) = (each for each in found if each is not None)
    if len(found) == 1:
        return first
    nothing = None if all(each is not None for each in found) else torch.zeros_like(first)
    return torch.cat([nothing if each is None else each for each in found], -2)  # type: ignore[misc]


def _folded(way: Way, given: Sequence[Tensor]) -> dict[int, tuple[Tensor, Tensor | None]]:
    """The last maps that own terms are multiplied by."""
    rest = iter(given[len(way.plan.terms) :])
    return {k: (next(rest), next(rest) if has_bias else None) for k, has_bias in way.folds}


def _own_map(
    number: int, term: Term, weight: Tensor, folded: dict[int, tuple[Tensor, Tensor | None]]
) -> Tensor:
    (some,) = term.columns
    columns = _columns(weight, some)  # type: ignore[arg-type]
    return columns @ folded[number][0] if number in folded else columns


def _base(
    way: Way, weight: Tensor, bias: Tensor, given: Sequence[Tensor]
) -> tuple[Tensor, dict[int, tuple[Tensor, Tensor | None]]]:
    """The bias `[..., h]` with what folded biases add, and the folded maps."""
    folded = _folded(way, given)
    for number, (_, more) in folded.items():
        if more is not None:
            (some,) = way.plan.own[number].columns
            columns = _columns(weight, some)  # type: ignore[arg-type]
            bias = bias + (columns @ more.unsqueeze(-1)).squeeze(-1)
    return bias, folded


def _compute(ways: Ways, way: Way, weight: Tensor, bias: Tensor, given: Sequence[Tensor]) -> Tensor:
    plan, topology, h = way.plan, way.topology, weight.shape[-2]
    base, folded = _base(way, weight, bias, given)
    base = base.unsqueeze(-2)
    hidden = None
    if plan.climbs and way.domain == "node":
        hidden = _node_table(ways, way, weight, base, given)
    elif plan.climbs:
        table = _node_table(ways, way, weight, base, given)
        if way.domain == "angle":
            assert topology.rays is not None
            rays = None if table is None else ways.lift(_halves(table), topology.rays.both)
            start = len(plan.own) + len(plan.graph) + len(plan.node)
            for number, term in enumerate(plan.ray, start):
                maps = _at_places(weight, term)
                if rays is None:
                    rays = ways.plus_first(ways.product(given[number], maps), base)
                else:
                    rays = ways.plus(rays, given[number], maps)
            table = rays
        assert table is not None
        rows = table if plan.ends == 1 else table.unflatten(-1, (2, h)).flatten(-3, -2)
        hidden = ways.lift(rows, _movement(way))
    for number, term in enumerate(plan.own):
        value, weights = given[number], _own_map(number, term, weight, folded)
        if hidden is None:
            hidden = ways.plus_first(ways.product(value, weights), base)
        else:
            hidden = ways.plus(hidden, value, weights)
    assert hidden is not None
    return hidden


def _node_table(
    ways: Ways, way: Way, weight: Tensor, base: Tensor, given: Sequence[Tensor]
) -> Tensor | None:
    """What each node adds at each place `[..., N, places * h]`; None if nothing comes to nodes."""
    plan, number, table, graph = way.plan, len(way.plan.own), None, None
    for term in plan.graph:
        columns = _columns(weight, term.columns[0])  # type: ignore[arg-type]
        if graph is None:
            graph = ways.product(given[number], columns) + base
        else:
            graph = ways.plus(graph, given[number], columns)
        number += 1
    if graph is not None:
        base = ways.lift(graph, way.topology.graphs)
    for term in plan.node:
        maps = _at_places(weight, term)
        if table is None:
            table = ways.plus_first(ways.product(given[number], maps), base)
        else:
            table = ways.plus(table, given[number], maps)
        number += 1
    if table is None and graph is not None:
        rest = (plan.places - 1) * weight.shape[-2]
        table = torch.nn.functional.pad(base, (0, rest)) if rest else base
    return table


def _ray_table(ways: Ways, way: Way, weight: Tensor, given: Sequence[Tensor]) -> Tensor:
    """What each ray adds of itself at each place `[..., R, ends * h]`."""
    plan = way.plan
    number = len(plan.own) + len(plan.graph) + len(plan.node)
    table = ways.product(given[number], _at_places(weight, plan.ray[0]))
    for term in plan.ray[1:]:
        number += 1
        table = ways.plus(table, given[number], _at_places(weight, term))
    return table


def _halves(table: Tensor) -> Tensor:
    """`[..., N, 2 w] -> [..., 2 N, w]`: row 2 i for vertex i, row 2 i + 1 for neighbour i."""
    return table.unflatten(-1, (2, -1)).flatten(-3, -2)


def _movement(way: Way) -> Movement:
    """From what nodes or rays add to the rows of the update."""
    ends = way.topology.edges if way.domain == "edge" else way.topology.pairs
    assert ends is not None
    return ends.both if way.plan.ends == 2 else ends.near


class _FirstHalf(torch.autograd.Function):
    @staticmethod
    def forward(way: Way, weight: Tensor, bias: Tensor, *given: Tensor) -> Tensor:
        return _compute(_Raw, way, weight, bias, given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.way, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        weight, _, *given = ctx.saved_tensors
        return None, *_backward(ctx.way, ctx.needs_input_grad[1:], grad, weight, given)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> Tensor:
        return _tangent(ctx.way, ctx.saved_tensors, tangents)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, way: Way, *tensors: Tensor) -> tuple[Tensor, int]:
        fronted = [
            in_front(value, dim, info.batch_size)
            for value, dim in zip(tensors, in_dims[1:], strict=True)
        ]
        return _FirstHalf.apply(way, *fronted), 0


def _backward(
    way: Way, needed: Sequence[bool], grad: Tensor, weight: Tensor, given: Sequence[Tensor]
) -> list[Tensor | None]:
    """The gradients of weight, bias and everything that is given; differentiable where needed."""
    plan, topology, h = way.plan, way.topology, weight.shape[-2]
    lift = move if torch.is_grad_enabled() or transforms() else bag
    folded = _folded(way, given)
    columns: dict[int, Tensor] = {}  # the gradient of each block of columns, by where it starts
    grads: list[Tensor | None] = [None] * (2 + len(given))
    of_weight, of_bias, *of_given = needed

    def read(number: int, rows: Tensor, term: Term) -> None:
        """The gradients of a term that adds to `rows`, of which the gradient is given."""
        if of_given[number]:
            grads[2 + number] = rows @ _at_places(weight, term)
        if of_weight:
            parts = (rows.mT @ given[number]).split(h, -2)
            for some, part in zip(term.columns, parts, strict=True):
                if some is not None:
                    columns[some.start] = part

    bottom = grad
    if plan.climbs:
        rows = grad
        if way.domain != "node":
            rows = lift(rows, _movement(way).T)
            if plan.ends == 2:
                rows = rows.unflatten(-2, (-1, 2)).flatten(-2)
        if way.domain == "angle":
            start = len(plan.own) + len(plan.graph) + len(plan.node)
            for number, term in enumerate(plan.ray, start):
                read(number, rows, term)
            bottom = rows[..., :h]
            if plan.node or plan.graph:
                assert topology.rays is not None
                rows = lift(rows, topology.rays.both.T).unflatten(-2, (-1, 2)).flatten(-2)
        for number, term in enumerate(plan.node, len(plan.own) + len(plan.graph)):
            read(number, rows, term)
        if plan.node or plan.graph:
            bottom = rows[..., :h]
        if plan.graph:
            bottom = lift(bottom, topology.graphs.T)
            for number, term in enumerate(plan.graph, len(plan.own)):
                read(number, bottom, term)
    base = bottom.sum(-2) if of_bias or folded else None
    grads[1] = base if of_bias else None
    fold = len(plan.terms)
    for number, term in enumerate(plan.own):
        if number not in folded:
            read(number, grad, term)
            continue
        (some,) = term.columns
        assert some is not None
        assert base is not None
        (last, last_bias), mine = folded[number], _columns(weight, some)
        if of_given[number]:
            grads[2 + number] = grad @ (mine @ last)
        product = grad.mT @ given[number]
        if of_weight:
            columns[some.start] = product @ last.mT
        if of_given[fold]:
            grads[2 + fold] = mine.mT @ product
        fold += 1
        if last_bias is not None:
            if of_weight:
                outer = base.unsqueeze(-1) * last_bias.unsqueeze(-2)
                columns[some.start] = columns[some.start] + outer
            if of_given[fold]:
                grads[2 + fold] = (mine.mT @ base.unsqueeze(-1)).squeeze(-1)
            fold += 1
    if of_weight:
        blocks = [columns[start] for start in sorted(columns)]
        grads[0] = torch.cat(blocks, -1) if blocks else torch.zeros_like(weight)
    return grads


def _tangent(way: Way, saved: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> Tensor:
    """The derivative along tangents: the formula is linear in each of its tensors."""
    weight, bias, *given = saved
    of_weight, of_bias, *of_given = tangents
    none = torch.zeros_like(bias)
    values, maps = len(way.plan.terms), given[len(way.plan.terms) :]
    parts = []
    if of_weight is not None:
        parts.append(_compute(_Stacked, way, of_weight, none, given))
    if any(value is not None for value in of_given[:values]):
        moved = [
            torch.zeros_like(value) if change is None else change
            for value, change in zip(given[:values], of_given[:values], strict=True)
        ]
        no_bias = [m if m.dim() == weight.dim() else torch.zeros_like(m) for m in maps]
        parts.append(_compute(_Stacked, way, weight, none, [*moved, *no_bias]))
    if any(change is not None for change in of_given[values:]):
        folded = {number for number, _ in way.folds}
        still = [
            value if number in folded else torch.zeros_like(value)
            for number, value in enumerate(given[:values])
        ]
        moved = [
            torch.zeros_like(value) if change is None else change
            for value, change in zip(maps, of_given[values:], strict=True)
        ]
        parts.append(_compute(_Stacked, way, weight, none, [*still, *moved]))
    if not parts:
        parts.append(_compute(_Stacked, way, torch.zeros_like(weight), none, given))
    out = sum(parts[1:], parts[0])
    return out if of_bias is None else out + of_bias.unsqueeze(-2)
