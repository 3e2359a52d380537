"""Values on edges that are the same for an edge and its reverse."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from symgnn.graphs import Topology
from symgnn.graphs.edge_pairs import EdgePairs
from symgnn.nn._engine.values import LazyValues
from symgnn.nn.state import Values


class PairValues(LazyValues):
    """A value on edges whose hidden numbers are there on rows, or on the edges that are left."""

    def __init__(
        self,
        topology: Topology,
        hidden: Tensor,
        total: Tensor,
        last: Any,
        pairs: EdgePairs,
        on_rows: bool,
    ) -> None:
        super().__init__(topology, "edge", hidden, last, rows_read=False, folds=True)
        self._totals["node", "sum"] = total
        self.pairs, self.on_rows = pairs, on_rows

    def plus(self, before: Values) -> LazyValues:
        """The value with an old one added."""
        assert self.hidden is not None
        total = self._totals["node", "sum"]
        found = PairValues(self.topology, self.hidden, total, self.last, self.pairs, self.on_rows)
        found.before = before
        return found

    @property
    def read(self) -> Tensor:
        """The hidden numbers on all edges, for what reads them other than here."""
        assert self.hidden is not None
        assert len(self.pairs.row) == self.topology.num_edges
        return self.hidden.index_select(0, self.pairs.row) if self.on_rows else self.hidden

    @property
    def rows(self) -> Tensor:
        """The value itself `[E, w]`."""
        if self._made is None:
            assert self.last is not None
            rows = self.last(self.read)
            self._made = rows if self.before is None else rows + self.before.rows
        return self._made
