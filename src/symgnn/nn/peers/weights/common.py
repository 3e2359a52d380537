"""What reading the weights of any peer needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

#: Our module's name (a part with weight and bias, or a parameter) -> theirs.
Names = dict[str, Any]


def refuse(module: nn.Module, **options: object) -> None:
    """Options that have no counterpart here: an error where one is set."""
    for name, value in options.items():
        if value:
            raise ValueError(
                f"from_peer: {type(module).__name__} was made with {name}={value}, which cannot be "
                "carried over"
            )


def same_swish(module: nn.Module, act: Callable[[Tensor], Tensor]) -> None:
    """An error where the activation of a module is another one."""
    x = torch.linspace(-3, 3, 7)
    if not torch.allclose(act(x), nn.functional.silu(x)):
        raise ValueError(f"from_peer: {type(module).__name__} has another activation than swish")
