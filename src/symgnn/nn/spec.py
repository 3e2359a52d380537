"""Specifications: the inputs of each update of a block, and the blocks of a network."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from symgnn.nn.form import After, Form
from symgnn.nn.inputs import DOMAINS, PLACES, Input, Measure, Operator, Reduction, e, reduce, v

if TYPE_CHECKING:
    from symgnn.nn.coordinate_maps import CoordinateMap

#: The order of the steps of a block.
ORDER = ("angle", "edge", "node", "coordinates", "graph")


@dataclass(frozen=True)
class Spec:
    """The inputs of each update of a block; an update without inputs does not change its value.

    Args:
        name: The name of the block.
        angle, edge, node, graph: The inputs of each update.
        inputs: The initial values of the nodes, in the first layer.
        scaling: If set, the coordinates of each graph are multiplied by
            `scaling / (its longest edge)` before the first layer.
        forms: For updates other than an MLP, the function that creates phi,
            `form(widths, out, hidden)` (:class:`symgnn.nn.Form`).
        after: Operations on the result of an update (:class:`symgnn.nn.After`): activation,
            normalisation, gate, residual.
        order: The order of the updates.
        envelope: A measure on edges; edge values are multiplied by it, and angle values by its
            product for both rays (:mod:`symgnn.nn.envelopes`).

    Example:
        >>> from symgnn.nn.inputs import d2, e, v
        >>> spec = symgnn.nn.Spec(
        ...     "mine", edge=[v.source, v.target, d2], node=[v, symgnn.nn.reduce(e)]
        ... )
        >>> print(symgnn.nn.build(spec).symmetry)
        E(n), torsions, flexes, permutations
    """

    name: str
    angle: Sequence[Input] = ()
    edge: Sequence[Input] = ()
    node: Sequence[Input] = ()
    graph: Sequence[Input] = ()
    inputs: Sequence[Input] = field(default=(v,))
    scaling: float | None = None
    forms: Mapping[str, Callable[..., Form]] = field(default_factory=dict)
    after: Mapping[str, After] = field(default_factory=dict)
    order: Sequence[str] = ORDER
    envelope: Measure | None = None

    def __post_init__(self) -> None:
        for domain in DOMAINS:
            checked = tuple(_checked(each, domain) for each in getattr(self, domain))
            object.__setattr__(self, domain, checked)
        object.__setattr__(self, "inputs", tuple(_checked_start(each) for each in self.inputs))
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

    def __getitem__(self, domain: str) -> tuple[Input, ...]:
        return tuple(getattr(self, domain))

    @property
    def reads(self) -> frozenset[str]:
        """Which of v, e, a, u, x its updates read."""
        return frozenset().union(*(each.needs for each in self.all_inputs))

    @property
    def all_inputs(self) -> list[Input]:
        """The inputs of the nodes at the start and of all updates, in order."""
        return [*self.inputs, *(each for domain in DOMAINS for each in self[domain])]

    def replace(self, **changes: Any) -> Spec:
        """A copy with some fields changed, such as `AGN.replace(name="mine", edge=[...])`."""
        return dataclasses.replace(self, **changes)

    def reading(self, other: Mapping[Input, Input]) -> Spec:
        """A copy in which some inputs are replaced by others, at all places and in reductions."""

        def changed(given: Input) -> Input:
            if isinstance(given, Reduction):
                return dataclasses.replace(given, of=other.get(given.of, given.of))
            found = other.get(given.home)
            return given if found is None else found.at(given.place)

        names = (*DOMAINS, "inputs")
        return self.replace(**{name: [*map(changed, getattr(self, name))] for name in names})

    def without(self, domain: str) -> Spec:
        """A copy without the update of a domain, whose values then do not change."""
        forms = {key: form for key, form in self.forms.items() if key != domain}
        after = {key: what for key, what in self.after.items() if key != domain}
        return self.replace(forms=forms, after=after, **{domain: ()})

    def __str__(self) -> str:
        lines = [f"  {d}: {', '.join(map(repr, self[d]))}" for d in DOMAINS if self[d]]
        return "\n".join([self.name, *lines])


def _checked_start(given: Input) -> Input:
    """An input that nodes can start with, or a clear error."""
    _check_input(given, "inputs")
    plain = type(given) is Input or isinstance(given, Measure)
    if given.domain != "node" or given.place or not plain:
        raise ValueError(
            f"inputs: has {given}; nodes start with v and measures on nodes, such as position"
        )
    return given


def _check_input(given: Input, reader: str) -> None:
    """An input that can be compared with others."""
    if not isinstance(given, Input):
        raise TypeError(f"{reader}: reads {given!r}, which is not an input; see symgnn.nn.inputs")
    try:
        hash(given)
    except TypeError as error:
        raise TypeError(
            f"{reader}: {given.name} cannot be compared with other inputs ({error}); give it "
            "functions that can be hashed, such as plain functions or frozen dataclasses"
        ) from None


def _checked(given: Input, reader: str) -> Input:
    """The input as the update of the domain `reader` reads it, or a clear error."""
    _check_input(given, reader)
    if isinstance(given, Reduction):
        fine, coarse = DOMAINS.index(given.of.domain), DOMAINS.index(reader)
        ends = ("source", "target") if (given.of.domain, reader) == ("angle", "edge") else ("",)
        if fine >= coarse:
            raise ValueError(
                f"{reader}: cannot read {given}: only values of a finer domain are reduced"
            )
        if given.place not in ends:
            raise ValueError(
                f"{reader}: reads {given}; write reduce({given.of.name}, 'source') or 'target'"
                if ends != ("",)
                else f"{reader}: reads {given} at {given.place!r}; remove the place"
            )
        return dataclasses.replace(given, domain=reader)
    places = PLACES.get((given.domain, reader))
    if places is None:
        raise ValueError(
            f"{reader}: cannot read {given}, which lives on the {given.domain} domain; "
            f"write reduce({given.name})"
        )
    if given.place not in places:
        right = " or ".join(f"{given.name}.{p}" if p else given.name for p in places)
        raise ValueError(f"{reader}: reads {given}; write {right}")
    return given


def width_of(given: Input, sizes: Mapping[str, int], dimension: int | None) -> int:
    """How many numbers an input has, given the sizes of the values; 0 if it is absent."""
    if isinstance(given, Reduction):
        return width_of(given.of, sizes, dimension)
    if isinstance(given, Operator) and given.width_in is not None:
        return given.width_in(sizes, dimension)
    if not isinstance(given, Measure):
        return sizes[given.reads]
    if given.width is not None:
        return given.width
    if dimension is None:
        raise ValueError(
            f"dimension: is missing, but this network reads {given}, whose width is the number of "
            "coordinates; pass dimension=3, for instance"
        )
    return dimension


def first_sizes(spec: Spec, features: Mapping[str, int], dimension: int | None) -> dict[str, int]:
    """The width of each value at the start (v, e, a, u) and as it came (v0, e0, a0, u0)."""
    sizes = {value: features.get(value, 0) for value in "veau"}
    sizes["v"] = sum(width_of(each, sizes, dimension) for each in spec.inputs) or 1
    return sizes | {f"{value}0": size for value, size in sizes.items()}


def inputs_read(spec: Spec, reads: frozenset[str]) -> tuple[Input, ...]:
    """The initial node inputs, if an update reads the initial node values."""
    return tuple(spec.inputs) if reads & {"v", "v0"} else ()


def check_inputs(spec: Spec, option: str, size: int) -> None:
    """Refuse node features, of width `size`, that are none of the inputs of the nodes."""
    if size and not any(type(each) is Input for each in spec.inputs):
        raise ValueError(
            f"{option}: is {size}, but the initial node values of {spec.name} do not include v; "
            f"remove {option}, or add v to inputs"
        )


#: The domain of the vectors of each vector task.
VECTOR_TASKS = {"node-vectors": "node", "graph-vectors": "graph"}
#: The weights of the rays, on edges, and of node vectors (positions, velocities), on nodes.
VECTOR_READOUT = Spec("vectors", edge=[v.source, v.target, e], node=[v])

#: The value that a task asks for; of vectors, the weights on edges.
ANSWERS = {"graph": "u", "node": "v", "edge": "e", "coordinates": "x"} | dict.fromkeys(
    VECTOR_TASKS, "e"
)

# what the nodes, edges or graphs of the last layer become, for each task
READOUTS: dict[str, Spec | None] = {
    "graph": Spec("graph", node=[v], graph=[reduce(v)]),
    "node": Spec("node", node=[v]),
    "edge": Spec("edge", edge=[v.source, v.target]),
    "coordinates": None,
}


@dataclass(frozen=True)
class Network:
    """The specifications of a whole network: first blocks, layers and read-out.

    Args:
        name: The name of the network.
        layer: The block that is repeated.
        first: Blocks that run once, before the layers.
        readout: For each task, the block that computes the outputs. If it has forms, the width of
            each is the number of outputs.
        every_layer: Whether there is also a read-out before each layer; the read-outs are added.
        types: If set, the number of node types: `data.z` has integers below it, such as atomic
            numbers.
        aggregation, coordinate_map, hidden, mlp_hidden, layers, init: Defaults of
            :func:`symgnn.nn.build` for this network.
    """

    name: str
    layer: Spec
    first: Sequence[Spec] = ()
    readout: Mapping[str, Spec | None] = field(default_factory=lambda: READOUTS)
    every_layer: bool = False
    types: int = 0
    aggregation: str | Mapping[str, str] = "sum"
    coordinate_map: str | CoordinateMap = "identity"
    hidden: int | Mapping[str, int] = 32
    mlp_hidden: int | Mapping[str, int] | None = None
    layers: int = 2
    init: str = "variance"

    @property
    def start(self) -> Spec:
        """The specification of the first block."""
        return self.first[0] if self.first else self.layer

    def readout_of(self, task: str) -> Spec | None:
        """The read-out of a task; for vectors the default one, if the network has none of its own.

        Raises:
            ValueError: if the network has no read-out for the task.
        """
        known = {**dict.fromkeys(VECTOR_TASKS, VECTOR_READOUT), **self.readout}
        if task not in known:
            raise ValueError(
                f"task: {self.name} has no read-out for {task!r}; choose from {', '.join(known)}"
            )
        return known[task]

    def reading(self, other: Mapping[Input, Input]) -> Network:
        """A copy in which some inputs are replaced by others."""
        first = [spec.reading(other) for spec in self.first]
        return dataclasses.replace(self, first=first, layer=self.layer.reading(other))

    @property
    def reads(self) -> frozenset[str]:
        """Which of v, e, a, u, x are read from the input."""
        return frozenset().union(*(spec.reads for spec in (*self.first, self.layer)))


def network_of(spec: Spec | Network) -> Network:
    """A network, of the layers of a specification."""
    return spec if isinstance(spec, Network) else Network(spec.name, spec)
