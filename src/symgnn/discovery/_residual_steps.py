"""The steps of a search that test residuals, kind by kind."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from symgnn.discovery._deciding import NEGLIGIBLE, RESIDUAL_LEVEL, best_of
from symgnn.discovery._residual_test import ABOUT_ORIGIN, residual_test
from symgnn.discovery._spread import COMPACT, randomisation_test
from symgnn.discovery._target_rows import TargetRows, rows_of_each, target_rows

if TYPE_CHECKING:
    from symgnn.discovery._search import Search

#: Where targets have more rows than are fitted, residuals are tested on so many times as many.
MORE_ROWS = 3


class ResidualSteps:
    """The tests of the residuals of a search whose rungs are fitted."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def findings(self, kept: Collection[str]) -> dict[str, dict[str, Any] | None]:
        """Of each kind a :class:`ResidualFinding` as a dictionary; None where the time was over.

        Translations come first, and tell whether the places of the graphs matter.

        Args:
            kept: The kinds that are kept as far as errors tell; only these are tested.
        """
        found: dict[str, dict[str, Any] | None] = {}
        places_matter = "translation" not in kept
        for kind in self.search.tested:
            if kind not in kept:
                found[kind] = self.search.store.run(f"residuals: {kind}", dict)
                continue
            found[kind] = self._tested(kind, places_matter)
            if kind == "translation":
                p_value = (found[kind] or {}).get("p_value", 1.0)
                places_matter = places_matter or p_value <= RESIDUAL_LEVEL
        return found

    def _tested(self, kind: str, places_matter: bool) -> dict[str, Any] | None:
        """The finding of a kind; empty where there is no test."""
        search = self.search
        even = search.even(kind) if kind in COMPACT else [1.0]
        if even is None:
            return None
        losses, symmetries = search.losses, search.symmetries
        best = best_of(losses, [name for name in losses if kind in symmetries[name]])
        if even[0] <= RESIDUAL_LEVEL or float(losses[best].mean()) <= NEGLIGIBLE:
            return search.store.run(f"residuals: {kind}", dict)

        def test() -> dict[str, Any]:
            rows, fitted = self._more_rows()
            cache = search.cache if fitted is None else {}
            residuals = search.residuals_of(best, search.pack, rows, cache, fitted)
            about_origin = self._about_origin(kind, places_matter)
            found = residual_test(kind, search.pack, rows, residuals, search.seed, about_origin)
            return {} if found is None else found._asdict()

        return search.store.run(f"residuals: {kind}", test)

    def _about_origin(self, kind: str, places_matter: bool) -> bool:
        """Whether places go with the map: if they are spread evenly, for rotations."""
        search = self.search
        if kind != "rotation":
            return kind == "dilation" and places_matter
        even = randomisation_test(kind + ABOUT_ORIGIN, search.pack, search.graphs, search.seed)
        return even[0] > RESIDUAL_LEVEL

    def _more_rows(self) -> tuple[TargetRows, Tensor | None]:
        """More rows of the targets than are fitted, and those that are; all are, of graphs."""
        search = self.search
        if search.rows.place == "graph":
            return search.rows, None
        generator = torch.Generator().manual_seed(7_000 + search.seed)
        rows = target_rows(search.graphs, search.task, search.pack, generator, MORE_ROWS)
        most = rows_of_each(len(search.graphs), search.task, search.pack.dimension)
        return rows, rows.some(most, search.seed)
