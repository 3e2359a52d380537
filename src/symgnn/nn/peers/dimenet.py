"""DimeNet and DimeNet++ (Gasteiger et al., 2020) as specifications, equal to PyG's.

A message lives on an edge j -> i. It is updated from the messages k -> j through the angles at j:
the first ray of an angle goes to i, the second to k. Messages and angles whose edge is not there
do not count, as in the original, which has a triplet for every pair of edges k -> j -> i.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot_orthogonal

from symgnn.graphs import Grid
from symgnn.nn._engine.grid_products import weigh
from symgnn.nn.bases import bessel, spherical
from symgnn.nn.form import Form
from symgnn.nn.inputs import Measure, a, e, reduce, v
from symgnn.nn.parameters import reset_parts
from symgnn.nn.peers.peer_forms import Same, embedding
from symgnn.nn.spec import Network, Spec


def dimenet(
    *,
    bilinear: int = 8,
    degrees: int = 7,
    basis: int = 6,
    cutoff: float = 5.0,
    exponent: int = 5,
    before_skip: int = 1,
    after_skip: int = 2,
    output_layers: int = 3,
    types: int = 95,
) -> Network:
    """DimeNet; its angle is the one at the end of the message, as in its code."""
    rbf = bessel(basis, cutoff, exponent)
    sbf = spherical(degrees, basis, cutoff, exponent, at="end")
    forms = {"angle": _bilinear(bilinear), "edge": _interaction(before_skip, after_skip)}
    return _network("DimeNet", rbf, sbf, forms, _output(output_layers), types)


def dimenet_plus_plus(
    *,
    interaction: int = 64,
    basis_embedding: int = 8,
    output_embedding: int = 256,
    degrees: int = 7,
    basis: int = 6,
    cutoff: float = 5.0,
    exponent: int = 5,
    before_skip: int = 1,
    after_skip: int = 2,
    output_layers: int = 3,
    types: int = 95,
) -> Network:
    """DimeNet++; its angle is the one at the vertex, between the directions of the messages."""
    rbf = bessel(basis, cutoff, exponent)
    sbf = spherical(degrees, basis, cutoff, exponent, at="vertex")
    forms = {
        "angle": _product(interaction, basis_embedding),
        "edge": _interaction(before_skip, after_skip, up=True),
    }
    output = _output(output_layers, output_embedding)
    return _network("DimeNet++", rbf, sbf, forms, output, types)


def _network(
    name: str,
    rbf: Measure,
    sbf: Measure,
    forms: dict[str, type[Form]],
    output: type[Form],
    types: int,
) -> Network:
    rays = [e.second.incoming, rbf.second.incoming]
    layer = Spec(name, angle=[*rays, sbf], edge=[e, reduce(a, "source")], forms=forms)
    head = Spec("read-out", edge=[e, rbf], node=[reduce(e)], forms={"edge": Weigh, "node": output})
    pooled = head.replace(graph=[reduce(v)], forms={**head.forms, "graph": Same})
    return Network(
        name,
        layer,
        first=[
            Spec("types", node=[v], forms={"node": embedding(types)}),
            Spec("messages", edge=[v.target, v.source, rbf], forms={"edge": Embed}),
        ],
        readout={"graph": pooled, "node": head},
        every_layer=True,
        types=types,
        aggregation="sum",
        hidden=128,
        layers=6 if name == "DimeNet" else 4,
        init="torch",
    )


class OrthogonalLinear(nn.Linear):
    """A linear map that starts orthogonal, scaled as by Glorot, with a bias of 0."""

    def reset_parameters(self) -> None:
        """Re-initialise all weights."""
        super().reset_parameters()
        glorot_orthogonal(self.weight, scale=2.0)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class Embed(Form):
    """`swish(W [v_i, v_j, swish(W' rbf)])`."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, out, hidden)
        self.parts = [widths[0], widths[1], out]
        self.basis, self.linear = nn.Linear(widths[2], out), nn.Linear(sum(self.parts), out)

    def home(self, *values: Tensor) -> Sequence[Tensor]:
        """The map of the concatenation, cut into one for each value."""
        target, source, basis = values
        of_target, of_source, of_basis = self.linear.weight.split(self.parts, 1)
        basis = F.linear(F.silu(self.basis(basis)), of_basis, self.linear.bias)
        return F.linear(target, of_target), F.linear(source, of_source), basis

    def here(self, *values: Tensor) -> Tensor:
        """A message."""
        target, source, basis = values
        return F.silu(target + source + basis)


class Residual(nn.Module):
    """`x + swish(W' swish(W x))`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = OrthogonalLinear(width, width), OrthogonalLinear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """`[..., width] -> [..., width]`."""
        return x + F.silu(self.second(F.silu(self.first(x))))


def _bilinear(bilinear: int) -> type[Form]:
    class Bilinear(Form):
        """`sum_jl W_ijl (W' sbf)_j (swish(W'' e_kj) * W''' rbf_kj)_l`."""

        def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
            super().__init__(widths, out, hidden)
            self.message = OrthogonalLinear(widths[0], out)
            self.radial = OrthogonalLinear(widths[1], out, bias=False)
            self.angular = OrthogonalLinear(widths[2], bilinear, bias=False)
            self.weight = nn.Parameter(torch.empty(out, bilinear, out))
            nn.init.normal_(self.weight, std=2 / out)

        def reset_parameters(self) -> None:
            reset_parts(self)
            nn.init.normal_(self.weight, std=2 / self.out)

        def home(self, *values: Tensor) -> Sequence[Tensor | None]:
            message, radial, angular = values
            return F.silu(self.message(message)) * self.radial(radial), None, angular

        def here(self, *values: Tensor) -> Tensor:
            message, angular = values
            # two at a time: a path through three would depend on the number of angles
            outer = torch.einsum("wj,wl->wjl", self.angular(angular), message)
            return torch.einsum("wjl,ijl->wi", outer, self.weight)

        def total(self, grid: Grid, *values: Tensor) -> Tensor:
            message, angular = values
            weight = self.weight.transpose(0, 1)  # a map for each of the angular values
            return weigh(
                grid,
                self.angular(angular),
                message,
                lambda rows: F.linear(rows, weight.flatten(0, 1)).unflatten(1, weight.shape[:2]),
            )

    return Bilinear


def _product(interaction: int, basis_embedding: int) -> type[Form]:
    class Product(Form):
        """`swish(W (swish(W' e_kj) * W'' rbf_kj)) * W''' sbf`; two maps for each basis."""

        def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
            super().__init__(widths, interaction, hidden)
            self.message = OrthogonalLinear(widths[0], out)
            self.radial = nn.ModuleList(
                [
                    OrthogonalLinear(widths[1], basis_embedding, bias=False),
                    OrthogonalLinear(basis_embedding, out, bias=False),
                ]
            )
            self.angular = nn.ModuleList(
                [
                    OrthogonalLinear(widths[2], basis_embedding, bias=False),
                    OrthogonalLinear(basis_embedding, interaction, bias=False),
                ]
            )
            self.down = OrthogonalLinear(out, interaction, bias=False)

        def home(self, *values: Tensor) -> Sequence[Tensor | None]:
            message, radial, angular = values
            for linear in self.radial:
                radial = linear(radial)
            message = F.silu(self.message(message)) * radial
            return F.silu(self.down(message)), None, angular

        def here(self, *values: Tensor) -> Tensor:
            message, angular = values
            for linear in self.angular:
                angular = linear(angular)
            return message * angular

        def total(self, grid: Grid, *values: Tensor) -> Tensor:
            message, angular = values
            first, second = self.angular
            # the second map commutes with the sum over angles
            weight: Tensor = second.weight.T.contiguous()  # type: ignore[operator]
            return weigh(grid, first(angular), message, lambda rows: rows.unsqueeze(1) * weight)

    return Product


def _interaction(before: int, after: int, up: bool = False) -> type[Form]:
    class Interaction(Form):
        """The message plus its aggregated angle values, passed through residual layers."""

        def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
            super().__init__(widths, out, hidden)
            if not up and widths[1] != out:
                raise ValueError(
                    f"hidden: angles have width {widths[1]} and edges {out}; DimeNet adds them, so "
                    "give both the same"
                )
            self.message = OrthogonalLinear(widths[0], out)
            self.up = OrthogonalLinear(widths[1], out, bias=False) if up else None
            self.before = nn.ModuleList(Residual(out) for _ in range(before))
            self.linear = OrthogonalLinear(out, out)
            self.after = nn.ModuleList(Residual(out) for _ in range(after))

        def here(self, *values: Tensor) -> Tensor:
            message, angles = values
            if self.up is not None:
                angles = F.silu(self.up(angles))
            new = F.silu(self.message(message)) + angles
            for layer in self.before:
                new = layer(new)
            new = F.silu(self.linear(new)) + message
            for layer in self.after:
                new = layer(new)
            return new

    return Interaction


class Weigh(Form):
    """`e * (W rbf)`."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, widths[0], hidden)
        self.radial = OrthogonalLinear(widths[1], widths[0], bias=False)

    def here(self, *values: Tensor) -> Tensor:
        """A message."""
        return values[0] * self.radial(values[1])


def _output(layers: int, width: int | None = None) -> type[Form]:
    class Output(Form):
        """An MLP of a node's messages, with a wider inside if `width` is given."""

        def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
            super().__init__(widths, out, hidden)
            self.up = None if width is None else OrthogonalLinear(widths[0], width, bias=False)
            inside = width or widths[0]
            self.linears = nn.ModuleList(OrthogonalLinear(inside, inside) for _ in range(layers))
            self.last = nn.Linear(inside, out, bias=False)
            nn.init.zeros_(self.last.weight)

        def reset_parameters(self) -> None:
            reset_parts(self)
            nn.init.zeros_(self.last.weight)

        def here(self, *values: Tensor) -> Tensor:
            rows = values[0] if self.up is None else self.up(values[0])
            for linear in self.linears:
                rows = F.silu(linear(rows))
            return self.last(rows)

    return Output
