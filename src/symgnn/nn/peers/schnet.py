"""SchNet (Schuett et al., 2017) as a specification, equal to PyG's `SchNet`."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.nn.bases import cosine_cutoff, gaussians
from symgnn.nn.form import After, Form
from symgnn.nn.inputs import e, reduce, v
from symgnn.nn.peers.peer_forms import Same, embedding
from symgnn.nn.spec import Network, Spec


def schnet(
    *, filters: int = 128, basis: int = 50, cutoff: float = 10.0, types: int = 100
) -> Network:
    """Messages are node values times a filter of the distance; node updates are residual.

    The graph is the one given: PyG's builds a radius graph of at most 32 neighbours in forward.
    Type 0 is padding, and its nodes start with 0.
    """
    layer = Spec(
        "SchNet",
        edge=[v.source, gaussians(basis, cutoff), cosine_cutoff(cutoff)],
        node=[reduce(e)],
        forms={"edge": _filtered(filters), "node": Receive},
        after={"node": After(residual=True)},
    )
    head = Spec("read-out", node=[v], forms={"node": Head})
    pooled = head.replace(graph=[reduce(v)], forms={"node": Head, "graph": Same})
    return Network(
        "SchNet",
        layer,
        first=[Spec("types", node=[v], forms={"node": embedding(types, padding=0)})],
        readout={"graph": pooled, "node": head},
        types=types,
        aggregation="sum",
        hidden=128,
        layers=6,
        init="torch",
    )


#: The logarithm of 2, in single precision as in PyG's code.
LOG2 = 0.6931471824645996


class ShiftedForm(Form):
    """A form whose activation is the softplus, shifted so that it is 0 at 0."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, out, hidden)
        self.shift = LOG2

    def after_softplus(self, linear: nn.Linear, x: Tensor) -> Tensor:
        """A linear map of the activation of x: the shift is one of the bias."""
        bias = linear.bias - self.shift * linear.weight.sum(1)
        return F.linear(F.softplus(x), linear.weight, bias)


class GlorotLinear(nn.Linear):
    """A linear map with Glorot's uniform initialisation and a bias of 0."""

    def reset_parameters(self) -> None:
        """Re-initialise all weights."""
        super().reset_parameters()
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


def _filtered(filters: int) -> type[Form]:
    class Filtered(ShiftedForm):
        """`(W v_j) * mlp(basis(d)) * cutoff(d)`."""

        def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
            super().__init__(widths, filters, hidden)
            self.nodes = GlorotLinear(widths[0], filters, bias=False)
            self.first = GlorotLinear(widths[1], filters)
            self.second = GlorotLinear(filters, filters)

        def home(self, *values: Tensor) -> Sequence[Tensor | None]:
            nodes, basis, cutoff = values
            filters = self.after_softplus(self.second, self.first(basis)) * cutoff
            return self.nodes(nodes), filters, None

        def here(self, *values: Tensor) -> Tensor:
            nodes, filters = values
            return nodes * filters

    return Filtered


class Receive(ShiftedForm):
    """`W' softplus(W sum_j e_ji)`."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, out, hidden)
        self.first, self.second = GlorotLinear(widths[0], out), GlorotLinear(out, out)

    def here(self, *values: Tensor) -> Tensor:
        """A node."""
        return self.after_softplus(self.second, self.first(values[0]))


class Head(ShiftedForm):
    """An MLP with half as many hidden numbers."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, out, hidden)
        half = max(widths[0] // 2, 1)
        self.first, self.second = GlorotLinear(widths[0], half), GlorotLinear(half, out)

    def here(self, *values: Tensor) -> Tensor:
        """A node."""
        return self.after_softplus(self.second, self.first(values[0]))
