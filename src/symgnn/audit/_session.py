"""A model on shapes near those of the data, and how far its outputs are from a symmetry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.audit._cases import Case, make_case
from symgnn.audit._inputs import MovingInput, followed
from symgnn.audit._isolation import seed_all
from symgnn.audit._outputs import Output
from symgnn.audit._representations import Undefined
from symgnn.audit._structures import Sample, deformed, joined
from symgnn.audit._targets import Target

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

Values = dict[str, Tensor]


@dataclass(frozen=True)
class Failure:
    """A call in which the model raised an error."""

    reason: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The error's class and the first line of its text."""
        text = str(error).strip().partition("\n")[0]
        return cls(f"{type(error).__name__}: {text}" if text else type(error).__name__)


@dataclass
class Session:
    """A target on shapes near those of the data, in one precision at a time."""

    target: Target
    samples: list[Sample]
    inputs: list[MovingInput]
    dtype: torch.dtype = torch.float64
    seed: int = 0
    outputs: list[Output] = field(default_factory=list)
    spread: dict[tuple[int, str], Tensor] = field(default_factory=dict)  # per channel
    constant: set[tuple[int, str]] = field(default_factory=set)  # which do not react
    jitter: dict[str, Tensor] = field(default_factory=dict)  # between equal calls, per channel
    coarse: dict[int, dict[str, Tensor]] = field(default_factory=dict)  # see coarse_rounding
    random: bool = False
    single: bool = False  # whether it computes in float32 inside, whatever it is given
    calls: int = 0
    axis: Sequence[float] | None = None  # that the model reads along; None for the last coordinate
    first: list[tuple[Values, Values]] = field(default_factory=list)  # of the same graph

    @property
    def n(self) -> int:
        """The dimension."""
        return int(self.samples[0].graphs[0].pos.size(1))

    def make_shapes(self, count: int = 7) -> None:
        """Deform each sample; the first shape is as given."""
        for sample in self.samples:
            generator = torch.Generator().manual_seed(self.seed)
            sample.shapes = [[followed(graph, self.inputs) for graph in sample.graphs]]
            for _ in range(count - 1):
                shape = [deformed(graph, generator) for graph in sample.graphs]
                sample.shapes.append([followed(graph, self.inputs) for graph in shape])

    def use(self, dtype: torch.dtype) -> None:
        """Measure in this precision from now on."""
        self.dtype = dtype
        self._known: dict[tuple[int, int], Values] = {}

    def run(self, data: Graph) -> Values:
        """The outputs for a graph or batch, with the same random numbers if it draws any."""
        self.calls += 1
        if self.random:
            seed_all(self.seed)
        return self.target(data, self.dtype)

    def attempt(self, data: Graph) -> Values | Failure:
        """The outputs, or the error that the model raises."""
        try:
            return self.run(data)
        except Exception as error:  # a model may raise anything
            return Failure.of(error)

    def at(self, sample: int, shape: int) -> Values:
        """The outputs for one of the shapes."""
        if (sample, shape) not in self._known:
            given = self.samples[sample]
            self._known[sample, shape] = self.run(joined(given.shapes[shape], given.batched))
        return self._known[sample, shape]

    def drop_failing_shapes(self, index: int) -> Failure | None:
        """Leave out deformed shapes that the model fails on; give the failure of the first shape.

        Where every deformed shape fails, smaller deformations are tried.
        """
        sample = self.samples[index]
        given = self.attempt(joined(sample.shapes[0], sample.batched))
        if isinstance(given, Failure):
            return given
        self._known[index, 0] = given
        generator = torch.Generator().manual_seed(self.seed + 1)
        for size in (1.0, 0.1, 0.01):
            if size < 1:
                smaller = [
                    [followed(deformed(g, generator, size), self.inputs) for g in sample.graphs]
                    for _ in range(4)
                ]
                sample.shapes = [sample.shapes[0], *smaller]
            kept = [sample.shapes[0]]
            for shape in sample.shapes[1:]:
                found = self.attempt(joined(shape, sample.batched))
                if not isinstance(found, Failure) and _finite(found):
                    self._known[index, len(kept)] = found
                    kept.append(shape)
            sample.shapes = kept
            if len(kept) > 1:
                return None
        return None

    def case(self, kind: str, number: int, size: float = 1.0, sample: int = 0) -> Case:
        """One of many random transformations of one of the shapes."""
        given = self.samples[sample]
        shape = number % min(4, len(given.shapes))
        origin = (sample, shape, self.seed * 1000 + number)
        shapes = given.shapes[shape]
        return make_case(kind, shapes, self.inputs, given.batched, origin, size, self.axis)

    # ---- errors

    def measure_spread(self, index: int) -> None:
        """How much each output varies over the shapes of a sample, and whether at all."""
        sample, eps = self.samples[index], torch.finfo(self.dtype).eps
        first = self.at(index, 0)
        given = joined(sample.shapes[0], sample.batched)
        near = [self.attempt(self.rounded(given, eps, seed)) for seed in range(4)]
        for output in self.outputs:
            value = first[output.name]
            others = [self.at(index, k).get(output.name) for k in range(1, len(sample.shapes))]
            same = [o - value for o in others if o is not None and o.shape == value.shape]
            if not same and len(sample.shapes) > 1:
                raise ValueError(
                    f"outputs: the shape of {output.name!r} depends on the geometry of the graph; "
                    "audit an output with a fixed shape"
                )
            size = output.peaks(value, self.n)
            moves = [output.deviations(change, self.n) for change in same]
            spread = torch.stack(moves).median(0).values if moves else torch.zeros_like(size)
            noise = torch.zeros_like(size)
            for other in near:
                if not isinstance(other, Failure) and other[output.name].shape == value.shape:
                    peaks = output.peaks(other[output.name] - value, self.n)
                    noise = torch.maximum(noise, peaks)
            none = spread <= 8 * eps * size + 4 * noise
            if bool(none.all()):
                self.constant.add((index, output.name))
            elif (index, output.name) in self.constant:
                self.constant.discard((index, output.name))
            floor = 1e-10 * float(spread.max()) if len(spread) else 0.0
            # a channel that does not react may be zero but for noise: the others give the scale
            whole = torch.maximum(size, spread).max() if len(spread) else 0.0
            spread = torch.where(none, whole, spread).clamp(min=floor)
            self.spread[index, output.name] = torch.where(spread > 0, spread, 1.0)

    def error(self, output: Output, sample: int, expected: Tensor, found: Tensor) -> Tensor:
        """The largest difference of each channel, relative to how much it varies `[K]`."""
        spread = self.spread[sample, output.name]
        if found.shape != expected.shape or not bool(found.isfinite().all()):
            return torch.full_like(spread, math.inf)
        peaks = output.peaks(found - expected, self.n)
        if peaks.shape != spread.shape:
            spread = spread.max()
        return peaks / spread

    def errors(self, case: Case, after: Values | Failure) -> dict[str, tuple[Tensor, float]]:
        """The relative errors and the absolute one of each output that the kind is defined for."""
        sample = case.origin[0]
        before = self.at(sample, case.origin[1])
        found: dict[str, tuple[Tensor, float]] = {}
        reason: Undefined | None = None
        for output in self.outputs:
            try:
                wanted = output.expected(before[output.name], case)
            except Undefined as error:
                reason = error
                continue
            value = None if isinstance(after, Failure) else after.get(output.name)
            value = wanted.new_full((0,), math.nan) if value is None else value
            relative = self.error(output, sample, wanted, value)
            same = value.shape == wanted.shape and value.numel() > 0
            absolute = float((value - wanted).abs().max()) if same else math.inf
            found[output.name] = relative, absolute if not math.isnan(absolute) else math.inf
        if not found and reason is not None:
            raise reason
        return found

    def largest(self, case: Case) -> float:
        """The largest error of any output, after a transformation that is not noted."""
        found = self.errors(case, self.attempt(case.after))
        return max((float(error.max()) for error, _ in found.values() if len(error)), default=0.0)

    def rounded(self, data: Graph, eps: float, seed: int) -> Graph:
        """The graph with its coordinates rounded once more."""
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(data.pos.shape, generator=generator, dtype=torch.float64)
        near = data.clone()
        near.pos = data.pos + eps * data.pos.abs().max() * noise
        return near

    def coarse_rounding(self, case: Case, after: Values | Failure) -> dict[str, Tensor] | None:
        """Where the target computes more coarsely than it is called, how much rounding to that
        changes each output; measured once for each sample, as it takes several calls.
        """
        eps = self.target.coarsest(self.dtype)
        if eps <= torch.finfo(self.dtype).eps or isinstance(after, Failure):
            return None
        sample = case.origin[0]
        if sample not in self.coarse:
            self.coarse[sample] = self.rounding(case, after, eps)
        return self.coarse[sample]

    def rounding(
        self, case: Case, after: Values, eps: float | None = None, repeats: int = 2
    ) -> dict[str, Tensor]:
        """How much each channel of each output changes when the coordinates are rounded."""
        sample, own = case.origin[0], torch.finfo(self.dtype).eps
        found: dict[str, Tensor] = {}
        for repeat in range(repeats):
            near = self.rounded(case.after, eps or own, case.origin[2] + 7919 * repeat)
            other = self.attempt(near)
            if isinstance(other, Failure):
                continue
            for output in self.outputs:
                value, spread = after[output.name], self.spread[sample, output.name]
                moved = self.error(output, sample, value, other[output.name])
                if moved.shape != spread.shape:
                    continue
                size = output.peaks(value, self.n)
                digit = 0.1 * own if eps is None else eps
                least = digit * size / spread if size.shape == spread.shape else moved
                jitter = self.jitter.get(output.name)
                if jitter is not None and jitter.shape == spread.shape:
                    least = torch.maximum(least, jitter / spread)
                moved = torch.maximum(moved, least)
                before = found.get(output.name, moved)
                found[output.name] = torch.maximum(moved, before)
        return found


def _finite(values: Values) -> bool:
    return all(bool(value.isfinite().all()) for value in values.values())


def sample_nodes(samples: Sequence[Sample]) -> int:
    """The number of nodes of all samples that were given."""
    return sum(g.num_nodes for sample in samples if not sample.grown for g in sample.graphs)


def sample_edges(samples: Sequence[Sample]) -> int:
    """The number of edges of all samples that were given."""
    return sum(g.num_edges for sample in samples if not sample.grown for g in sample.graphs)
