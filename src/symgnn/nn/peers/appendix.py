"""DimeNet and IsoGNN by the formulas of the paper's appendix, taken literally.

They differ from the published networks of these names, which are in the other modules of this
package: the appendix shows how such networks follow from DGN and AGN, and does not specify most of
their functions.
"""

from __future__ import annotations

from torch import Tensor

from symgnn.geometry.symmetry import EUCLIDEAN, STARS
from symgnn.nn.inputs import Operator, a, d2, e, reduce, theta, v
from symgnn.nn.peers.isogcn import _isometric
from symgnn.nn.spec import Network, Spec
from symgnn.nn.state import State


def _squared_sum(rows: Tensor, state: State) -> Tensor:
    """`|sum_j G_ij v_j|^2` for each feature, `[N, f] -> [N, f]`."""
    vectors = _isometric(state).vectors
    edges, engine = state.topology.edges, state.engine
    values = engine.gather(rows.to(vectors.dtype), edges.source)
    n, f = vectors.shape[1], rows.shape[1]
    outer = (vectors.unsqueeze(2) * values.unsqueeze(1)).flatten(1)
    total = engine.total(outer, edges.target).unflatten(1, (n, f))
    return total.square().sum(1).to(rows.dtype)


#: It depends on one node and its neighbours, which a torsion moves rigidly.
SQUARED_SUM = Operator(
    "|sum_j G_ij v_j|^2", "node", function=_squared_sum, symmetry=EUCLIDEAN | STARS
)

#: Eq. (isognn), rank one: `e_ji = (sum_kl T_ijkl (x_k - x_l)) v_j`, `v_i+ = phi(v_i, sum_j e_ji)`,
#: with the matrices T of IsoGCN, by which the bracket is `G_ij = M_i^-1 r_ij / |r_ij|^2`. The sum
#: over j is a vector for each feature, and phi of its components would see the axes of space: phi
#: reads its squared length.
ISOGNN_FORMULA = Network(
    "IsoGNN formula", Spec("IsoGNN formula", node=[v, SQUARED_SUM]), aggregation="sum"
)

#: Eq. (dimenet): the angle (i, j, k) with its vertex j reads the edge j -> i, its squared length
#: and the angle; an edge j -> i sums over the angles at j whose first ray it is. The formula sums
#: over "i in N_j", where i is taken already; k is meant. Forms are MLPs, and lengths and angles go
#: in as they are.
DIMENET_FORMULA = Network(
    "DimeNet formula",
    Spec(
        "DimeNet formula",
        angle=[e.first, d2.first, theta],
        edge=[e, reduce(a, "source")],
        node=[v, reduce(e)],
    ),
    aggregation="sum",
)

#: The peers of the paper's appendix by its formulas, by the names that `build` takes.
FORMULAS: dict[str, Network] = {
    "isognn-formula": ISOGNN_FORMULA,
    "dimenet-formula": DIMENET_FORMULA,
}
