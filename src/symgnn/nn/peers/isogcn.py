"""IsoGCN (Horie et al., 2021) as a specification: nodes that read derivatives of their values."""

from __future__ import annotations

from torch import Tensor

from symgnn.geometry.symmetry import EUCLIDEAN, STARS
from symgnn.nn.inputs import Operator, v
from symgnn.nn.isometric import Isometric
from symgnn.nn.spec import Network, Spec
from symgnn.nn.state import State


def isogcn() -> Network:
    """Nodes of a mesh or point cloud read their value, its Laplacian and its squared gradient.

    The derivatives are those of the isometric adjacency tensors, which are made anew where the
    coordinates move. With node features of rank 0 and invariants out, this is the network of the
    paper that goes up to rank 1 and comes back; nonlinear in what it comes back with.
    """
    layer = Spec("IsoGCN", node=[v, LAPLACIAN, SQUARED_GRADIENT])
    return Network("IsoGCN", layer, aggregation="mean", init="torch")


def _isometric(state: State) -> Isometric:
    """The adjacency tensors of the coordinates as they are."""
    if "isometric" not in state.measured:
        state.measured["isometric"] = Isometric.of(
            state.x, state.topology, edge_shift=state.edge_shift
        )
    found: Isometric = state.measured["isometric"]
    return found


def _laplacian(rows: Tensor, state: State) -> Tensor:
    return _isometric(state).laplacian(rows.to(state.x.dtype)).to(rows.dtype)


def _squared_gradient(rows: Tensor, state: State) -> Tensor:
    return _isometric(state).squared_gradient(rows.to(state.x.dtype)).to(rows.dtype)


#: The divergence of the gradient of v. It compares gradients of neighbours, so only a motion of
#: the whole graph leaves it as it is.
LAPLACIAN = Operator("laplacian(v)", "node", function=_laplacian, symmetry=EUCLIDEAN)
#: `|grad v|^2`: it depends on one node and its neighbours, which a torsion moves rigidly.
SQUARED_GRADIENT = Operator(
    "|grad v|^2", "node", function=_squared_gradient, symmetry=EUCLIDEAN | STARS
)
