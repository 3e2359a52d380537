"""The blocks of the paper, and CGN, each as the lists of the inputs of its updates.

Equation names are those of "Symmetry-driven graph neural networks" (Farina and Slade, 2021).
All blocks run their updates in the order angle, edge, node, coordinates, graph.
"""

from symgnn.nn.inputs import a, d2, e, kappa, position, reduce, theta, u, v
from symgnn.nn.spec import Spec

#: The standard graph network, eq. (gnn). The nodes start with their coordinates as features.
GN = Spec(
    "GN",
    edge=[v.source, v.target, e, u],
    node=[v, reduce(e), u],
    graph=[reduce(v), reduce(e), u],
    inputs=[v, position],
)

#: The distance preserving graph network, eq. (En).
DGN = Spec(
    "DGN",
    edge=[e, v.target, v.source, d2, u],
    node=[reduce(e), v, u],
    graph=[reduce(e), reduce(v), reduce(d2), u],
)

#: DGN on coordinates scaled by 1 / (longest edge of the graph).
SDGN = DGN.replace(name="SDGN", scaling=1.0)

#: The angle preserving graph network, eq. (angulaGN). It keeps every map that keeps the angles at
#: the vertices: similarities, torsions, redrawings and angle flexes. Inversions are none of them:
#: they keep the angles between curves, not those between the chords of three points.
AGN = Spec(
    "AGN",
    angle=[v.vertex, v.first, v.second, a, theta, u],
    edge=[v.source, v.target, e, u],
    node=[v, reduce(e), reduce(a), u],
    graph=[reduce(v), reduce(e), reduce(a), u],
)

# The four variants of AGN in the appendix.

#: AGN whose angles read their two edges. Where a directed graph has no edge i -> j for e_ij, the
#: edge j -> i stands in.
AGN_EDGES = AGN.replace(
    name="AGN+edges",
    angle=[v.vertex, v.first, v.second, e.first, e.second, a, theta, u],
)
#: AGN whose angles read the squared lengths of their two rays.
AGN_DISTANCES = AGN.replace(
    name="AGN+distances",
    angle=[v.vertex, v.first, v.second, a, d2.first, d2.second, theta, u],
)
#: AGN whose edges read the angles at both of their ends.
AGN_TO_EDGES = AGN.replace(
    name="AGN-to-edges",
    edge=[e, v.source, v.target, reduce(a, "target"), reduce(a, "source"), u],
)
#: AGN without an angle update: nodes read sums or means of the angles themselves.
AGN_RAW = AGN.replace(
    name="AGN-raw",
    angle=[],
    node=[v, reduce(e), reduce(theta), u],
    graph=[reduce(v), reduce(e), u],
)

#: DGN and AGN together. The graph reads the angles too, which the paper's example leaves open.
COMBINED = AGN.replace(name="Combined", edge=[v.source, v.target, e, d2, u])

#: The conformal graph network: AGN with kappa in place of the angle, so that the whole Moebius
#: group keeps it.
CGN = AGN.replace(name="CGN", angle=[v.vertex, v.first, v.second, a, kappa, u])

#: The blocks of the paper, and CGN, by the names that `build` takes.
ARCHITECTURES: dict[str, Spec] = {
    spec.name.lower(): spec
    for spec in (
        GN,
        DGN,
        SDGN,
        AGN,
        AGN_EDGES,
        AGN_DISTANCES,
        AGN_TO_EDGES,
        AGN_RAW,
        COMBINED,
        CGN,
    )
}
