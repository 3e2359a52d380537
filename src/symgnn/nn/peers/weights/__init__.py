"""Weights from other people's modules, and back.

Nothing is imported from the peers: their modules are known by the names of their classes and
parts. Which of our parameters is which of theirs is said once, for both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from symgnn.nn.conv import Conv
from symgnn.nn.model import Model
from symgnn.nn.peers.weights.common import Names
from symgnn.nn.peers.weights.egnn import e_gcl, egnn_dense, egnn_network, egnn_sparse
from symgnn.nn.peers.weights.pyg import dimenet, schnet

READERS: dict[str, Callable[[Any], tuple[Model | Conv, Names]]] = {
    "SchNet": schnet,
    "DimeNet": dimenet,
    "DimeNetPlusPlus": dimenet,
    "EGNN": egnn_network,
    "E_GCL": e_gcl,
    "E_GCL_vel": e_gcl,
    "EGNN_Sparse": egnn_sparse,
}


def from_peer(module: nn.Module) -> Model | Conv:
    """A model with the weights of PyG's `SchNet`, `DimeNet` or `DimeNetPlusPlus` or of EGNN's own
    `EGNN`; or a layer, with those of its `E_GCL` and `E_GCL_vel` or of egnn-pytorch's
    `EGNN_Sparse` and `EGNN`.

    It gives the same values on the same graph. What cannot be carried over is an error that says
    what it is. The graph is not built in forward: give the edges that the peer would make. EGNN's
    own modules sum over the second node of an edge for the first; for ours, which sum at the
    target, flip their `edge_index`.
    """
    model, names = reader_of(module)(module)
    ours = _parameters(model)
    for name, theirs in pairs_of(names):
        parameter = ours.pop(name)
        with torch.no_grad():
            parameter.copy_(theirs.view_as(parameter))
    left = [name for name, parameter in ours.items() if parameter.requires_grad]
    assert not left, f"from_peer: nothing was read for {left}"
    like = next(module.parameters())
    return model.to(like.device, like.dtype)


def to_peer(model: Model | Conv, module: nn.Module) -> nn.Module:
    """Copy the weights of a model into a peer's module of the same sizes, and give that."""
    fitting, names = reader_of(module)(module)
    ours, expected = _parameters(model), _parameters(fitting)
    for name, parameter in expected.items():
        if name not in ours or ours[name].shape != parameter.shape:
            raise ValueError(
                f"to_peer: {name} does not fit; the {type(module).__name__} was made for another "
                "network or for other sizes"
            )
    for name, theirs in pairs_of(names):
        with torch.no_grad():
            theirs.copy_(ours[name].view_as(theirs))
    return module


def _parameters(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.named_parameters())


def reader_of(module: nn.Module) -> Callable[[Any], tuple[Model | Conv, Names]]:
    """What makes a network of ours of a module, and names its weights."""
    name = type(module).__name__
    if name == "EGNN" and hasattr(module, "edge_mlp"):
        return egnn_dense
    if name not in READERS:
        raise TypeError(f"from_peer: cannot read a {name}; it reads {', '.join(READERS)}")
    return READERS[name]


def pairs_of(names: Names) -> list[tuple[str, Tensor]]:
    """Our parameters and theirs, one by one."""
    pairs = []
    for name, theirs in names.items():
        if isinstance(theirs, Tensor):
            pairs.append((name, theirs))
        else:
            pairs += [(f"{name}.{part}", value) for part, value in theirs.named_parameters()]
    return pairs
