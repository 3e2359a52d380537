"""The block: an update per domain and a map of the coordinates, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from torch import nn

from symgnn.geometry.symmetry import EVERYTHING, Symmetry
from symgnn.nn.coordinate_maps import CoordinateMap, all_pairs_state
from symgnn.nn.form_update import FormUpdate
from symgnn.nn.inputs import inputs_read
from symgnn.nn.sources import DOMAINS, VALUE_OF, Reduction, Source
from symgnn.nn.spec import Spec
from symgnn.nn.state import State
from symgnn.nn.update import Update, Width


def live(
    spec: Spec, moves: frozenset[str], wanted: frozenset[str]
) -> tuple[set[str], frozenset[str]]:
    """Which steps of a block matter, if only the values `wanted` are read after it.

    `moves` is what the coordinate map reads (nothing: the coordinates stay). Gives the steps and
    the values wanted before the block. What nobody reads is not computed, has no parameters and
    takes no symmetry away.
    """
    steps: set[str] = set()
    for step in reversed(spec.order):
        if step == "coordinates":
            if moves and "x" in wanted:
                steps.add(step)
                wanted |= moves
        elif spec[step] and VALUE_OF[step] in wanted:
            steps.add(step)
            wanted = (wanted - {VALUE_OF[step]}).union(*(s.needs for s in spec[step]))
            if step in spec.after and spec.after[step].residual:
                wanted |= {VALUE_OF[step]}
    return steps, wanted


class Block(nn.Module):
    """A specification with its parameters.

    `sizes` are the widths of v, e, a and u before the block (0: not there) and `out` the widths
    that the updates give them. `wanted` names the values that are read after the block.
    """

    def __init__(
        self,
        spec: Spec,
        sizes: Mapping[str, int],
        out: Mapping[str, int],
        width: Width,
        aggregation: Mapping[str, str],
        coordinate_map: CoordinateMap | None = None,
        wanted: frozenset[str] = frozenset("veaux"),
        dimension: int | None = None,
    ) -> None:
        super().__init__()
        moves = coordinate_map.reads if coordinate_map is not None else frozenset()
        self.spec = spec
        self.steps, self.reads = live(spec, moves, wanted)
        kept = wanted | (moves if "coordinates" in self.steps else frozenset())
        self.keep = {domain: VALUE_OF[domain] in kept for domain in DOMAINS}
        self.sizes = dict(sizes)
        self.updates = nn.ModuleDict()
        self.map: CoordinateMap | None = None
        for step in spec.order:
            if step not in self.steps:
                continue
            if step == "coordinates":
                assert coordinate_map is not None
                coordinate_map.make(self.sizes, width, spec, dimension)
                self.map = coordinate_map
            else:
                value = VALUE_OF[step]
                form = spec.forms.get(step)
                make = Update if form is None else partial(FormUpdate, form)
                update = make(
                    step,
                    spec[step],
                    self.sizes,
                    out[value],
                    width,
                    aggregation,
                    dimension,
                    spec.after.get(step),
                )
                self.updates[step], self.sizes[value] = update, update.out

    def forward(self, state: State) -> State:
        """Update the state, in place, and give it back."""
        for step in self.spec.order:
            if step == "coordinates":
                if self.map is not None:
                    self.map.move(state)
            elif step in self.updates:
                if step == "edge" and self.map is not None and self.map.all_pairs:
                    state.messages = self.updates[step](all_pairs_state(state))
                value = self.updates[step](state, self.keep[step])
                setattr(state, VALUE_OF[step], value)
        return state

    @property
    def needs_angles(self) -> bool:
        """Whether an update reads or makes values on angles."""
        return "angle" in self.updates or any(
            isinstance(source, Reduction) and source.of.domain == "angle" for source in self.sources
        )

    @property
    def uses_lines(self) -> bool:
        """Whether an update works once for an edge and its reverse."""
        return any(isinstance(u, FormUpdate) and u.on_lines for u in self.updates.values())

    @property
    def sources(self) -> list[Source]:
        """All that the updates read."""
        return [s for update in self.updates.values() for s in update.sources]  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for update in self.updates.values():
            update.reset_parameters()  # type: ignore[operator]
        if self.map is not None:
            self.map.reset_parameters()

    @property
    def symmetry(self) -> Symmetry:
        """What the sources that are read, and the map where it is read, are invariant to."""
        kept = EVERYTHING
        for source in self.sources:
            kept &= source.keeps or EVERYTHING
        return kept & self.map.keeps if self.map is not None else kept


def symmetry_of(spec: Spec, blocks: Sequence[Block], coordinates: bool) -> Symmetry:
    """What blocks in a row are invariant to, from what they read; with `coordinates`, what those
    that come out are equivariant to as well.
    """
    kept = EVERYTHING
    for block in blocks:
        kept &= block.symmetry
    for source in inputs_read(spec, blocks[0].reads):
        kept &= source.keeps or EVERYTHING
    # a common motion of all nodes goes unnoticed only by what does not see the origin
    if coordinates or "translation" not in kept:
        for block in blocks:
            kept &= block.map.commutes if block.map is not None else EVERYTHING
    # what happens to scaled coordinates does not depend on their scale, and is scaled back
    return kept if spec.scaling is None else kept | Symmetry(["dilation"])
