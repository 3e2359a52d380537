"""Messages filtered by distance, in place of an MLP on edges, and sums over their angles.

    e_ji = (W v_j + b) * (F [d_ji, e0_ji] + c)                       a filter in each channel
    v_i  = phi(v_i, sum_j e_ji, u)                                   DGN-filtered
    v_i  = phi(v_i, products(e)_i, sum_j e_ji, u)                    Combined-filtered, see
                                                                     symgnn.nn.edge_products

An edge costs one product with the filter; there is no MLP on edges, nor any list of angles. SchNet
(Schuett et al., 2017) has such messages, with an MLP for the filter and without angles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from symgnn.nn.architectures import COMBINED, DGN, SDGN
from symgnn.nn.edge_products import PRODUCTS, edge_products
from symgnn.nn.form import MLP, AffineMap, Form, Width, linear
from symgnn.nn.inputs import Input, Measure, Reduction, e, initial, theta, v
from symgnn.nn.spec import Spec

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
    on_lines = False  # one product with a few columns

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


def filtered(spec: Spec, degree: int | None = None) -> Spec:
    """A specification whose messages are nodes times a filter of the lengths of edges.

    An edge reads its source, the measures that the edge update of the specification reads, and edge
    features, but not its old value, its target or the graph. Angles are not listed: nodes read
    products of messages by their angle in place of sums over angles. The symmetry is the same.

    Args:
        spec: A specification whose edge update reads a measure of edges, such as `DGN` or
            `COMBINED`.
        degree: The largest degree of the polynomials of angles, from 0 to 6, 2 if not given; for
            specifications with angles only.

    Returns:
        The specification `NAME-filtered`.

    Example:
        >>> from symgnn.nn import DGN
        >>> filtered(DGN).edge
        (v.source, d2, e0)
    """
    if is_filtered(spec):
        known = [each for each in spec.node if each.name == PRODUCTS]
        return spec if degree is None else _with_products(spec, known, degree)
    measures = [each for each in spec.edge if isinstance(each, Measure)]
    sums = [each for each in spec.node if isinstance(each, Reduction)]
    of_angles = [each.home for each in spec.angle if each.domain == "angle" and each.reads == "x"]
    if not measures or "e" not in {each.reads for each in sums}:
        raise ValueError(
            f"filtered: the edges of {spec.name} read no lengths for nodes to sum; use dgn or "
            "combined"
        )
    if spec.forms or not set(of_angles) <= {theta}:
        raise ValueError(
            f"filtered: {spec.name} has {'forms' if spec.forms else 'angles'} of its own, which "
            "products of messages would replace; use dgn or combined"
        )
    found = spec.replace(
        name=f"{spec.name}-filtered",
        angle=(),
        edge=[v.source, *measures, initial(e)],
        node=[each for each in spec.node if each not in sums or each.reads == "e"],
        graph=[each for each in spec.graph if each.reads in ("v", "u")],
        forms={"edge": FilterForm(), "node": ScaledMLP},
    )
    if not of_angles:
        return found if degree is None else _with_products(found, [], degree)
    return _with_products(found, sums[:1], 2 if degree is None else degree)


def is_filtered(spec: Spec) -> bool:
    """Whether messages of a specification are filtered."""
    return isinstance(spec.forms.get("edge"), FilterForm)


def _with_products(spec: Spec, before: Sequence[Input], degree: int) -> Spec:
    """With products up to a degree, in place of those there are or before an input of nodes."""
    if not before:
        raise ValueError(f"degree: is {degree!r}, but {spec.name} reads no angles; remove degree")
    at = spec.node.index(before[0])
    rest = spec.node[at + (before[0].name == PRODUCTS) :]
    return spec.replace(node=[*spec.node[:at], edge_products(degree), *rest])


#: The blocks with filtered messages, by name.
FILTERED: dict[str, Spec] = {
    f"{spec.name.lower()}-filtered": filtered(spec) for spec in (DGN, SDGN, COMBINED)
}
