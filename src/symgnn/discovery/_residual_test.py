"""Do the residuals of a rung depend on a transformation that the rung cannot see?

An effect that is small beside what no rung explains is lost in the comparison of errors: a rung
that sees more also has more to learn, and may be worse for it. Here nothing is learnt. The
residuals of an invariant rung stay what they are when every graph is transformed on its own (those
of an equivariant rung go with the map). If the inputs are spread evenly over the orbits and the
targets keep the kind, then graphs and residuals have the same law before and after. The sums of
products of residuals with simple functions of the coordinates are therefore compared with those of
transformed copies, and the p-value is exact for any number of graphs.

For an effect that is one of these functions, the sum of products with the residuals is the locally
most powerful statistic. Sums of one function (its components, and those of the residuals) are
judged together, and the function that is most surprising decides. Large residuals are shrunk, by
their size alone, which no transformation changes: a few of them would hide a small effect.

The groups are compact: rotations, reflections, permutations, torsions. Of translations and
dilations, which are not, places and sizes are exchanged among the graphs (`_exchange_draws`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from symgnn.discovery._deciding import RESIDUAL_LEVEL
from symgnn.discovery._exchange_draws import EXCHANGES
from symgnn.discovery._packing import Pack
from symgnn.discovery._residual_draws import EVEN_DRAWS
from symgnn.discovery._residual_products import Draw, Products
from symgnn.discovery._target_rows import TargetRows

DRAWS = {**EVEN_DRAWS, **EXCHANGES}
#: Ends the name of a kind whose maps are taken about the origin, so that they move the places of
#: the graphs too, where they are else taken about the centroids.
ABOUT_ORIGIN = " about the origin"
#: The kinds that are tested. The others come after translations, which tell whether places matter.
TESTED = ("translation", "permutation", "rotation", "reflection", "torsion", "dilation")
#: Copies that scale the statistic, and at most so many that it is compared with; the comparison
#: ends sooner when so many copies are as large as the data (Besag and Clifford's sequential test).
PILOT, COPIES, ENOUGH = 100, 999, 10
#: The share of sets in which a visible effect is found, by normal laws; 0.6 to 1 were measured.
POWER = 0.9
#: Residuals of this many times the median size count for 1 / sqrt(2) of their size.
LARGE = 3.0


class ResidualFinding(NamedTuple):
    """What the residuals say of a kind."""

    p_value: float  # that they do not depend on it
    visible: float | None  # share of the variance of the targets; see `visible_effect`
    about_origin: bool = False  # whether the places of the graphs were moved too


def residual_test(
    kind: str,
    pack: Pack,
    rows: TargetRows,
    residuals: Tensor,
    seed: int,
    about_origin: bool = False,
) -> ResidualFinding | None:
    """The p-value that residuals do not depend on a kind; None where there is no test.

    Args:
        kind: Of :data:`TESTED`.
        pack: The graphs.
        rows: Their targets.
        residuals: Of a rung that keeps the kind, on held-out graphs, `[R, t]`.
        seed: Of copies and functions.
        about_origin: Of rotations and dilations: whether the places of graphs go with the map.
    """
    generator = torch.Generator().manual_seed(9_000 + seed)
    small, slope = shrunk(residuals)
    draw = DRAWS[kind + ABOUT_ORIGIN * about_origin](pack, rows, small, generator)
    if draw is None:
        return None
    test = ResidualSums(draw, rows, pack.dimension)
    visible = test.visible_effect(residuals, slope)
    return ResidualFinding(test.p_value(), visible, about_origin)


def shrunk(residuals: Tensor) -> tuple[Tensor, float]:
    """Residuals with large ones made smaller, and how much a small effect in one is made smaller.

    They are divided by a function of the size of the row, so that an effect along a large residual
    shrinks more than one across it; the second number is the mean over directions and rows.
    """
    size = residuals.norm(dim=1, keepdim=True)
    typical = size.median()
    if float(typical) <= 0:
        return residuals, 1.0
    factor = 1 / (1 + (size / (LARGE * typical)).square()).sqrt()
    width = residuals.shape[1]
    return residuals * factor, float(((width - 1) * factor + factor**3).mean()) / width


class ResidualSums:
    """Sums of products of the data, of copies that scale them, and of copies to compare with."""

    def __init__(self, draw: Draw, rows: TargetRows | None = None, dimension: int = 1) -> None:
        self.draw = draw
        self.data = draw(False)
        self.moments = _Moments(self.data, rows, dimension)
        sums = []
        for _ in range(PILOT):
            copy = draw(True)
            sums.append(_sums(copy))
            self.moments.add(copy)
        pilot = torch.stack(sums)
        self.mean, self.deviation = pilot.mean(0), pilot.std(0)
        terms = torch.cat([(p.one.abs().T @ p.other.abs()).flatten() for p in self.data])
        # sums that are the same for all copies but for rounding are left out
        self.varies = self.deviation > 1e-9 * terms
        self.groups = _groups(self.data)
        typical = torch.stack([self._sizes(values) for values in pilot])
        middle, width = typical.mean(0), typical.std(0)
        self.used = width > 0
        #: A multiple of chi squared with the mean and the deviation of the copies.
        self.scale = torch.where(self.used, width.square() / (2 * middle), 1.0)
        self.freedom = torch.where(self.used, 2 * middle.square() / width.square(), 1.0)

    def _sizes(self, sums: Tensor) -> Tensor:
        """The sum of squares of each group, in deviations of the copies."""
        scaled = (sums - self.mean)[self.varies] / self.deviation[self.varies]
        total = sums.new_zeros(int(self.groups.max()) + 1)
        return total.index_add_(0, self.groups[self.varies], scaled.square())

    def _statistic(self, sums: Tensor) -> float:
        """How surprising the most surprising group is."""
        from scipy.stats import chi2

        size, freedom = self._sizes(sums) / self.scale, self.freedom
        return float(-chi2.logsf(size[self.used].numpy(), freedom[self.used].numpy()).min())

    def p_value(self) -> float:
        """The share of copies whose statistic is as large as that of the data."""
        if not bool(self.used.any()):
            return 1.0
        known, count = self._statistic(_sums(self.data)), 0
        for number in range(1, COPIES + 1):
            count += self._statistic(_sums(self.draw(True))) >= known * (1 - 1e-12)
            if count == ENOUGH:
                return count / number
        return (1 + count) / (COPIES + 1)

    def visible_effect(self, residuals: Tensor, slope: float = 1.0) -> float | None:
        """The smallest effect that would be found, for the function where it is largest.

        An effect is a multiple of one of the functions that are judged alone, minus its mean over
        the transformations, in one component of the targets. Its size is its share of their
        variance, at most 1. It adds to the residuals, which makes it harder to see. The p-value has
        to be small enough for all kinds together (Bonferroni's bound, and half of it, as there are
        only so many copies); laws are taken as normal.

        Args:
            residuals: Before large ones were shrunk.
            slope: By how much residuals were shrunk.
        """
        from scipy.optimize import brentq
        from scipy.stats import chi2, ncx2

        found = []
        level = RESIDUAL_LEVEL / len(TESTED) / 2 / max(int(self.used.sum()), 1)
        noise = float(residuals.square().mean()) * self.moments.turning
        for moved, group in self._gains():
            for number in group.unique().tolist():
                gains = moved[:, group == number]
                if not bool(self.used[number]) or not bool((gains > 0).any()):
                    continue
                gain = slope**2 * float(gains[gains > 0].mean()) / float(self.scale[number])
                freedom = float(self.freedom[number])
                bound = float(chi2.isf(level, freedom))
                needed = brentq(lambda x, b=bound, f=freedom: ncx2.sf(b, f, x) - POWER, 1e-6, 1e4)
                effect = needed / gain / max(1 - needed / gain / noise, 1e-12)
                found.append(effect / self.moments.components)
        return min(max(found), 1.0) if found else None

    def _gains(self) -> Iterator[tuple[Tensor, Tensor]]:
        """How far sums move, squared and in deviations, by an effect of variance 1.

        Of the functions of which effects are told: `[a, b]` for each, and its group `[b]`.
        """
        first = 0
        for part, size in zip(self.data, self.moments.sizes(), strict=True):
            shape = part.one.shape[1], part.other.shape[1]
            place = slice(first, first + shape[0] * shape[1])
            first = place.stop
            if size is None:
                continue
            moved = size / self.deviation[place].view(shape).square()
            moved = torch.where(self.varies[place].view(shape), moved, 0.0)
            yield moved, self.groups[place].view(shape)[0]


class _Moments:
    """The functions of each row of the targets, over the copies: first and second moments.

    The residuals of vectors turn with the copies, and what no rotation changes is none of theirs:
    there the mean is taken as 0.
    """

    def __init__(self, data: list[Products], rows: TargetRows | None, dimension: int = 1) -> None:
        self.rows, self.copies = rows, 0
        self.components = 1 if rows is None else rows.y.shape[1]
        #: The components among which an effect in one of them is spread by the copies.
        self.turning = dimension if rows is not None and rows.vectors else 1
        told = [rows is not None and part.row is not None for part in data]
        self.mean = [
            part.other.new_zeros(len(rows.y), part.other.shape[1]) if rows and one else None
            for part, one in zip(data, told, strict=True)
        ]
        self.square = [None if mean is None else mean[0].clone() for mean in self.mean]

    def add(self, copy: list[Products]) -> None:
        """Count one more copy."""
        self.copies += 1
        for part, mean, square in zip(copy, self.mean, self.square, strict=True):
            if mean is None or square is None or part.row is None or part.weight is None:
                continue
            weighted = part.weight.unsqueeze(1) * part.other
            functions = torch.zeros_like(mean).index_add_(0, part.row, weighted)
            mean += functions
            square += functions.square().sum(0)

    def sizes(self) -> Iterator[Tensor | None]:
        """Of each part: the sum over rows of the variances of its functions, times the rows."""
        for mean, square in zip(self.mean, self.square, strict=True):
            if mean is None or square is None or self.rows is None:
                yield None
                continue
            n = self.copies
            fixed = 0.0 if self.rows.vectors else (mean / n).square().sum(0)
            variance = (square / n - fixed) * (1.0 if self.rows.vectors else n / (n - 1))
            yield variance.clamp(min=0) * len(mean)


def _sums(parts: list[Products]) -> Tensor:
    return torch.cat([(part.one.T @ part.other).flatten() for part in parts])


def _groups(parts: list[Products]) -> Tensor:
    """The group of each sum."""
    found, first = [], 0
    for part in parts:
        found.append((part.group + first).repeat(part.one.shape[1]))
        first += int(part.group.max()) + 1
    return torch.cat(found)
