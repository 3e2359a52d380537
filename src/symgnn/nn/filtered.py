"""Messages filtered by distance, and sums over their angles: the block Combined-filtered.

    e_ji = (W v_j + b) * (F [d_ji, e0_ji] + c)                       a filter in each channel
    v_i  = phi(v_i, products(e)_i, sum_j e_ji, u)                    see symgnn.nn.edge_products

An edge costs one product with the filter; there is no MLP on edges, nor any list of angles. SchNet
(Schuett et al., 2017) has such messages, with an MLP for the filter and without angles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from symgnn.nn.edge_products import edge_products
from symgnn.nn.form import MLP, AffineMap, Form, Width, linear
from symgnn.nn.inputs import Input, d2, e, initial, reduce, u, v
from symgnn.nn.spec import Network, Spec

if TYPE_CHECKING:
    from symgnn.nn.update import Update


class DistanceFilter(Form):
    """`(W nodes + b) * (F edges + c)`, of the inputs of an edge update on nodes and on edges.

    Args:
        widths: The width of each input.
        out: How many numbers a message has.
        hidden: Not used: there are no hidden layers.
        inputs: What is read, on nodes first.
    """

    takes_update = True

    def __init__(
        self, widths: Sequence[int], out: int, hidden: int, inputs: Sequence[Input]
    ) -> None:
        super().__init__(widths, out, hidden)
        domains = [each.domain for each in inputs]
        self.node_inputs = domains.count("node")
        known = ["node"] * self.node_inputs + ["edge"] * (len(domains) - self.node_inputs)
        if domains != known or len(set(known)) != 2:
            raise ValueError(
                f"edge: a DistanceFilter reads {list(inputs)}; give values of nodes, then measures "
                "or values of edges"
            )
        #: Whether all that nodes give is read at the source.
        self.of_source = all(each.place == "source" for each in inputs[: self.node_inputs])
        self.nodes = AffineMap(sum(widths[: self.node_inputs]), out)
        self.filters = AffineMap(sum(widths[self.node_inputs :]), out)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew: both factors have a variance of about 1."""
        self.nodes.keep_variance(self.widths[: self.node_inputs], 1.0)
        self.filters.keep_variance(self.widths[self.node_inputs :], 1.0)

    def calibrate(self, *values: Tensor) -> None:
        """Rescale the filter so that messages have a root mean square of 1."""
        rows = self.here(*values)
        size = float(rows.square().mean().sqrt()) if rows.numel() else 0.0
        if size > 0:
            self.filters.weight.div_(size)
            self.filters.bias.div_(size)

    def home(self, *values: Tensor) -> list[Tensor | None]:
        """Each node value times its columns of W, and the filter of all edge values."""
        count = self.node_inputs
        maps = self.nodes.weight.split(self.widths[:count], 1)
        found = [linear(value, map) for value, map in zip(values[:count], maps, strict=True)]
        found[0] = found[0] + self.nodes.bias
        rows = torch.cat(values[count:], 1) if len(values) > count + 1 else values[count]
        filters = linear(rows, self.filters.weight) + self.filters.bias
        return [*found, filters, *[None] * (len(values) - count - 1)]

    def here(self, *values: Tensor) -> Tensor:
        """The messages `[E, out]`."""
        *nodes, filters = values
        return sum(nodes[1:], nodes[0]) * filters


@dataclass(frozen=True)
class FilterForm:
    """Makes a :class:`DistanceFilter`, as the form of an edge update in a :class:`Spec`."""

    takes_update: ClassVar[bool] = True

    def __call__(
        self, widths: Sequence[int], out: int, hidden: int, *, update: Update, width: Width
    ) -> DistanceFilter:
        """The form of the inputs of an update."""
        return DistanceFilter(widths, out, hidden, update.inputs)


class ScaledMLP(MLP):
    """An MLP whose inputs are divided by their size at the start, column by column.

    Sums over pairs are of another size for each degree and each kind of graph. The sizes are those
    on the example of the averages (:meth:`symgnn.nn.Model.calibrate`), and 1 without.
    """

    takes_update = True
    adds_old = True
    scale: Tensor  # 1 / size, [sum of widths]

    def __init__(
        self, widths: Sequence[int], out: int, hidden: int, *, update: Update, width: Width
    ) -> None:
        gain = width.gain / (math.sqrt(width.depth) if update.after.residual else 1.0)
        super().__init__(
            widths,
            out,
            hidden,
            layers=width.layers,
            dropout=width.dropout,
            init=width.init,
            gain=gain,
        )
        self.register_buffer("scale", torch.ones(sum(widths)))

    def prepare(self, *values: Tensor) -> None:
        """Take the root mean square of each column, where it is not 0, for its size."""
        columns = torch.cat([value.square().mean(0) for value in values]).sqrt()
        self.scale.copy_(torch.where(columns > 0, 1 / columns, 1.0))

    def home(self, *values: Tensor) -> list[Tensor]:
        """As that of an MLP, of the inputs over their sizes."""
        maps = (self.first.weight * self.scale).split(self.widths, 1) if self.widths else ()
        return [linear(value, map) for value, map in zip(values, maps, strict=True)]


def filtered(degree: int = 2) -> Network:
    """The block Combined-filtered, with products of edges up to a degree.

    Its symmetry is that of "combined". It is for potentials above all: an edge costs a fraction of
    what an MLP costs, and forces are derivatives of few operations.

    Args:
        degree: The largest degree of the polynomials of angles, from 0 to 6.

    Example:
        >>> print(symgnn.nn.build("combined-filtered", radial=8, cutoff=5.0).symmetry)
        E(n), torsions, permutations
    """
    layer = Spec(
        "Combined-filtered",
        edge=[v.source, d2, initial(e)],
        node=[v, edge_products(degree), reduce(e), u],
        graph=[reduce(v), u],
        forms={"edge": FilterForm(), "node": ScaledMLP},
    )
    return Network(layer.name, layer, hidden=64)


#: By the names that `build` takes.
FILTERED: dict[str, Callable[..., Network]] = {"combined-filtered": filtered}
