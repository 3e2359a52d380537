"""An update whose phi is not an MLP but a form of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from symgnn.nn.angle_fields import AngleField
from symgnn.nn.fields import Field
from symgnn.nn.forms import After, Form
from symgnn.nn.measuring import edges_to_rays
from symgnn.nn.movements import move
from symgnn.nn.sources import Measure, Reduction, Source
from symgnn.nn.state import State
from symgnn.nn.update import Updating, Width
from symgnn.topology import Part, Topology


class FormUpdate(Updating):
    """An update whose phi is a :class:`Form`."""

    def __init__(
        self,
        form: Callable[..., Form],
        domain: str,
        sources: Sequence[Source],
        sizes: Mapping[str, int],
        out: int,
        width: Width,
        aggregation: Mapping[str, str],
        dimension: int | None = None,
        after: After | None = None,
    ) -> None:
        super().__init__(domain, sources, sizes, aggregation, dimension, after)
        if self.absent:
            raise ValueError(f"{domain}: reads {self.absent[0]}, which is not there")
        for source in self.sources:
            if (
                isinstance(source, Measure)
                and domain == "angle"
                and source.domain == "edge"
                and not source.both_ways
                and not source.place.endswith(" in")
            ):
                raise ValueError(
                    f"angle: a form reads {source}, which differs between an edge and its reverse; "
                    f"write {source}.incoming, or make the measure with both_ways=True if it does "
                    "not"
                )
        self.phi = form(self.widths, out, width.of(domain))
        self._finish(self.phi.out, sizes)
        own = [source for source in self.sources if source.domain == "edge"]
        #: Whether all that it reads of edges is the same for an edge and its reverse, so that its
        #: first half needs to be computed only once for both.
        self.on_lines = (
            domain == "edge"
            and type(self.phi).home is not Form.home
            and bool(own)
            and all(isinstance(source, Measure) and source.both_ways for source in own)
        )

    def value(self, state: State, keep: bool) -> Field:
        """The values where they live, lifted, and what the form makes of them."""
        topology, values = state.topology, [self._value(source, state) for source in self.sources]
        values = [self._typed(v) if isinstance(v, Tensor) else v for v in values]
        at_home = self.phi.home(*(v if isinstance(v, Tensor) else v.hidden for v in values))
        if self.domain != "angle":
            pairs = zip(self.sources, at_home, strict=True)
            rows = [self._lift(s, v, topology) for s, v in pairs if v is not None]
            return Field(topology, self.domain, self.phi.here(*rows))
        read: list[tuple[Callable[[Part], Tensor], str]] = []
        for source, value, moved in zip(self.sources, values, at_home, strict=True):
            if isinstance(value, AngleField):
                read.append((partial(self._rows_of, value), ""))
            elif moved is not None:
                rays, end = _to_rays(source, moved, topology)
                read.append((_cut(rays, state), end))

        def compute(part: Part) -> Tensor:
            rows = ((rows_of(part), end) for rows_of, end in read)
            return self.phi.here(*(move(r, getattr(part.pairs, e)) if e else r for r, e in rows))

        def total(part: Part) -> Tensor | None:
            if type(self.phi).total is Form.total or torch.compiler.is_compiling():
                return None
            return self.phi.total(topology.grid(part), *(r(part) for r, _ in read))

        like = state.x.new_empty(0, self.out)
        return AngleField(topology, compute, like, chunks=state.chunks, total=total)

    def _rows_of(self, value: AngleField, part: Part) -> Tensor:
        return self._typed(value.rows_of(part))

    def _typed(self, rows: Tensor) -> Tensor:
        """In the type of the form's weights: coordinates may have another one."""
        like = next(self.phi.parameters(), None)
        return rows if like is None or not rows.is_floating_point() else rows.to(like.dtype)

    def _value(self, source: Source, state: State) -> Tensor | AngleField:
        """A source where it lives."""
        if isinstance(source, Reduction):
            return self._reduced(source, state)
        if self.on_lines and source.domain == "edge" and state.topology.lines is not None:
            assert isinstance(source, Measure)
            return state.on_lines(source)
        value = state.get(source)
        return value if isinstance(value, AngleField) else value.rows

    def _lift(self, source: Source, rows: Tensor, topology: Topology) -> Tensor:
        """Rows where a source lives as nodes, edges or graphs read it."""
        if source.domain == self.domain:
            lines = topology.lines if self.on_lines else None
            return rows if lines is None else move(rows, lines)
        if source.domain == "graph":
            rows = move(rows, topology.graphs)
            return rows if self.domain == "node" else move(rows, topology.edges.near)
        ends = topology.edges
        return move(rows, ends.near if source.place == "target" else ends.far)


def _to_rays(source: Source, rows: Tensor, topology: Topology) -> tuple[Tensor, str]:
    """Rows where a source lives on the rays `[R, w]`, and which end of an angle reads them."""
    assert topology.rays is not None
    end = "far" if source.place.startswith("second") else "near"
    if source.domain == "graph":
        rows = move(rows, topology.graphs)
    if source.domain == "edge":
        return edges_to_rays(rows, topology, into=source.place.endswith(" in")), end
    ends = topology.rays
    return move(rows, ends.far if source.place in ("first", "second") else ends.near), end


def _cut(rays: Tensor, state: State) -> Callable[[Part], Tensor]:
    """Rows on rays, as the parts of the topology read them."""
    if state.chunks is None:
        return lambda part: rays
    table = state.chunks.table(rays)
    return lambda part: table.rows(part.cut.rays)
