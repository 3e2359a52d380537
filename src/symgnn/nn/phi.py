"""The update function phi: an MLP whose first linear map is a sum of one map per source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn


class Phi(nn.Module):
    """An MLP over the concatenation of sources of the given widths.

    `linears[0]` is the map over the concatenation, as in any MLP. Its columns are cut into one
    map per source, :meth:`maps`, so that each can be applied where its source lives, on N rows
    instead of E or A. `linears[-1]` is left to the caller, :attr:`last`, because it commutes with
    sums and means; without `last_bias` it has no bias. `layers` counts the hidden layers; with 0,
    phi is one linear map.
    """

    def __init__(
        self,
        widths: Sequence[int],
        hidden: int,
        out: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        last_bias: bool = True,
    ) -> None:
        super().__init__()
        self.widths = list(widths)
        sizes = [sum(widths), *[hidden] * layers, out]
        self.linears = nn.ModuleList(_Linear(i, o) for i, o in pairwise(sizes))
        if not last_bias and layers:
            self.linears[-1].register_parameter("bias", None)
        self.dropout = dropout

    def maps(self) -> tuple[Tensor, ...]:
        """The columns of the first map `[hidden, width]` of each source."""
        if not self.widths:  # a split into nothing could not be saved with an exported program
            return ()
        return self.linears[0].weight.split(self.widths, dim=1)  # type: ignore[operator]

    @property
    def bias(self) -> Tensor:
        """The bias of the first map `[hidden]`."""
        return self.linears[0].bias  # type: ignore[return-value]

    @property
    def last(self) -> nn.Linear | None:
        """The last linear map; None where the first is the only one."""
        _, *later = self.linears
        return later[-1] if later else None  # type: ignore[return-value]

    def finish(self, hidden: Tensor) -> Tensor:
        """All that comes between the first and the last linear map, `[..., h] -> [..., h]`."""
        _, *later = self.linears
        for linear in [*later[:-1], None] if later else []:
            hidden = F.silu(hidden)
            if self.dropout:
                hidden = F.dropout(hidden, self.dropout, self.training)
            if linear is not None:
                hidden = linear(hidden)
        return hidden

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for linear in self.linears:
            linear.reset_parameters()  # type: ignore[operator]

    def extra_repr(self) -> str:
        """The widths of the sources."""
        return f"widths={self.widths}"


class _Linear(nn.Linear):
    """A linear map that may have no inputs: an update with nothing to read is its bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(max(inputs, 1), outputs)
        if not inputs:
            self.in_features = 0
            del self.weight
            self.register_buffer("weight", self.bias.new_empty(outputs, 0), persistent=False)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        if self.in_features:
            super().reset_parameters()
        else:
            nn.init.uniform_(self.bias, -1, 1)
