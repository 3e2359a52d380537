"""Dropout that draws where the zeros are, in place of a random number for each value.

The gaps between the zeros of independent trials have a geometric distribution. So the zeros have
the same law as those of :func:`torch.nn.functional.dropout`, and with a rate of 0.01 a hundredth of
the random numbers are drawn, and kept for the backward pass.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from symgnn.nn._engine.rows import in_front
from symgnn.nn._engine.torch_private import apply_function, is_proxied

#: The largest rate for which drawing gaps takes less time and memory than a mask.
LARGEST_RATE = 0.25
#: The fewest values for which it takes less time.
FEWEST = 2**15


def draws_gaps(hidden: Tensor, rate: float) -> bool:
    """Whether the zeros of `hidden` are drawn by their gaps: on a CPU, at a low rate, and where
    operations are neither compiled nor recorded, whose sizes may not depend on random numbers.
    """
    return (
        hidden.is_cpu
        and 0 < rate <= LARGEST_RATE
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and not is_proxied()
    )


def dropout(hidden: Tensor, rate: float, training: bool) -> Tensor:
    """:func:`torch.nn.functional.dropout`, `[..., h] -> [..., h]`."""
    if not training or hidden.numel() < FEWEST or not draws_gaps(hidden, rate):
        return F.dropout(hidden, rate, training)
    zeros = drawn_zeros(hidden, hidden.numel(), rate)
    found: Tensor = apply_function(_Dropped, hidden, zeros, 1 / (1 - rate))
    return found


def drawn_zeros(like: Tensor, count: int, rate: float) -> Tensor:
    """The places of the zeros among `count` values, in ascending order, `[K, 1]`.

    K is the same for each member of `torch.vmap`: places of `count` or more stand for nothing.
    """
    found: Tensor = apply_function(_Zeros, like, count, rate)
    return found


def zeros_within(zeros: Tensor, count: int, first: int = 0) -> Tensor:
    """Those of `zeros [K, 1]` among `count` values from `first` on, numbered from there."""
    places = zeros.flatten()
    ends = torch.searchsorted(places, torch.tensor([first, first + count]))
    return places[int(ends[0]) : int(ends[1])] - first


def mask_of(zeros: Tensor, like: Tensor, scale: float) -> Tensor:
    """`scale`, and 0 at the zeros, in the shape of `like`."""
    found: Tensor = apply_function(_Dropped, torch.ones_like(like), zeros, scale)
    return found


class _Zeros(torch.autograd.Function):
    @staticmethod
    def forward(like: Tensor, count: int, rate: float, *members: int) -> Tensor:
        mean = count * rate
        some = int(mean + 6 * math.sqrt(mean) + 16)
        places = _gaps(rate, *members, some).cumsum_(-1)
        while places.numel() and places[..., -1].min() <= count:
            more = _gaps(rate, *members, some).cumsum_(-1)
            places = torch.cat([places, more.add_(places[..., -1:])], -1)
        return places.sub_(1).long().unsqueeze(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple:
        return (None,) * len(ctx.needs_input_grad)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> None:
        return None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple, like: Tensor, count: int, rate: float, *members: int
    ) -> tuple[Tensor, int | None]:
        if info.randomness == "error":
            raise RuntimeError(
                "torch.vmap: dropout is random; pass randomness='different' (or 'same') to vmap"
            )
        if info.randomness == "same":
            return _Zeros.apply(like, count, rate, *members), None
        return _Zeros.apply(like, count, rate, info.batch_size, *members), 0


def _gaps(rate: float, *shape: int) -> Tensor:
    """From one zero to the next: 1 if they are neighbours."""
    waits = torch.empty(shape, dtype=torch.float64).exponential_(-math.log1p(-rate))
    return waits.ceil_().clamp_(min=1)


class _Dropped(torch.autograd.Function):
    """`scale` times the values, and 0 at the zeros: linear, and its own transpose."""

    @staticmethod
    def forward(hidden: Tensor, zeros: Tensor, scale: float) -> Tensor:
        members = zeros.shape[:-2].numel()
        count = hidden.numel() // max(members, 1)
        out = torch.mul(hidden, scale).contiguous()
        places = zeros.reshape(members, -1)
        if members == 1:
            places = zeros_within(places.view(-1, 1), count)
        else:
            starts = count * torch.arange(members).unsqueeze(1)
            places = (places + starts)[places < count]
        out.view(-1).index_fill_(0, places, 0.0)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        _, zeros, ctx.scale = inputs
        ctx.save_for_backward(zeros)
        ctx.save_for_forward(zeros)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return apply_function(_Dropped, grad, *ctx.saved_tensors, ctx.scale), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        found: Tensor = apply_function(_Dropped, tangent, *ctx.saved_tensors, ctx.scale)
        return found

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple, hidden: Tensor, zeros: Tensor, scale: float
    ) -> tuple[Tensor, int]:
        rows = in_front(hidden, in_dims[0], info.batch_size)
        places = in_front(zeros, in_dims[1], info.batch_size)
        return _Dropped.apply(rows, places, scale), 0
