"""The values of a graph at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from symgnn.nn.fields import Field, measure
from symgnn.nn.sources import VALUE_OF, Measure, Source
from symgnn.topology import Topology


@dataclass
class State:
    """The values of a graph or batch at one moment; None for a value that is not there."""

    topology: Topology
    x: Tensor  # [N, n]
    v: Field | None = None
    e: Field | None = None
    a: Field | None = None
    u: Field | None = None
    chunk: int | None = None  # how many angles may be in memory at once
    messages: Field | None = None  # the edge update on all pairs, for maps that read it
    start: tuple[Tensor, Tensor] | None = None  # centroid [G, n] and spread [G, 1], see max_growth
    measured: dict[str, Field] = field(default_factory=dict)

    def get(self, source: Source) -> Field:
        """A value, or a measure of the current coordinates, each computed once."""
        if isinstance(source, Measure):
            if source.name not in self.measured:
                self.measured[source.name] = measure(source, self.x, self.topology, self.chunk)
            return self.measured[source.name]
        value = getattr(self, VALUE_OF[source.domain])
        assert isinstance(value, Field), f"{source} is read but not there"
        return value

    def move(self, x: Tensor) -> None:
        """New coordinates: what was measured on the old ones is forgotten."""
        self.x, self.measured = x, {}
