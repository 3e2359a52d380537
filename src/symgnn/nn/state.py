"""The values of a graph at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn

from symgnn.geometry.symmetry import EVERYTHING
from symgnn.nn.chunks import Chunks
from symgnn.nn.fields import Field
from symgnn.nn.measuring import measure, measure_lines
from symgnn.nn.movements import move
from symgnn.nn.sources import VALUE_OF, Initial, Measure, Operator, Source
from symgnn.topology import Topology


@dataclass
class State:
    """The values of a graph or batch at one moment; None for a value that is not there."""

    topology: Topology
    x: Tensor  # [N, n], the coordinates up to `shift`
    v: Field | None = None
    e: Field | None = None
    a: Field | None = None
    u: Field | None = None
    chunks: Chunks | None = None  # where not everything may be in memory at once
    messages: Field | None = None  # the edge update on all pairs, for maps that read it
    start: tuple[Tensor, Tensor] | None = None  # centroid [G, n] and spread [G, 1], see max_growth
    given: Mapping[str, Field] = field(default_factory=dict)  # the values that came with the graph
    velocity: Tensor | None = None  # [N, n], for maps that read it
    modules: Mapping[Source, nn.Module] = field(default_factory=dict)  # of inputs with parameters
    measured: dict[Any, Any] = field(default_factory=dict)  # by measure, of the current coordinates
    at_edges: tuple[Tensor, Tensor] | None = None  # see `ends`
    # what coordinate maps have added to all nodes of a graph alike, [N, n] or [1, n]; kept apart
    # from x, because a large shift would take the digits of all distances away (see `_shifted`)
    shift: Tensor | None = None
    # what a map that takes the shift gave last: the coordinates, and their two parts, x and shift
    apart: tuple[Tensor, Tensor, Tensor | None] | None = None
    unit: Tensor | None = None  # [N, 1], with scaled coordinates: 0 in graphs without extent, or 1

    def get(self, source: Source) -> Field:
        """A value, or a measure of the current coordinates, each computed once."""
        if isinstance(source, Measure):
            home = source.home
            if home not in self.measured:
                self.measured[home] = measure(self.function(source), self.seen_by(source))
            found: Field = self.measured[home]
            return found
        if isinstance(source, Operator):
            assert self.v is not None
            operate = source.function if source.make is None else self.modules[source.home]
            return Field(self.topology, "node", operate(self.v.rows, self.seen_by(source)))
        name = VALUE_OF[source.domain]
        value = self.given.get(name) if isinstance(source, Initial) else getattr(self, name)
        assert isinstance(value, Field), f"{source} is read but not there"
        return value

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """The coordinates of the source and the target of each edge `[E, n]`."""
        if self.at_edges is None:
            edges = self.topology.edges
            self.at_edges = move(self.x, edges.far), move(self.x, edges.near)
        return self.at_edges

    @property
    def rays(self) -> Tensor:
        """From the target of each edge to its source `[E, n]`."""
        source, target = self.ends
        return source - target

    def on_lines(self, source: Measure) -> Tensor:
        """A measure on edges that is the same both ways, once for each line `[L, w]`."""
        key = (source, "on lines")
        if key not in self.measured:
            x = self.seen_by(source).x
            self.measured[key] = measure_lines(self.function(source), x, self.topology)
        found: Tensor = self.measured[key]
        return found

    def function(self, source: Measure) -> Measure:
        """The measure with the function that its module is, where it has parameters."""
        if source.make is None:
            return source
        module = self.modules[source.home]
        return replace(source, function=module, per_ray=getattr(module, "per_ray", None))

    @property
    def position(self) -> Tensor:
        """The coordinates themselves `[N, n]`."""
        return self.x if self.shift is None else self.x + self.shift

    def seen_by(self, source: Source) -> State:
        """The state with the coordinates that a source reads: without the common shift, if
        translations do not change the source.
        """
        if self.shift is None or "translation" in (source.keeps or EVERYTHING):
            return self
        return replace(self, x=self.position, shift=None, measured={}, at_edges=None)

    def move(self, x: Tensor, shift: Tensor | None = None) -> None:
        """New coordinates: what was measured on the old ones is forgotten."""
        self.x, self.shift, self.measured, self.at_edges = x, shift, {}, None
