"""A block as a specification: for each domain, the sources that its update reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
        object.__setattr__(self, "inputs", tuple(_checked_input(s) for s in self.inputs))
        if sorted(self.order) != sorted(ORDER):
            raise ValueError(f"order: is {tuple(self.order)}; it has to have {', '.join(ORDER)}")
        self._check_updates("forms", self.forms)
        self._check_updates("after", self.after)
        for domain, form in self.forms.items():
            if not callable(form):
                raise TypeError(f"forms: {domain!r} is {form!r}; give a subclass of Form")
        for domain, after in self.after.items():
            if not isinstance(after, After):
                raise TypeError(f"after: {domain!r} is {after!r}; give After(...)")

    def _check_updates(self, field: str, domains: Iterable[str]) -> None:
        """Each of `domains` has an update."""
        updates = [domain for domain in DOMAINS if self[domain]]
        for domain in domains:
            if domain not in updates:
                known = ", ".join(map(repr, updates)) or "none"
                raise ValueError(
                    f"{field}: {self.name} has no update for {domain!r}; it has updates for {known}"
                )

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

    def without(self, domain: str) -> Spec:
        """A copy without the update of a domain, whose value stays as it is."""
        forms = {key: form for key, form in self.forms.items() if key != domain}
        after = {key: what for key, what in self.after.items() if key != domain}
        return self.but(forms=forms, after=after, **{domain: ()})

    def __str__(self) -> str:
        lines = [f"  {d}: {', '.join(map(repr, self[d]))}" for d in DOMAINS if self[d]]
        return "\n".join([self.name, *lines])


def _checked_input(source: Source) -> Source:
    """A source that nodes can start with, or a clear error."""
    _check_source(source, "inputs")
    plain = type(source) is Source or isinstance(source, Measure)
    if source.domain != "node" or source.place or not plain:
        raise ValueError(
            f"inputs: has {source}; nodes start with v and measures on nodes, such as position"
        )
    return source


def _check_source(source: Source, reader: str) -> None:
    """A source that can be compared with others."""
    if not isinstance(source, Source):
        raise TypeError(f"{reader}: reads {source!r}, which is not a source")
    try:
        hash(source)
    except TypeError as error:
        raise TypeError(
            f"{reader}: {source.name} cannot be compared with other inputs ({error}); give it "
            "functions that can be hashed, such as plain functions or frozen dataclasses"
        ) from None


def _checked(source: Source, reader: str) -> Source:
    """The source as `reader` reads it, or a clear error."""
    _check_source(source, reader)
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
