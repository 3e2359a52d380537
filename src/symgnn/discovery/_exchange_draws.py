"""Residuals beside functions of the place or the size of their graphs, exchanged among graphs.

Translations and dilations are no compact groups: nothing is spread evenly over their orbits. But if
the place of a graph (its centroid) does not depend on the rest of the graph, and the targets keep
translations, then the places can be exchanged among the graphs, and graphs and residuals have the
same law before and after: the p-value is exact. So it is with sizes, for dilations. An exact
permutation test tells beforehand whether place and rest depend on each other.

Where they do, the signs of the residuals of each graph are drawn instead. That is exact if the
residuals are symmetric about 0 for every graph, and holds for many graphs if their mean is 0. What
a few numbers of the rest tell of the functions is taken from them by least squares, so that what a
predictor misses of the rest is not mistaken for an effect of the place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Generator, Tensor

from symgnn.discovery._packing import Pack
from symgnn.discovery._residual_products import Draw, Products, one_group, with_one
from symgnn.discovery._spread import randomisation_p
from symgnn.discovery._target_rows import TargetRows

#: The level at which place or size depends on the rest of the graph, and copies that tell.
DEPENDENT, COPIES = 0.01, 199
#: At most so many numbers of the rest, and one for so many graphs.
MOST_OF_REST, GRAPHS_EACH = 24, 8
#: Random functions of the place.
FUNCTIONS = 16
#: Places or sizes that differ by less than this share of the size do not differ.
SAME = 1e-6


def displaced(p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator) -> Draw | None:
    """Places, their squares and random functions of them; None if all graphs are in one place."""
    place = p.mean(p.pos)
    spread = (place - place.mean(0)).square().mean().sqrt()
    if float(spread) <= SAME * float(p.radius.mean()):
        return None
    place = (place - place.mean(0)) / spread
    mix = torch.randn(p.dimension, FUNCTIONS, generator=generator, dtype=torch.float64)
    phase = 6.3 * torch.rand(FUNCTIONS, generator=generator, dtype=torch.float64)

    def functions(order: Tensor) -> list[Tensor]:
        x = place[order]
        return [x, torch.cat([_squares(x), torch.cos(x @ mix + phase)], 1)]

    rest = [p.radius.log().unsqueeze(1), *_shape(p, p.vel)]
    return _exchanged(p, rows, residuals, generator, functions, rest)


def rescaled(
    p: Pack, rows: TargetRows, residuals: Tensor, generator: Generator, *, origin: bool = False
) -> Draw | None:
    """Logarithms of sizes and their squares; None for vectors and if all sizes are the same.

    Args:
        p: The graphs.
        rows: Their targets.
        residuals: Of these.
        generator: Of the exchange.
        origin: Whether places matter: sizes are about the origin, and places grow with them.
    """
    place = p.mean(p.pos) if origin else torch.zeros(p.size, p.dimension).double()
    size = (p.radius.square() + place.square().sum(1)).sqrt().unsqueeze(1)
    log = size.log() - size.log().mean()
    spread = log.square().mean().sqrt()
    if rows.vectors or float(spread) <= SAME:
        return None
    log, relative = log / spread, place / size
    typical = size.square().mean().sqrt()

    def functions(order: Tensor) -> list[Tensor]:
        found = [log[order], log[order].square()]
        return [*found, relative * size[order] / typical] if origin else found

    of_place = [relative, (p.radius.unsqueeze(1) / size).log(), _squares(relative)]
    velocities = None if p.vel is None else p.vel / size[p.batch]
    rest = [*(of_place if origin else []), *_shape(p, velocities)]
    return _exchanged(p, rows, residuals, generator, functions, rest)


def _squares(x: Tensor) -> Tensor:
    """All products of two columns."""
    one, other = torch.triu_indices(x.shape[1], x.shape[1])
    return x[:, one] * x[:, other]


def _shape(p: Pack, velocities: Tensor | None) -> list[Tensor]:
    """What neither translations nor dilations change, `[G, k]` each, the most telling first."""
    x = p.centred / p.radius[p.batch].unsqueeze(1)
    with_features = (p.nodes.unsqueeze(2) * x.unsqueeze(1)).flatten(1)
    found = [p.counts.double().log().unsqueeze(1), p.mean(p.nodes)]
    if velocities is not None:
        speed = p.mean(velocities.square().sum(1, keepdim=True))
        found += [p.mean(velocities), speed.clamp(min=1e-300).log()]
    return [*found, p.mean(_squares(x)), p.mean(with_features)]


def _exchanged(
    p: Pack,
    rows: TargetRows,
    residuals: Tensor,
    generator: Generator,
    functions: Callable[[Tensor], list[Tensor]],
    rest: list[Tensor],
) -> Draw:
    """Sums of residuals times functions of what graph each has the place or size of.

    Args:
        p: The graphs.
        rows: Their targets.
        residuals: Of these.
        generator: Of the exchange.
        functions: Of the numbers of graphs `[G]`; those that are judged together are in one
            tensor, and the first are also multiplied with features.
        rest: Of the graphs, without place or size.
    """
    known = torch.cat(rest, 1)[:, : min(MOST_OF_REST, p.size // GRAPHS_EACH)]
    free = depends_not(known, lambda order: torch.cat(functions(order), 1), generator)
    features = _of_rows(p, rows)
    beside = with_one(features)
    told = torch.cat([known[rows.graph], features], 1)
    basis = _basis(told[:, : min(MOST_OF_REST, len(told) // GRAPHS_EACH)])
    row = torch.arange(len(rows.y))
    weight = torch.ones(len(row), dtype=torch.float64)

    def parts(order: Tensor) -> list[tuple[Tensor, Tensor]]:
        one, *others = (each[rows.graph] for each in functions(order))
        linear = (beside.unsqueeze(2) * one.unsqueeze(1)).flatten(1)
        found = [(linear, torch.arange(beside.shape[1]).repeat_interleave(one.shape[1]))]
        found += [(other, one_group(other.shape[1])) for other in others]
        return [(values - basis @ (basis.T @ values), group) for values, group in found]

    def products(found: list[tuple[Tensor, Tensor]], values: Tensor) -> list[Products]:
        # effects are told of the first functions, which only an exchange moves
        (linear, each), *others = found
        known = (row, weight) if free else (None, None)
        return [Products(values, linear, each, *known), *(Products(values, *o) for o in others)]

    as_they_are = parts(torch.arange(p.size))

    def draw(copy: bool) -> list[Products]:
        if not copy:
            return products(as_they_are, residuals)
        if free:
            return products(parts(torch.randperm(p.size, generator=generator)), residuals)
        sign = torch.randint(2, (p.size,), generator=generator).double() * 2 - 1
        return products(as_they_are, residuals * sign[rows.graph].unsqueeze(1))

    return draw


def depends_not(rest: Tensor, functions: Callable[[Tensor], Tensor], generator: Generator) -> bool:
    """Whether functions of places or sizes can be exchanged among graphs, beside the rest `[G, k]`.

    An exact permutation test of products of the two.
    """
    rest = rest - rest.mean(0)
    copies = [torch.randperm(len(rest), generator=generator) for _ in range(COPIES)]
    original, *others = (
        (rest.T @ functions(order)).flatten() for order in (torch.arange(len(rest)), *copies)
    )
    return randomisation_p(original, torch.stack(others)) > DEPENDENT


def _of_rows(p: Pack, rows: TargetRows) -> Tensor:
    """The features of each row, `[R, F]`."""
    if rows.place == "graph":
        return p.mean(p.nodes)[rows.graph]
    one, other = rows.nodes
    return p.nodes[one] if rows.place == "node" else torch.cat([p.nodes[one], p.nodes[other]], 1)


def _basis(columns: Tensor) -> Tensor:
    """An orthonormal basis of the columns and a constant one, `[R, k]`."""
    spread = columns.std(0)
    varies = spread > 1e-9 * columns.abs().amax(0).clamp(min=1e-300)
    scaled = (columns[:, varies] - columns[:, varies].mean(0)) / spread[varies]
    found, sizes, _ = torch.linalg.svd(with_one(scaled), full_matrices=False)
    return found[:, sizes > 1e-6 * sizes.amax()]


#: The draws of this module by their names.
EXCHANGES: dict[str, Callable[[Pack, TargetRows, Tensor, Generator], Draw | None]] = {
    "translation": displaced,
    "dilation": rescaled,
    "dilation about the origin": partial(rescaled, origin=True),
}
