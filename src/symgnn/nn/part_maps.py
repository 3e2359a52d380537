"""The coordinate map within subgraphs: each part of a graph may move on its own."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from symgnn.geometry.symmetry import AFFINE, Symmetry
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.inputs import e, u, v
from symgnn.nn.linear_maps import LinearMap, Mirror
from symgnn.nn.neighbour_maps import _Neighbours, _pull
from symgnn.nn.state import State


class PartSum(_Neighbours):
    """`x_i+ = x_i + sum_j a_ji (x_j - x_i)` over the edges j -> i within the part of i.

    The map of the paper's appendix, "Local symmetry transformation": `data.part [N]` is the part
    (subgraph) of each node, and coordinates move only along edges within a part, with
    `a_ji = phi_x(e_ji+, v_j+, v_i+, u)`. So a rigid motion of a part moves its new coordinates in
    the same way.

    Deviation from the paper: nodes with an edge to another part do not move. The block also reads
    distances and angles across such an edge, and these would change if its ends left the axis about
    which a part turns. With the ends fixed, the output is invariant to all part motions
    (:class:`~symgnn.geometry.PartMotion`), including the torsion about a bond between two parts,
    but not to a torsion about a bond inside a part.

    Args:
        limit: The maximum absolute value of a coefficient; None for no bound. (A bound on the
            growth of the whole graph, as in :class:`NeighbourSum`, would depend on the positions of
            the parts relative to each other.)
    """

    reads = frozenset("xveu")
    inputs = (e, v.source, v.target, u)
    within_parts = True

    def __init__(self, limit: float | None = 10.0) -> None:
        super().__init__(max_growth=None)
        if limit is not None and not 0 < limit < float("inf"):
            raise ValueError(f"limit: is {limit}; give a positive number, or None")
        self.limit = limit
        self.keeps = self.commutes = AFFINE | Symmetry(["part-motion"])

    def forward(self, state: State) -> Tensor:
        """Move along the edges within parts."""
        if state.part is None:
            raise ValueError(
                "part: is missing, but the coordinate map moves nodes within parts; give data.part "
                "[N], the number of each node's subgraph"
            )
        source, target = state.topology.edge_index
        inside = (state.part[source] == state.part[target]).to(state.x.dtype).unsqueeze(-1)
        ends = state.x.new_zeros(len(state.x), 1)
        for nodes in (source, target):
            ends = ends.index_add(0, nodes, 1 - inside)
        coefficient = self.update(state).rows.to(state.x.dtype)
        if self.limit is not None:
            coefficient = coefficient.clamp(-self.limit, self.limit)
        return state.x + (ends == 0) * _pull(state.rays, inside * coefficient, state)


#: The paper's remaining maps by name, beside `COORDINATE_MAPS`: those by a matrix and within parts.
OTHER_MAPS: dict[str, Callable[[], CoordinateMap]] = {
    "mirror": Mirror,
    "mirror-u": lambda: Mirror(of="u"),
    "linear": LinearMap,
    "linear-u": lambda: LinearMap(of="u"),
    "part-sum": PartSum,
}
