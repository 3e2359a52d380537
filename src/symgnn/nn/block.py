"""The block: an update per domain and a map of the coordinates, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import nn

from symgnn.geometry.symmetry import EVERYTHING, Symmetry
from symgnn.nn._engine.plan import lists_angles
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.derivation import narrowed
from symgnn.nn.form import After, Width
from symgnn.nn.inputs import VALUE_OF, Input, Reduction
from symgnn.nn.spec import Spec, inputs_read
from symgnn.nn.state import State
from symgnn.nn.update import Update


def used_steps(
    spec: Spec, map_reads: frozenset[str], wanted: frozenset[str]
) -> tuple[set[str], frozenset[str]]:
    """The steps of a block that are used, if only the values `wanted` are read after it.

    Unused updates are not built and do not affect the derived symmetry.

    Args:
        spec: The block.
        map_reads: What the coordinate map reads; empty if the coordinates stay.
        wanted: Which of v, e, a, u, x are read after the block.

    Returns:
        The steps, and the values that are read before the block.
    """
    steps: set[str] = set()
    for step in reversed(spec.order):
        if step == "coordinates":
            if map_reads and "x" in wanted:
                steps.add(step)
                wanted |= map_reads
        elif spec[step] and VALUE_OF[step] in wanted:
            steps.add(step)
            wanted = (wanted - {VALUE_OF[step]}).union(*(each.needs for each in spec[step]))
            if step in spec.after and spec.after[step].residual:
                wanted |= {VALUE_OF[step]}
            if spec.envelope is not None:
                wanted |= {"x"}
    return steps, wanted


def with_after(
    spec: Spec, residual: bool, norm: bool, old: Mapping[str, int], new: Mapping[str, int]
) -> Spec:
    """A specification whose updates are normalised, and add to their old value where it is as wide
    as the new one.

    Args:
        spec: The block.
        residual, norm: Which of the two.
        old, new: The widths of v, e, a and u before and after the block.
    """
    after = dict(spec.after)
    for domain, value in VALUE_OF.items():
        if spec[domain] and getattr(spec.forms.get(domain), "adds_old", domain not in spec.forms):
            known = after.get(domain, After())
            adds = known.residual or (residual and old[value] == new[value])
            after[domain] = replace(known, norm=known.norm or norm, residual=adds)
    return spec.replace(after=after) if residual or norm else spec


class Block(nn.Module):
    """A specification with its parameters.

    Args:
        spec: The inputs of each update.
        sizes: The widths of v, e, a and u before the block; 0 for a value that does not exist.
        out: The widths of the updated values.
        width: The sizes of the MLPs.
        aggregation: "sum", "mean" or "max" for each movement.
        coordinate_map: The map psi; None if the coordinates do not change.
        wanted: The values that are read after the block.
        dimension: The number of coordinates, if an update needs it.
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
        map_reads = coordinate_map.reads if coordinate_map is not None else frozenset()
        self.spec = spec
        self.steps, self.reads = used_steps(spec, map_reads, wanted)
        if "coordinates" in self.steps:
            wanted |= map_reads
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
                continue
            value = VALUE_OF[step]
            update = Update(
                step,
                spec[step],
                self.sizes,
                out[value],
                width,
                aggregation,
                dimension,
                spec.after.get(step),
                form=spec.forms.get(step),
                rows_read=value in wanted or self._rows_read(step, aggregation),
                envelope=spec.envelope,
            )
            self.updates[step], self.sizes[value] = update, update.out
        inputs = self.inputs
        #: Whether an update reads or makes values on angles.
        self.needs_angles = "angle" in self.updates or any(
            isinstance(each, Reduction) and each.of.domain == "angle" for each in inputs
        )
        #: Whether the angles have to be listed: sums of product form need their rays alone.
        self.lists_angles = lists_angles(self._updates())
        #: Whether an update computes something once for an edge and its reverse.
        self.uses_lines = any(update.plan.on_lines for update in self._updates())

    def _updates(self) -> list[Update]:
        return list(self.updates.values())  # type: ignore[arg-type]

    def _rows_read(self, step: str, aggregation: Mapping[str, str]) -> bool:
        """Whether a later step reads the result of this one other than by sums and means."""
        order = list(self.spec.order)
        for later in order[order.index(step) + 1 :]:
            if later == "coordinates" or later not in self.steps:
                continue
            for each in self.spec[later]:
                summed = isinstance(each, Reduction) and aggregation[each.movement(later)] != "max"
                if VALUE_OF[step] in each.needs and not summed:
                    return True
        return False

    def forward(self, state: State) -> State:
        """Update the state, in place, and return it."""
        for step in self.spec.order:
            if step == "coordinates":
                if self.map is not None:
                    self.map.move(state)
            elif step in self.updates:
                update = self.updates[step]
                if step == "edge" and self.map is not None:
                    self.map.before_edges(update, state)  # type: ignore[arg-type]
                setattr(state, VALUE_OF[step], update(state))
        return state

    @property
    def inputs(self) -> list[Input]:
        """All that the updates read."""
        return [each for update in self._updates() for each in update.inputs]

    @property
    def symmetry(self) -> Symmetry:
        """The symmetry that all inputs of the updates, and of a used map, have."""
        kept = EVERYTHING
        for each in self.inputs:
            kept &= each.keeps or EVERYTHING
        for update in self._updates():
            if update.envelope is not None:
                kept &= update.envelope.keeps
        return kept & self.map.keeps if self.map is not None else kept

    def reset_parameters(self) -> None:
        """Re-initialise all parameters."""
        for update in self._updates():
            update.reset_parameters()
        if self.map is not None:
            self.map.reset_parameters()


def symmetry_of(spec: Spec, blocks: Sequence[Block], coordinates: bool) -> Symmetry:
    """The symmetry of consecutive blocks, derived from their inputs and coordinate maps.

    Args:
        spec: That of the first block.
        blocks: All of them.
        coordinates: Whether coordinates come out, which have to be equivariant.
    """
    kept = EVERYTHING
    for block in blocks:
        kept &= block.symmetry
    for each in inputs_read(spec, blocks[0].reads):
        kept &= each.keeps or EVERYTHING
    # a common motion of all nodes goes unnoticed only by what does not see the origin
    if coordinates or "translation" not in kept:
        for block in blocks:
            kept &= block.map.commutes if block.map is not None else EVERYTHING
    maps = [block.map for block in blocks if block.map is not None]
    return narrowed(kept, maps, spec.scaling)
