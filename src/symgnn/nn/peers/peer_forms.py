"""Forms that several networks share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from symgnn.nn.form import Form


class Linear(Form):
    """A linear map of one value."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, out, hidden)
        self.linear = nn.Linear(sum(widths), out)

    def here(self, *values: Tensor) -> Tensor:
        """Of the concatenation, if there are several."""
        return self.linear(values[0] if len(values) == 1 else torch.cat(values, -1))


class Same(Form):
    """The value as it is."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, widths[0], hidden)

    def here(self, *values: Tensor) -> Tensor:
        """The only one."""
        return values[0]


def embedding(types: int, padding: int | None = None) -> type[Form]:
    """A vector for each of that many types of nodes; always 0 for the type `padding`."""

    class Embedding(Form):
        def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
            super().__init__(widths, out, hidden)
            self.embedding = nn.Embedding(types, out, padding_idx=padding)

        def here(self, *values: Tensor) -> Tensor:
            return self.embedding(values[0][:, 0])

    return Embedding
