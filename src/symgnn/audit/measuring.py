"""How far outputs are from what a symmetry asks for, and what of it is rounding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.audit.borrowing import seed_all
from symgnn.audit.calling import Target
from symgnn.audit.elements import Case, Undefined, make_case
from symgnn.audit.graphs import Named, deformed, followed, joined
from symgnn.audit.outputs import Output

#: How many times the measured rounding an error may be to count as rounding.
ROUNDING = 100.0
#: Below this, relative to how much the output varies, a symmetry holds approximately.
APPROXIMATE = 1e-2
#: An output that changes by more than this when coordinates are rounded is not smooth there.
JUMP = 1e-3
#: From float32 to float64, rounding falls by 5e8; an error that falls by this much is rounding.
FALL = 1e5

Values = dict[str, Tensor]


@dataclass
class Session:
    """A target on shapes near those of the data, in one precision at a time."""

    target: Target
    shapes: list[list[Data]]  # the graphs as they are, then deformed; all in float64
    named: list[Named]
    batched: bool
    dtype: torch.dtype = torch.float64
    seed: int = 0
    outputs: list[Output] = field(default_factory=list)
    spread: dict[str, Tensor] = field(default_factory=dict)  # per channel
    random: bool = False

    @classmethod
    def of(
        cls,
        target: Target,
        graphs: list[Data],
        named: list[Named],
        batched: bool,
        seed: int,
        count: int = 7,
    ) -> Session:
        """With `count` shapes, the first as given."""
        generator = torch.Generator().manual_seed(seed)
        shapes = [[followed(graph, named) for graph in graphs]]
        for _ in range(count - 1):
            shapes.append([deformed(graph, named, generator) for graph in graphs])
        return cls(target, shapes, named, batched, seed=seed)

    def use(self, dtype: torch.dtype) -> None:
        """Measure in this precision from now on."""
        self.dtype = dtype
        self._known: dict[int, Values] = {}

    def run(self, data: Data) -> Values:
        """The outputs for a graph or batch, with the same random numbers if it draws any."""
        if self.random:
            seed_all(self.seed)
        return self.target(data, self.dtype)

    def at(self, shape: int) -> Values:
        """The outputs for one of the shapes."""
        if shape not in self._known:
            self._known[shape] = self.run(joined(self.shapes[shape], self.batched))
        return self._known[shape]

    def case(self, kind: str, number: int, size: float = 1.0) -> Case:
        """One of many random transformations of one of the shapes."""
        shape = number % min(4, len(self.shapes))
        origin = (shape, self.seed * 1000 + number)
        return make_case(kind, self.shapes[shape], self.named, self.batched, origin, size)

    # ---- errors

    def measure_spread(self) -> list[str]:
        """How much each output varies over the shapes; names those that do not vary at all."""
        constant = []
        first = self.at(0)
        for output in self.outputs:
            value = output.channels(first[output.name])
            others = [self.at(k)[output.name] for k in range(1, len(self.shapes))]
            same = [output.channels(o) - value for o in others if o.numel() == value.numel()]
            if not same:
                raise ValueError(
                    f"outputs: {output.name!r} has another shape for each shape of the graph; "
                    "audit a part of it that has not"
                )
            moves = torch.stack([change.square().mean(0).sqrt() for change in same])
            spread, size = moves.median(0).values, value.abs().amax(0)
            none = spread <= 1e3 * torch.finfo(self.dtype).eps * size
            if bool(none.all()):
                constant.append(output.name)
            self.spread[output.name] = torch.where(none, size, spread).clamp(min=1e-300)
        return constant

    def error(self, output: Output, expected: Tensor, found: Tensor) -> float:
        """The largest difference, relative to how much the output varies."""
        if found.shape != expected.shape or not bool(found.isfinite().all()):
            return math.inf
        change = output.channels(found - expected).abs().amax(0)
        return float((change / self.spread[output.name]).max())

    def errors(self, case: Case, after: Values | None = None) -> dict[str, float]:
        """The error of each output that the transformation is defined for."""
        before = self.at(case.origin[0])
        after = self.run(case.after) if after is None else after
        found, reason = {}, None
        for output in self.outputs:
            try:
                wanted = output.expected(before[output.name], case)
            except Undefined as error:
                reason = error
                continue
            found[output.name] = self.error(output, wanted, after[output.name])
        if not found and reason is not None:
            raise reason
        return found

    def rounding(self, case: Case, after: Values) -> float:
        """How much outputs change at most when the moved coordinates are rounded once more."""
        eps = torch.finfo(self.dtype).eps
        pos = case.after.pos
        generator = torch.Generator().manual_seed(case.origin[1])
        noise = torch.randn(pos.shape, generator=generator, dtype=torch.float64)
        near = case.after.clone()
        near.pos = pos + eps * pos.abs().max() * noise
        other = self.run(near)
        found = 0.0
        for output in self.outputs:
            value = after[output.name]
            moved = self.error(output, value, other[output.name])
            size = output.channels(value).abs().amax(0)
            itself = float((eps * size / self.spread[output.name]).max())
            found = max(found, moved, 10 * itself / ROUNDING)
        return found


def verdict_of(
    errors: Mapping[str, Sequence[float]], rounding: Mapping[str, float], native: str = "float32"
) -> tuple[str, float]:
    """The verdict and the largest error, in the most exact precision.

    Errors and rounding are by precision, "float64" and "float32". The verdict is "rounding" where
    the error is no more than what rounding does to the output, or where it falls with the
    precision as rounding does; "single" where an error is left in float64 that is lost in the
    rounding of the float32 that the model is in; else "approximate" where it is small, or "broken".
    """
    best = "float64" if "float64" in errors else "float32"
    largest = max(errors[best], default=0.0)
    known = rounding.get(best, 0.0)
    if largest <= ROUNDING * known and known < JUMP:
        return "rounding", largest
    coarse, coarsely = max(errors.get("float32", ()), default=math.inf), rounding.get("float32", 0)
    if best == "float64" and coarse < math.inf and largest < 1e-6:
        if largest * FALL <= coarse:
            return "rounding", largest
        if native == "float32" and 10 * largest <= coarsely and coarse <= ROUNDING * coarsely:
            return "single", largest
    return ("approximate" if largest <= APPROXIMATE else "broken"), largest


def quantiles(errors: Sequence[float]) -> tuple[float, float, float]:
    """The least, the median and the largest."""
    low, middle, high = np.quantile(np.asarray(errors), [0.0, 0.5, 1.0], method="nearest")
    return float(low), float(middle), float(high)
