"""Messages between edges whose sums over angles have product form, as DimeNet's at lower cost.

    m_ji <- phi(m_ji, v_j, v_i, d_ji, sum_k a_ijk),   k a neighbour of j other than i,
    a_ijk = g(d_ji) * h(m_kj, d_kj) * Q(cos theta_ijk)

DimeNet (Gasteiger et al., 2020) passes every pair of edges k -> j -> i through a bilinear form of a
basis of distance and angle and of the message m_kj. Here each channel is a product of a linear
function of the length of j -> i, one of the message and the length of k -> j, and a polynomial of
the cosine of the angle at j. So the sum over k is an inner product of moments with the ray to i
left free, and costs as much as edges do. This is not the network of DimeNet's own code, which
is `"dimenet"`.
"""

from __future__ import annotations

from symgnn.nn.inputs import a, d2, e, reduce, u, v
from symgnn.nn.separable import ProductForm, cosine
from symgnn.nn.spec import Spec

#: The angle at the source j of an edge j -> i has the ray to i first and that to k second; the
#: message of k -> j comes to its vertex. Where there is no edge k -> j, it is 0.
DIMENET_SEPARABLE = Spec(
    "DimeNet-separable",
    angle=[d2.first, e.second.incoming, d2.second, cosine],
    edge=[e, v.source, v.target, d2, reduce(a, "source"), u],
    node=[v, reduce(e), u],
    graph=[reduce(v), reduce(e), u],
    forms={"angle": ProductForm()},
)

#: Blocks whose edges read edges, by name.
DIRECTIONAL: dict[str, Spec] = {"dimenet-separable": DIMENET_SEPARABLE}
