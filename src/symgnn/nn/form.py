"""Forms: the functions phi of updates, such as the MLP, and operations on their results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.nn.parameters import reset_all

if TYPE_CHECKING:
    from symgnn.graphs import Grid


class Form(nn.Module):
    """A function phi of the inputs of an update, created by `form(widths, out, hidden)`.

    It has two steps. :meth:`home` gets each input on its own domain (a node value has one row per
    node). Its results are gathered to the domain of the update, where :meth:`here` computes the
    result from them. So a function of a node value is computed once per node, not once per edge or
    angle.

    Args:
        widths: The width of each input.
        out: The width of the result; a form may choose another and set `self.out`.
        hidden: The width of hidden layers, if there are any.
    """

    #: Whether it is made as `form(..., update=..., width=...)` of those inputs that are there.
    takes_update = False
    #: For angles: whether it is a product of factors of the two rays and a polynomial, so that sums
    #: need no list of angles (see :mod:`symgnn.nn.separable`).
    on_rays = False
    #: Whether `residual=True` of :func:`symgnn.nn.build` adds the old value to its result.
    adds_old = False
    #: For edges: whether :meth:`home` costs enough to match each edge with its reverse, so that it
    #: is computed once for both where both have the same lengths.
    on_lines = True

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__()
        self.widths, self.out = list(widths), out

    def home(self, *values: Tensor) -> Sequence[Tensor | None]:
        """The first half.

        Args:
            values: Each input where it lives, `[rows of its domain, width]`.

        Returns:
            For each input the rows `[rows of its domain, any]` to be gathered; None leaves it out.
        """
        return values

    def here(self, *values: Tensor) -> Tensor:
        """The second half.

        Args:
            values: What :meth:`home` gave, gathered, `[rows of the update, any]` each.

        Returns:
            The result `[rows of the update, out]`.
        """
        raise TypeError(f"{type(self).__name__} has to define here(*values)")

    def total(self, grid: Grid, *values: Tensor) -> Tensor | None:
        """For angles, a faster sum of :meth:`here` over the second rays of each first ray, if any.

        Args:
            grid: The angles as a square of first by second rays for each vertex.
            values: As for :meth:`here`, but not gathered where they live on rays: `[R, any]`.

        Returns:
            `[R, out]`, or None where there is no faster way.
        """
        return None

    def prepare(self, *values: Tensor) -> None:
        """Look at the inputs on some training graphs, before :meth:`calibrate`; by default not.

        Args:
            values: As for :meth:`home`.
        """

    def calibrate(self, *values: Tensor) -> None:
        """Rescale the weights so that the result has the size of 1; by default they stay.

        Args:
            values: As for :meth:`here`.
        """

    def reset_parameters(self) -> None:
        """Re-initialise all weights."""
        reset_all(self)


#: How weights can be drawn.
INITIALISATIONS = ("variance", "torch")
#: One over the root mean square of swish(z) for standard normal z.
SWISH_GAIN = 1.6766
#: The size of the coefficients of a coordinate map at the start.
MAP_GAIN = 0.03


@dataclass(frozen=True)
class Width:
    """Sizes and start of the MLPs of a block.

    Args:
        hidden: The width of the hidden layers, or one for each domain.
        layers: How many hidden layers there are.
        dropout: The rate of dropout after each of them.
        init: How weights are drawn, see :class:`MLP`.
        gain: The root mean square of results at the start, with `init="variance"`.
        depth: How many layers there are. Results that are added to old values start smaller by
            its root, so that the sum over all layers stays of the size of one.
        terms: The average number of terms of each reduction of the training graphs, such as
            `{"edge->node": 8.0}`; sums are divided by it.
    """

    hidden: int | Mapping[str, int]
    layers: int = 1
    dropout: float = 0.0
    init: str = "torch"
    gain: float = 1.0
    depth: int = 1
    terms: Mapping[str, float] = field(default_factory=dict)

    @property
    def for_map(self) -> Width:
        """That of the MLPs of a coordinate map, which start small: coordinates stay nearly."""
        return dataclasses.replace(self, hidden=self.of("coordinates"), gain=MAP_GAIN)

    def of(self, domain: str) -> int:
        """The width of the hidden layers of an update."""
        return self.hidden if isinstance(self.hidden, int) else self.hidden[domain]


class MLP(Form):
    """An MLP with swish activations on the concatenation of its inputs.

    `linears[0]` acts on the concatenation, as in any MLP. It equals a sum of one linear map per
    input (its block of columns): :meth:`home` applies these, :meth:`here` adds the results and the
    bias and applies the remaining layers. `linears[-1]`, :attr:`last`, commutes with sums and
    means.

    Args:
        widths: The width of each input.
        out: The width of the result.
        hidden: The width of the hidden layers.
        layers: The number of hidden layers; with 0 the MLP is one linear map.
        dropout: The dropout rate after each hidden layer.
        last_bias: Whether the last linear map has a bias.
        init: "variance" preserves the variance: if every input has a root mean square of 1, so
            have all hidden values, the result has `gain`, and each input contributes the same
            variance regardless of its width; biases are 0. "torch" is the initialisation of
            `torch.nn.Linear`.
        gain: The root mean square of the result at initialisation, with `init="variance"`.
    """

    def __init__(
        self,
        widths: Sequence[int],
        out: int,
        hidden: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        last_bias: bool = True,
        init: str = "torch",
        gain: float = 1.0,
    ) -> None:
        super().__init__(widths, out, hidden)
        sizes = [sum(widths), *[hidden] * layers, out]
        self.linears = nn.ModuleList(AffineMap(i, o) for i, o in pairwise(sizes))
        if not last_bias and layers:
            self.linears[-1].register_parameter("bias", None)
        self.dropout, self.init, self.gain = dropout, init, gain
        if init == "variance":
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initialise all weights."""
        if self.init == "torch":
            reset_all(self)
            return
        last = len(self.linears) - 1
        for number, linear in enumerate(self.linears):
            assert isinstance(linear, AffineMap)
            gain = (SWISH_GAIN if number else 1.0) * (self.gain if number == last else 1.0)
            linear.keep_variance([linear.in_features] if number else self.widths, gain)

    def calibrate(self, *values: Tensor) -> None:
        """Rescale each map so that its results have a root mean square of 1, the last one of
        `gain` ("layer-sequential unit variance", Mishkin and Matas, 2016).
        """
        hidden = sum(values, self.bias)
        for number, linear in enumerate(self.linears):
            if number:
                hidden = linear(F.silu(hidden))
            wanted = self.gain if number == len(self.linears) - 1 else 1.0
            size = float(hidden.square().mean().sqrt()) if hidden.numel() else 0.0
            if size > 0:
                for parameter in linear.parameters():
                    parameter.mul_(wanted / size)
                hidden = hidden * (wanted / size)

    def home(self, *values: Tensor) -> list[Tensor]:
        """Each input times its columns of the first map."""
        return [linear(value, map) for value, map in zip(values, self.maps(), strict=True)]

    def here(self, *values: Tensor) -> Tensor:
        """The sum, the bias, and the rest of the MLP; `[out]` without any inputs."""
        hidden = self.finish(sum(values, self.bias))
        return hidden if self.last is None else self.last(hidden)

    def maps(self) -> tuple[Tensor, ...]:
        """The columns of the first map `[hidden, width]` of each input."""
        if not self.widths:  # a split into nothing could not be saved with an exported program
            return ()
        return self.first.weight.split(self.widths, dim=1)

    @property
    def _chain(self) -> list[nn.Linear]:
        """The linear maps; not by numbers of a ModuleList, which are slow."""
        return list(self.linears._modules.values())  # type: ignore[arg-type]

    @property
    def first(self) -> nn.Linear:
        """The first linear map."""
        return self._chain[0]

    @property
    def bias(self) -> Tensor:
        """The bias of the first map `[hidden]`."""
        return self._chain[0].bias

    @property
    def last(self) -> nn.Linear | None:
        """The last linear map; None where the first is the only one."""
        chain = self._chain
        return chain[-1] if len(chain) > 1 else None

    def finish(
        self,
        hidden: Tensor,
        swish: Callable[[Tensor], Tensor] = F.silu,
        dropout: Callable[[Tensor, float, bool], Tensor] = F.dropout,
    ) -> Tensor:
        """Everything between the first and the last linear map, `[..., h] -> [..., h]`.

        Args:
            hidden: The results of the first map.
            swish: How the swish is computed.
            dropout: How dropout is computed, of the values, the rate, and whether it is training.
        """
        chain = self._chain
        for number in range(1, len(chain)):
            if number > 1:
                hidden = chain[number - 1](hidden)
            hidden = swish(hidden)
            if self.dropout:
                hidden = dropout(hidden, self.dropout, self.training)
        return hidden

    def extra_repr(self) -> str:
        """The widths of the inputs."""
        return f"widths={self.widths}"


def linear(rows: Tensor, weight: Tensor) -> Tensor:
    """A linear map without a bias, `[..., w], [h, w] -> [..., h]`, in the type of the weight.

    Of a single number it is a product, which stays in full precision where matrix products do not.
    """
    rows = rows.to(weight.dtype)
    return rows * weight[:, 0] if weight.shape[1] == 1 else F.linear(rows, weight)


class AffineMap(nn.Linear):
    """A linear map that may have no inputs: an update with nothing to read is its bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(max(inputs, 1), outputs)
        if not inputs:
            self.in_features = 0
            del self.weight
            self.register_buffer("weight", self.bias.new_empty(outputs, 0), persistent=False)

    def reset_parameters(self) -> None:
        """Re-initialise all weights."""
        if self.in_features:
            super().reset_parameters()
        else:
            nn.init.uniform_(self.bias, -1, 1)

    def keep_variance(self, widths: Sequence[int], gain: float) -> None:
        """Draw weights for inputs of these widths, each with a root mean square of 1."""
        if not self.in_features:
            nn.init.uniform_(self.bias, -(3**0.5) * gain, 3**0.5 * gain)
            return
        for columns in self.weight.detach().split(list(widths), dim=1):
            columns.normal_(0.0, gain / math.sqrt(len(widths) * columns.shape[1]))
        if self.bias is not None:
            nn.init.zeros_(self.bias)


@dataclass(frozen=True)
class After:
    """Operations on the result of an update, applied in this order.

    Args:
        activation: Whether the swish is applied once more.
        norm: Whether each row is brought to mean 0 and deviation 1 over its features, then scaled
            and shifted by learned numbers (`torch.nn.LayerNorm`).
        gate: Whether it is multiplied by the sigmoid of a linear map of itself.
        residual: Whether the old value is added.
    """

    activation: bool = False
    norm: bool = False
    gate: bool = False
    residual: bool = False
