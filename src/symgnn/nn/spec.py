"""A block as a specification: for each domain, the sources that its update reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symgnn.nn.forms import After, Form
from symgnn.nn.sources import DOMAINS, PLACES, Measure, Reduction, Source, v

#: The order in which a block works; an update reads what is current when its turn comes.
ORDER = ("angle", "edge", "node", "coordinates", "graph")


@dataclass(frozen=True)
class Spec:
    """What each update of a block reads; an empty one is left out, and its value stays as it is.

    `inputs` is what the nodes start with in the first layer, and `scaling`, if set, multiplies
    the coordinates of each graph by `scaling / (its longest edge)` before the first layer.

    Phi is an MLP over the sources of an update, unless `forms` makes something else of them
    (:class:`symgnn.nn.Form`); `after` says what is done to its result (:class:`symgnn.nn.After`:
    an activation, a gate, the old value added). `order` is that of the updates.
    """

    name: str
    angle: Sequence[Source] = ()
    edge: Sequence[Source] = ()
    node: Sequence[Source] = ()
    graph: Sequence[Source] = ()
    inputs: Sequence[Source] = field(default=(v,))
    scaling: float | None = None
    forms: Mapping[str, Callable[..., Form]] = field(default_factory=dict)
    after: Mapping[str, After] = field(default_factory=dict)
    order: Sequence[str] = ORDER

    def __post_init__(self) -> None:
        for domain in DOMAINS:
            sources = tuple(_checked(source, domain) for source in getattr(self, domain))
            object.__setattr__(self, domain, sources)
        object.__setattr__(self, "inputs", tuple(_checked(s, "node") for s in self.inputs))
        if sorted(self.order) != sorted(ORDER):
            raise ValueError(f"order: is {tuple(self.order)}; it has to have {', '.join(ORDER)}")
        for name in (*self.forms, *self.after):
            if not getattr(self, name, ()):
                raise ValueError(f"{self.name}: has a form for {name!r}, which reads nothing")
        named: dict[str, Measure] = {}
        for source in self.sources:
            of = source.of if isinstance(source, Reduction) else source
            if isinstance(of, Measure) and named.setdefault(of.name, of).function != of.function:
                raise ValueError(f"{self.name}: two different measures are called {of.name!r}")

    def __getitem__(self, domain: str) -> tuple[Source, ...]:
        return tuple(getattr(self, domain))

    @property
    def reads(self) -> frozenset[str]:
        """Which of v, e, a, u, x its updates read."""
        return frozenset().union(*(source.needs for source in self.sources))

    @property
    def sources(self) -> list[Source]:
        """All that is read, in order."""
        return [*self.inputs, *(source for domain in DOMAINS for source in self[domain])]

    def but(self, **changes: object) -> Spec:
        """A copy with some fields changed, such as `AGN.but(name="mine", edge=[...])`."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        lines = [f"  {d}: {', '.join(map(repr, self[d]))}" for d in DOMAINS if self[d]]
        return "\n".join([self.name, *lines])


def _checked(source: Source, reader: str) -> Source:
    """The source as `reader` reads it, or a clear error."""
    if not isinstance(source, Source):
        raise TypeError(f"{reader}: reads {source!r}, which is not a source")
    if isinstance(source, Reduction):
        fine, coarse = DOMAINS.index(source.of.domain), DOMAINS.index(reader)
        ends = ("source", "target") if (source.of.domain, reader) == ("angle", "edge") else ("",)
        if fine >= coarse:
            raise ValueError(
                f"{reader}: cannot read {source}: only values of a finer domain are reduced"
            )
        if source.place not in ends:
            raise ValueError(
                f"{reader}: reads {source}; write reduce({source.of.name}, 'source') or 'target'"
                if ends != ("",)
                else f"{reader}: reads {source} at {source.place!r}; leave the place out"
            )
        return replace(source, domain=reader)
    places = PLACES.get((source.domain, reader))
    if places is None:
        raise ValueError(
            f"{reader}: cannot read {source}, which lives on the {source.domain} domain; "
            f"write reduce({source.name})"
        )
    if source.place not in places:
        right = " or ".join(f"{source.name}.{p}" if p else source.name for p in places)
        raise ValueError(f"{reader}: reads {source}; write {right}")
    return source


def width_of(source: Source, sizes: dict[str, int], dimension: int | None) -> int:
    """How many numbers a source has, given the sizes of the values; 0 if it is absent."""
    if isinstance(source, Reduction):
        return width_of(source.of, sizes, dimension)
    if isinstance(source, Measure):
        if source.width is None and dimension is None:
            raise ValueError(
                f"dimension: {source.name} is read, so give the number of coordinates, "
                "such as dimension=3"
            )
        return dimension if source.width is None else source.width  # type: ignore[return-value]
    return sizes[source.reads]
