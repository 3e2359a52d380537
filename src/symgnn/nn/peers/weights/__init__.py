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
from symgnn.nn.peers.weights.egnn_weights import e_gcl, egnn_dense, egnn_network, egnn_sparse
from symgnn.nn.peers.weights.pyg_weights import dimenet, schnet
from symgnn.nn.peers.weights.transfer import Names, Reading, check_all_read, same, settings

READERS: dict[str, Callable[[Any], Reading]] = {
    "SchNet": schnet,
    "DimeNet": dimenet,
    "DimeNetPlusPlus": dimenet,
    "EGNN": egnn_network,
    "E_GCL": e_gcl,
    "E_GCL_vel": e_gcl,
    "EGNN_Sparse": egnn_sparse,
}


def from_peer(module: nn.Module) -> Model | Conv:
    """Convert another library's module into a symgnn network with the same weights and options.

    The network returns the same values on the same graph, and has the dtype, the device and the
    mode (training or evaluation) of the module; frozen parameters stay frozen. An option or
    parameter without a counterpart in symgnn is an error with its name. The graph is not built in
    forward: pass the edges that the peer would build. EGNN's own modules aggregate an edge at its
    first node, symgnn at the target, which is the second: flip `edge_index` for them.

    Args:
        module: PyG's `SchNet`, `DimeNet` or `DimeNetPlusPlus` or EGNN's own `EGNN`, for a model;
            EGNN's own `E_GCL` or `E_GCL_vel` or egnn-pytorch's `EGNN_Sparse` or `EGNN`, for a
            layer.

    Returns:
        A :class:`Model`, or a :class:`Conv` for a layer.

    Example:
        >>> from torch_geometric.nn.models import SchNet
        >>> peer = SchNet(hidden_channels=8, num_filters=8, num_interactions=1, num_gaussians=5)
        >>> symgnn.nn.from_peer(peer).network.name
        'SchNet'
    """
    reading = reader_of(module)(module)
    pairs = pairs_of(reading.names)
    check_all_read(module, reading, pairs)
    kinds = {(p.dtype, p.device) for p in module.parameters()}
    if len(kinds) > 1:
        listed = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise ValueError(
            f"from_peer: the parameters of this {type(module).__name__} are {listed}; move them to "
            "one dtype and device first, such as module.double()"
        )
    ((dtype, device),) = kinds
    # before the weights are copied: a copy through another dtype would round them
    model = reading.model.to(device, dtype)
    ours = dict(model.named_parameters())
    for name, theirs in pairs:
        parameter = ours.pop(name)
        with torch.no_grad():
            parameter.copy_(theirs.view_as(parameter))
        parameter.requires_grad_(theirs.requires_grad)
    left = [name for name, parameter in ours.items() if parameter.requires_grad]
    assert not left, f"from_peer: nothing was read for {left}"
    return model.train(module.training)


def to_peer(model: Model | Conv, module: nn.Module) -> nn.Module:
    """Copy the weights of a model into a peer's module of the same options and sizes.

    Args:
        model: A network from :func:`from_peer`.
        module: The peer's module; it is changed in place. It must have the options of the model,
            and a dtype at least as precise as the model's.

    Returns:
        The module.

    Example:
        >>> from torch_geometric.nn.models import SchNet
        >>> peer = SchNet(hidden_channels=8, num_filters=8, num_interactions=1, num_gaussians=5)
        >>> model = symgnn.nn.from_peer(peer)
        >>> symgnn.nn.to_peer(model, peer) is peer
        True
    """
    reading = reader_of(module)(module)
    called = type(module).__name__
    ours, expected = dict(model.named_parameters()), dict(reading.model.named_parameters())
    for name in (*expected, *ours):
        if name not in ours or name not in expected or ours[name].shape != expected[name].shape:
            raise ValueError(
                f"to_peer: {name} does not fit; the {called} was made for another network or for "
                "other sizes"
            )
    here, there = settings(model), settings(reading.model)
    for name in (*there, *here):
        if not same(here.get(name), there.get(name)):
            raise ValueError(
                f"to_peer: {name} does not fit; it is {here.get(name)!r} in the model and "
                f"{there.get(name)!r} in the {called}"
            )
    pairs = pairs_of(reading.names)
    for name, theirs in pairs:
        if torch.promote_types(ours[name].dtype, theirs.dtype) != theirs.dtype:
            raise ValueError(
                f"to_peer: {name} is {ours[name].dtype}, which {theirs.dtype} of the {called} "
                "would round; convert the module first, such as module.double()"
            )
    with torch.no_grad():
        for name, theirs in pairs:
            theirs.copy_(ours[name].view_as(theirs))
    return module


def reader_of(module: nn.Module) -> Callable[[Any], Reading]:
    """The function that makes a network of ours from a module, and names its weights."""
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
