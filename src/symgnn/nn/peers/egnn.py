"""EGNN (Satorras et al., 2021) as a specification, equal to its own layers."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import LayerNorm

from symgnn.geometry.symmetry import EVERYTHING
from symgnn.nn.egnn_map import EGNNMap
from symgnn.nn.form import After
from symgnn.nn.inputs import Applied, Operator, d2, e, initial, reduce, v
from symgnn.nn.peers.peer_forms import Linear
from symgnn.nn.spec import ORDER, READOUTS, Network, Spec
from symgnn.nn.state import State


def normalised(width: int, *, whole: bool = False, eps: float = 1e-5) -> Operator:
    """Node features with mean 0 and deviation 1, each node's or those of a whole graph together,
    then scaled and shifted by learned numbers; egnn-pytorch's option `norm_feats`.
    """
    make = Applied(_Norm, (width, eps, "graph" if whole else "node"))
    return Operator("normalised(v)", "node", make=make, symmetry=EVERYTHING, of="v")


class _Norm(LayerNorm):
    """PyG's, called with the values of a graph."""

    def __init__(self, width: int, eps: float, mode: str) -> None:
        super().__init__(width, eps, mode=mode)

    def forward(self, rows: Tensor, state: State) -> Tensor:
        """Each row, or all rows of a graph."""
        topology = state.topology
        out: Tensor = super().forward(rows, topology.batch, topology.num_graphs)
        return out


def egnn(
    *,
    attention: bool = False,
    residual: bool = True,
    normalise: bool = False,
    tanh: bool = False,
    coordinates: str = "mean",
    velocity: bool = False,
    embed: bool = True,
) -> Network:
    """E(n)-equivariant messages over the edges given; give all pairs for the paper's sum over j.

    Args:
        attention: Whether a message is weighed by the sigmoid of a linear map of itself.
        residual: Whether nodes add to their old value.
        normalise: Whether the rays that coordinates move along are divided by their length.
        tanh: Whether the coefficients of the rays go through tanh.
        coordinates: "sum" or "mean": how the rays of a node are put together.
        velocity: Whether nodes also move along their velocity, `data.vel`.
        embed: Whether a linear map comes before the layers, and one after them for nodes.
    """
    order = [step for step in ORDER if step != "coordinates"]
    order.insert(order.index("node"), "coordinates")  # before the nodes change
    layer = Spec(
        "EGNN",
        edge=[v.target, v.source, d2, initial(e)],
        node=[v, reduce(e)],
        after={
            "edge": After(activation=True, gate=attention),
            "node": After(residual=residual),
        },
        order=order,
    )
    return Network(
        "EGNN",
        layer,
        first=[Spec("embedding", node=[v], forms={"node": Linear})] if embed else [],
        readout={**READOUTS, "node": Spec("embedding", node=[v], forms={"node": Linear})},
        aggregation="sum",
        coordinate_map=EGNNMap(
            aggregation=coordinates, normalise=normalise, tanh=tanh, velocity=velocity
        ),
        hidden=64,
        mlp_hidden=64,
        layers=4,
        init="torch",
    )
