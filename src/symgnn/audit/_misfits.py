"""How far a tensor inside a model is from moving along with the graph.

Nothing is known of what the tensor means. Under rotations and reflections it moves along if its
rows change by some orthogonal matrix on all channels: then, and only then, do the products of any
two rows stay the same. Under translations it stays, or blocks of columns shift by a multiple of
the offset. Under permutations its rows are reordered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from symgnn.audit._cases import Case
from symgnn.audit._representations import Undefined

#: So many rows are compared with one another at most.
ROWS = 300


def misfit(pairs: Sequence[tuple[Tensor, Tensor]], cases: Sequence[Case]) -> float:
    """The relative error of a tensor before and after, over several shapes of the graph."""
    worst = 0.0
    alike: list[tuple[Tensor, Tensor]] = []
    for (before, after), case in zip(pairs, cases, strict=True):
        if before.shape != after.shape:
            return math.inf
        if before.numel() == 0:
            continue
        if not before.is_floating_point() and not before.is_complex():
            if not _same_numbers(before, after, case):
                return 1.0
            continue
        x, y = _real(before), _real(after)
        if not torch.equal(x.isfinite(), y.isfinite()) and case.kind != "permutation":
            return math.inf
        x, y = x.nan_to_num(0, 0, 0), y.nan_to_num(0, 0, 0)
        if case.kind in ("rotation", "reflection"):
            alike.append((x, y))
        else:
            found = _BY_KIND.get(case.kind, _exact)(x, y, case)
            worst = max(worst, found)
    return max(worst, _products(alike, cases[0])) if alike else worst


def _real(value: Tensor) -> Tensor:
    value = torch.view_as_real(value).flatten(-2) if value.is_complex() else value
    return value.double()


def _relative(change: Tensor, x: Tensor) -> float:
    size = float(x.abs().max())
    error = float(change.abs().max())
    return error / size if size > 0 else (0.0 if error == 0 else math.inf)


# ---------------------------------------------------------------- rotations and reflections


def _products(pairs: Sequence[tuple[Tensor, Tensor]], case: Case) -> float:
    """The change of the products of rows, for the axis of rows that fits best."""
    first = pairs[0][0]
    known = (len(case.nodes), len(case.edge_order))
    whole = first.dim() > 0 and first.size(0) not in known  # perhaps one row, of the graph
    first = first.squeeze()
    axes = {0, *(a for a in range(first.dim()) if first.size(a) in known)}
    found = [_change_of_products(pairs, axis) for axis in axes]
    if whole and first.dim() == 1:
        found.append(_change_of_products([(x[None], y[None]) for x, y in pairs], -1))
    return min(found)


def _change_of_products(pairs: Sequence[tuple[Tensor, Tensor]], axis: int) -> float:
    rows: list[tuple[Tensor, Tensor]] = []
    for x, y in pairs:
        x, y = x.squeeze(), y.squeeze()
        if x.dim() == 0 or axis < 0:
            rows.append((x.reshape(1, -1), y.reshape(1, -1)))
        elif axis < x.dim():
            rows.append((_rows(x, axis), _rows(y, axis)))
    width = rows[0][0].size(1)
    alike = [pair for pair in rows if pair[0].size(1) == width]
    found = []
    for scale in _scalings(width):
        x = torch.cat([a for a, _ in alike]) * scale
        y = torch.cat([b for _, b in alike]) * scale
        if len(x) > ROWS:
            chosen = torch.linspace(0, len(x) - 1, ROWS).long()
            x, y = x[chosen], y[chosen]
        before, after = x @ x.T, y @ y.T
        found.append(_relative(after - before, before))
    return min(found)


def _rows(value: Tensor, axis: int) -> Tensor:
    """The value as `[rows, channels]`."""
    return value.movedim(axis, 0).flatten(1) if value.dim() > 1 else value[:, None]


def _scalings(width: int) -> Iterator[Tensor]:
    """Factors that make packed symmetric tensors orthogonal, in the two usual orders."""
    yield torch.ones(width, dtype=torch.float64)
    if width % 6 == 0 and width <= 96:
        root = math.sqrt(2)
        for six in ([1, 1, 1, root, root, root], [1, root, root, 1, root, 1]):
            yield torch.tensor(six * (width // 6), dtype=torch.float64)


def is_odd(before: Tensor, after: Tensor) -> bool:
    """Whether columns change their sign and the others stay, so that it tells mirror images."""
    if before.shape != after.shape or not before.is_floating_point() or before.numel() == 0:
        return False
    x, y = (t.reshape(-1, t.size(-1)) if t.dim() else t.reshape(1, 1) for t in (before, after))
    limit = 1e-9 * float(x.abs().max())
    stays = ((x - y).abs() <= limit).all(0)
    turns = ((x + y).abs() <= limit).all(0)
    return bool((stays | turns).all()) and bool((turns & ~stays).any())


# ---------------------------------------------------------------- translations


def _shifted(x: Tensor, y: Tensor, case: Case) -> float:
    offset = case.elements[0].offset  # type: ignore[union-attr]
    n, change = len(offset), y - x
    found = [_relative(change, x)]
    for axis in range(x.dim()):
        if x.size(axis) == n:
            rest = change.movedim(axis, -1)
            found.append(_relative(_off_line(rest, offset), x))
    if x.dim() >= 2:
        found.append(_relative(_columns_off(change.flatten(0, -2), offset), x))
    return min(found)


def _off_line(change: Tensor, offset: Tensor) -> Tensor:
    """Shifts `[..., n]` minus the best multiple of the offset for each channel."""
    factors = change @ offset / offset.square().sum()  # [rows, ...]
    mean = factors.mean(0, keepdim=True) if factors.dim() else factors
    return change - mean.unsqueeze(-1) * offset


def _columns_off(change: Tensor, offset: Tensor) -> Tensor:
    """The same for blocks of columns anywhere in `[R, C]`."""
    n, k, left = len(offset), 0, change.clone()
    limit = 1e-9 * float(change.abs().max())
    while k < change.size(1):
        if bool((change[:, k].abs() <= limit).all()):
            k += 1
        elif k + n <= change.size(1):
            left[:, k : k + n] = _off_line(change[:, k : k + n], offset)
            k += n
        else:
            break
    return left


# ---------------------------------------------------------------- permutations


def _reordered(x: Tensor, y: Tensor, case: Case) -> float:
    nodes, edges = case.nodes, case.edge_order
    known = [a for a in range(x.dim()) if x.size(a) == len(nodes)]
    found = []
    if known:
        every = x
        for axis in known:
            every = every.index_select(axis, nodes)
        found.append(_relative(y - every, x))
        one = x.index_select(known[0], nodes)
        found.append(_relative(y - one, x))
        if known[0] == 0 and x.dim() > 1 and x.size(1) > 1:
            found.append(_as_sets(one, y))
    if x.dim() and len(edges) and x.size(0) == len(edges):
        found.append(_relative(y - x[edges], x))
    if x.dim() and (not known or known[0] != 0):
        found.append(_relative(y - x, x))
        squeezed = x.squeeze(), y.squeeze()
        if squeezed[0].dim() and (not known or x.size(0) > 1):
            found += [_relative(squeezed[1] - other, x) for other in _pairs(squeezed[0], nodes)]
            found.append(_as_one_set(*squeezed))
    elif not x.dim():
        found.append(_relative(y - x, x))
    return min(found)


def _pairs(x: Tensor, nodes: Tensor) -> Iterator[Tensor]:
    """Rows for pairs of nodes, reordered: all, without the diagonal, and of one order."""
    count = len(nodes)
    layouts = (
        list(itertools.product(range(count), repeat=2)) if x.size(0) == count**2 else None,
        [(i, j) for i in range(count) for j in range(count) if i != j]
        if x.size(0) == count * (count - 1)
        else None,
    )
    for pairs in layouts:
        if pairs is not None:
            index = {pair: k for k, pair in enumerate(pairs)}
            own = nodes.tolist()
            yield x[torch.tensor([index[own[i], own[j]] for i, j in pairs])]


def _as_sets(x: Tensor, y: Tensor) -> float:
    """Rows `[N, K, ...]`, whose second axis may come in any order."""
    x, y = (t.flatten(2) if t.dim() > 2 else t[..., None] for t in (x, y))
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for _ in range(3):
        weights = torch.randn(x.size(-1), generator=generator, dtype=torch.float64)
        a, b = (x @ weights).sort(1).values, (y @ weights).sort(1).values
        worst = max(worst, _relative(a - b, x))
    return worst


def _as_one_set(x: Tensor, y: Tensor) -> float:
    """Rows `[R, ...]` in an unknown order, each perhaps with the other sign."""
    x, y = (t.reshape(len(t), -1) if t.dim() else t.reshape(1, 1) for t in (x, y))
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for _ in range(3):
        weights = torch.randn(x.size(1), generator=generator, dtype=torch.float64)
        signed = [(t @ weights).sort().values for t in (x, y)]
        plain = [(t @ weights).abs().sort().values for t in (x, y)]
        best = min(_relative(signed[0] - signed[1], x), _relative(plain[0] - plain[1], x))
        worst = max(worst, best)
    return worst


def _same_numbers(before: Tensor, after: Tensor, case: Case) -> bool:
    """Integers: the same, or the same graph with its nodes renumbered."""
    nodes = len(case.nodes)
    if before.dtype == torch.bool:
        return case.kind == "permutation" or torch.equal(before, after)
    largest = int(max(before.max(), after.max()))
    if before.dim() == 2 and len(before) == 2 and largest < nodes:  # edges
        pairs, others = case.nodes.argsort()[before.long()], after.long()
        key, other = (ends[0] * nodes + ends[1] for ends in (pairs, others))
        return torch.equal(key.sort().values, other.sort().values)
    if torch.equal(before, after):
        return True
    return case.kind == "permutation" and (
        torch.equal(before.flatten().sort().values, after.flatten().sort().values)
        or largest < max(nodes, len(case.edge_order))
    )


# ---------------------------------------------------------------- all other kinds


def _exact(x: Tensor, y: Tensor, case: Case) -> float:
    found = [_relative(y - x, x)]
    n = case.graphs[0].pos.size(1)
    if x.dim() == 2 and x.shape == (len(case.nodes), n):
        try:
            found.append(_relative(y - torch.einsum("rij,rj->ri", case.linear("node"), x), x))
            found.append(_relative(y - case.points("node", x), x))
        except Undefined:
            pass
    return min(found)


_BY_KIND = {"translation": _shifted, "permutation": _reordered}
