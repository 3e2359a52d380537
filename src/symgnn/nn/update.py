"""An update of a block: the new values of a domain, computed from the inputs of its specification.

Read :meth:`Update.reference` first: it is the definition. An engine may compute the same faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.graphs import Topology
from symgnn.nn._engine.plan import plan_of
from symgnn.nn.envelopes import message_weights
from symgnn.nn.form import MLP, After, Form, Width
from symgnn.nn.inputs import VALUE_OF, Input, Measure, Reduction
from symgnn.nn.parameters import reset_all
from symgnn.nn.spec import width_of
from symgnn.nn.state import State, Values, as_column, reduce_rows


class Update(nn.Module):
    """A form phi over those of its inputs that are there.

    Args:
        domain: "angle", "edge", "node" or "graph".
        inputs: What it reads, as in a :class:`symgnn.nn.Spec`.
        sizes: The width of each value; 0 where it is not there.
        out: The width of the result.
        width: The sizes of its MLP.
        aggregation: "sum", "mean" or "max" for each movement, such as "e->v".
        dimension: The number of coordinates, where it is needed.
        after: What is done to the result of phi.
        form: Makes phi, `form(widths, out, hidden)`; an MLP if not given.
        last_bias: Whether the last map of the MLP has a bias.
        rows_read: Whether the result is read other than by sums and means.
        envelope: A measure of edges by which values of edges and angles are multiplied. The last
            map of the MLP then has no bias, so that it commutes with the multiplication.
    """

    def __init__(
        self,
        domain: str,
        inputs: Sequence[Input],
        sizes: Mapping[str, int],
        out: int,
        width: Width,
        aggregation: Mapping[str, str],
        dimension: int | None = None,
        after: After | None = None,
        *,
        form: Callable[..., Form] | None = None,
        last_bias: bool = True,
        rows_read: bool = True,
        envelope: Measure | None = None,
    ) -> None:
        super().__init__()
        widths = [width_of(each, sizes, dimension) for each in inputs]
        there = [(each, w) for each, w in zip(inputs, widths, strict=True) if w]
        self.domain, self.rows_read, self.depth = domain, rows_read, width.depth
        self.envelope = envelope if domain in ("edge", "angle") else None
        last_bias = last_bias and self.envelope is None
        self.inputs = [each for each, _ in there]
        self.aggregation, self.after = dict(aggregation), after or After()
        widths = [w for _, w in there]
        self.phi: Form
        if form is None:
            self.phi = MLP(
                widths,
                out,
                width.of(domain),
                layers=width.layers,
                dropout=width.dropout,
                last_bias=last_bias,
                init=width.init,
                gain=width.gain / (math.sqrt(width.depth) if self.after.residual else 1.0),
            )
        else:
            made = (widths, out, width.of(domain))
            missing = [each for each in inputs if each not in self.inputs]
            if getattr(form, "takes_update", False):
                self.phi = form(*made, update=self, width=width)
            elif missing:
                raise ValueError(f"{domain}: reads {missing[0]}, which this layer does not have")
            else:
                self._check_both_ways()
                self.phi = form(*made)
        self.out, old = self.phi.out, sizes[VALUE_OF[domain]]
        self.norm = nn.LayerNorm(self.out) if self.after.norm else None
        self.gate = nn.Linear(self.out, 1) if self.after.gate else None
        if self.after.residual and old != self.out:
            raise ValueError(
                f"{domain}: its old value, of width {old}, cannot be added to the new one, of "
                f"width {self.out}"
            )
        self._divisors: dict[Reduction, str] = {}
        for each in self.inputs:
            if isinstance(each, Reduction) and self.how(each) == "sum":
                terms = width.terms.get(f"{each.of.domain}->{domain}")
                if terms is not None:
                    name = self._divisors[each] = f"terms_{len(self._divisors)}"
                    self.register_buffer(name, torch.tensor(float(terms)))
        self.plan = plan_of(self)

    def forward(self, state: State) -> Values:
        """The new value, computed by the engine of the state."""
        return state.engine.update(self, state)

    def reference(self, state: State) -> Values:
        """The new value: the first half of phi where the inputs live, gather, the second half.

        For an MLP this is the MLP of the concatenation of all inputs, gathered to the domain.
        """
        rows = self.phi.here(*self._first_half(state)).expand(state.topology.size(self.domain), -1)
        ungated = self.activated(rows)
        old = getattr(state, VALUE_OF[self.domain]) if self.after.residual else None
        weight = self.weights(state)
        rows = self.gated(ungated, None if old is None else old.rows, weight)
        return Values(state.topology, self.domain, rows, ungated)

    def calibrate(self, state: State) -> None:
        """Rescale the weights of phi so that, on this graph, its results have the size of 1."""
        self.phi.prepare(*(self._at_home(each, state) for each in self.inputs))
        self.phi.calibrate(*self._first_half(state))

    def _first_half(self, state: State) -> list[Tensor]:
        """The first half of phi where the inputs live, gathered `[rows of the update, any]`."""
        at_home = self.phi.home(*(self._at_home(each, state) for each in self.inputs))
        return [
            self._gathered(each, rows, state.topology)
            for each, rows in zip(self.inputs, at_home, strict=True)
            if rows is not None
        ]

    def _at_home(self, given: Input, state: State) -> Tensor:
        """An input where it lives `[rows of its domain, w]`; a reduction where it is read."""
        if isinstance(given, Reduction):
            rows = self.reduced(given, state)
        elif self.lives_on_rays(given):
            assert isinstance(given, Measure)
            function, _ = state.function(given)
            rows = as_column(function(*state.seen_by(given).ray_ends))
        else:
            rows = state.get(given.home).rows
        return self.typed(rows)

    def _gathered(self, given: Input, rows: Tensor, topology: Topology) -> Tensor:
        """Rows of an input where it lives as the update reads them `[rows of the update, w]`."""
        if given.domain == self.domain:
            return rows
        if given.domain == "edge":  # read on the rays of angles
            place, _, incoming = given.place.partition(" ")
            if not self.lives_on_rays(given):
                rows = edges_to_rays(rows, topology, bool(incoming))
            return rows.index_select(0, topology.angle_rays[int(place == "second")])
        return rows.index_select(0, topology.index_in(self.domain, given.domain, given.place))

    def reduced(self, given: Reduction, state: State) -> Tensor:
        """A reduction that it reads `[rows, w]`; a sum over the average number of its terms."""
        return self.scaled(
            given, state.get(given.of).reduce(self.domain, self.how(given), given.place)
        )

    def scaled(self, given: Reduction, rows: Tensor) -> Tensor:
        """The rows of a reduction, a sum over the average number of its terms."""
        divisor = self._divisors.get(given)
        return rows if divisor is None else rows / getattr(self, divisor)

    def activated(self, rows: Tensor) -> Tensor:
        """The result of phi `[rows, out]` up to the gate: :class:`After`'s activation and norm."""
        rows = F.silu(rows) if self.after.activation else rows
        return rows if self.norm is None else self.norm(rows)

    def gated(self, rows: Tensor, old: Tensor | None, weight: Tensor | None = None) -> Tensor:
        """The new value `[rows, out]`: the gate, the envelope, and the old value added."""
        if self.gate is not None:
            rows = rows * torch.sigmoid(self.gate(rows))
        if weight is not None:
            rows = rows * weight.to(rows.dtype)
        return rows if old is None else rows + old

    def weights(self, state: State) -> Tensor | None:
        """The envelope of each row of the result `[rows, 1]`; None without."""
        if self.envelope is None:
            return None
        return message_weights(self.envelope, self.domain, state)

    def lives_on_rays(self, given: Input) -> bool:
        """Whether an input is a measure on edges that is taken on the rays of the angles.

        Not where it is that of the incoming edge; nor for forms other than MLPs, which may put it
        together with edge values before they are gathered.
        """
        return (
            isinstance(given, Measure)
            and (given.domain, self.domain) == ("edge", "angle")
            and not given.place.endswith(" in")
            and (self.is_mlp or self.phi.on_rays)
        )

    @property
    def is_mlp(self) -> bool:
        """Whether phi is an MLP, with the two halves of one."""
        phi = type(self.phi)
        return issubclass(phi, MLP) and (phi.home, phi.here) == (MLP.home, MLP.here)

    def how(self, given: Reduction) -> str:
        """The aggregation of a reduction that it reads: "sum", "mean" or "max"."""
        return self.aggregation[given.movement(self.domain)]

    def typed(self, rows: Tensor) -> Tensor:
        """Rows in the type of the weights of phi: coordinates may have another one."""
        like = next(self.phi.parameters(), None)
        return rows if like is None or not rows.is_floating_point() else rows.to(like.dtype)

    def reset_parameters(self) -> None:
        """Re-initialise all weights."""
        reset_all(self)

    def _check_both_ways(self) -> None:
        """A form reads edges on the rays of angles, in either direction."""
        for given in self.inputs:
            if (
                isinstance(given, Measure)
                and (given.domain, self.domain) == ("edge", "angle")
                and not given.both_ways
                and not given.place.endswith(" in")
            ):
                raise ValueError(
                    f"angle: a form reads {given}, which differs between an edge and its reverse; "
                    f"write {given}.incoming, or make the measure with both_ways=True if it does "
                    "not"
                )


def edges_to_rays(rows: Tensor, topology: Topology, incoming: bool) -> Tensor:
    """Edge rows on the rays of the angles `[E, w] -> [R, w]`; the mean of parallel edges.

    A ray (i, j) reads the edge i -> j, or j -> i where there is none; with `incoming`, it reads the
    edge j -> i, and 0 where there is none.
    """
    if incoming:
        mean = reduce_rows(rows, topology.rays_of_edges("target"), topology.num_rays + 1, "mean")
        return mean[:-1].to(rows.dtype)
    assert topology.ray_edge is not None
    edges = rows.index_select(0, topology.ray_edge.flatten())
    if topology.ray_edge_weight is None:
        return edges
    edges = edges.view(*topology.ray_edge.shape, rows.shape[-1])
    return (edges * topology.ray_edge_weight.unsqueeze(-1).to(rows.dtype)).sum(1)
