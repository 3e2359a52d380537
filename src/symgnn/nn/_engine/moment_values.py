"""The value of an angle update of product form: only its sums exist."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from symgnn.graphs import Topology
from symgnn.nn._engine.values import LazyValues, placed

#: Sums at vertices are better mapped before they are added to all nodes where these are at most
#: this part of the nodes.
PART = 0.75


class MomentValues(LazyValues):
    """The value of a form on rays: only its sums exist.

    Args:
        topology: Of the graph.
        total: The sums to "node", "vertex" or "ray", see :meth:`Moments.product`.
        vertex: The vertices that have angles, in the order of their stars; None if unknown.
    """

    def __init__(
        self, topology: Topology, total: Callable[[str], Tensor], vertex: Tensor | None
    ) -> None:
        super().__init__(topology, "angle", None)
        self.total, self.vertex = total, vertex

    def at_vertices(self, how: str) -> tuple[Tensor, Tensor] | None:
        """A sum or mean at the vertices that have angles, and these; None if it is better taken at
        all nodes.
        """
        known = ("ray", "sum") in self._totals or ("node", "sum") in self._totals
        if self.vertex is None or known or len(self.vertex) > PART * self.topology.num_nodes:
            return None
        rows = self._total("vertex", "sum")
        if how == "mean":
            rows = rows / self._count("node", rows.dtype).index_select(0, self.vertex)
        return rows, self.vertex

    def _climb_angles(self, to: str, op: str) -> Tensor:
        if to == "node" and ("vertex", "sum") in self._totals and self.vertex is not None:
            return placed(self._totals["vertex", "sum"], self.vertex, self.topology.num_nodes)
        if to in ("ray", "vertex") or (to == "node" and ("ray", op) not in self._totals):
            return self.total(to)
        return super()._climb_angles(to, op)
