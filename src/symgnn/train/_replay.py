"""A training step recorded once and replayed: no Python of the model, no tape, no vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

#: Signature: (parameters) -> (losses [S], the gradient of each parameter).
Step = Callable[[Sequence[Tensor]], tuple[Tensor, list[Tensor]]]


def record(losses: Callable[[Sequence[Tensor]], Tensor], parameters: Sequence[Tensor]) -> Step:
    """Losses and gradients as a list of tensor operations, for data that stay the same.

    What depends on the data alone, such as angles of coordinates that do not move, is computed
    here, once. Random operations stay random. Control flow that depends on values cannot be
    recorded, and is an error.
    """

    def step(*parameters: Tensor) -> tuple[Tensor, ...]:
        leaves = [p.detach().requires_grad_() for p in parameters]
        values = losses(leaves)
        return values.detach(), *torch.autograd.grad(values.sum(), leaves, materialize_grads=True)

    recorded = make_fx(step)(*parameters)
    recorded.graph.eliminate_dead_code()
    _fold(recorded)

    def replay(parameters: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        with torch.no_grad():
            values, *gradients = recorded(*parameters)
        return values, gradients

    return replay


def _fold(module: fx.GraphModule) -> None:
    """Replace what depends on no parameter by its value."""
    values: dict[fx.Node, Any] = {}
    for node in list(module.graph.nodes):
        if node.op == "get_attr":
            values[node] = getattr(module, node.target)
        elif _is_pure(node) and all(source in values for source in node.all_input_nodes):
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
    for number, (node, value) in enumerate(values.items()):
        if node.op == "get_attr" or not isinstance(value, Tensor):
            continue
        if any(user not in values for user in node.users):
            name = f"_folded{number}"
            module.register_buffer(name, value)
            with module.graph.inserting_before(node):
                node.replace_all_uses_with(module.graph.get_attr(name))
    module.graph.eliminate_dead_code()
    module.recompile()


def _is_pure(node: fx.Node) -> bool:
    """Whether a node gives the same every time, and nobody writes into what it gives."""
    if node.op != "call_function":
        return False
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded not in tags and not any(
        _mutates(one) for one in (node, *node.users)
    )


def _mutates(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)
