"""All uses of non-public parts of PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType
from torch._functorch.utils import unwrap_dead_wrappers
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import get_proxy_mode

#: Whether torch.export is at work; older versions of PyTorch say yes while they compile, too.
is_exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
#: How many transforms of torch.func are at work; the compiler, too, knows what this gives.
transforms = torch._C._functorch.get_dynamic_layer_stack_depth


def is_transformed() -> bool:
    """Whether torch.func or derivatives in forward mode are at work."""
    return bool(transforms()) or forward_ad._current_level >= 0


def apply_function(function: type[torch.autograd.Function], *given: Any) -> Any:
    """`function.apply(*given)`, without the preparations that `apply` makes for torch.func, and
    without autograd, where they are not at work: they take longer than what is done to a small
    graph.
    """
    if is_transformed():
        return function.apply(*given)
    if needs_derivative(*given):
        plain = super(torch.autograd.Function, function)
        return plain.apply(*unwrap_dead_wrappers(given))  # type: ignore[attr-defined]
    return function.forward(*given)


def needs_derivative(*given: Any) -> bool:
    """Whether autograd is to differentiate by any of these."""
    return torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in given)


def is_recorded(value: Tensor) -> bool:
    """Whether operations are recorded, compiled or transformed by torch.func, not just done."""
    return (
        torch.compiler.is_compiling()
        or torch._C._functorch.is_functorch_wrapped_tensor(value)
        or is_proxied()
    )


def is_proxied() -> bool:
    """Whether operations are recorded as a list, to be done again later."""
    return get_proxy_mode() is not None


def may_branch_on_values(value: Tensor) -> bool:
    """Whether a number may decide what is computed; on a GPU, reading it would hold it up."""
    return value.is_cpu and not is_recorded(value)


def left_to_torch() -> tuple[bool, bool]:
    """Whether operations are recorded, compiled or transformed by torch.func, and whether that is
    a derivative of torch.func, which cannot compute anything again.
    """
    if torch.compiler.is_compiling():
        return True, False
    transform = torch._C._functorch.peek_interpreter_stack()
    recorded = is_proxied()
    derivative = transform is not None and transform.key() != TransformType.Vmap
    return recorded or transform is not None, derivative


def keeps_graph() -> bool:
    """In a backward pass: whether the graph of operations is kept for another one."""
    return torch._C._autograd._get_current_graph_task_keep_graph()
