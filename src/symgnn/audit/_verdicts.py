"""Is an error rounding, a small break or a break? Judged for each channel of each output."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

#: How many times the measured rounding an error may be to count as rounding.
ROUNDING = 100.0
#: Below this, relative to how much the output varies, a symmetry holds approximately.
APPROXIMATE = 1e-2
#: An output that changes by more than this when coordinates are rounded is not smooth there.
JUMP = 1e-3
#: From float32 to float64, rounding falls by 5e8; an error that falls by this much is rounding.
FALL = 1e5

#: Errors that come from constants in float32 are below this.
CONSTANTS = 1e-5

#: The verdicts on a measurement, from good to bad.
ORDER = ("rounding", "single", "approximate", "broken")


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
    coarse, coarsely = max(errors.get("float32", ()), default=None), rounding.get("float32", 0)
    inside = (coarse is None or coarse <= 10 * largest) and largest <= 10 * coarsely
    if best == "float64" and native == "float32" and inside and largest < APPROXIMATE:
        return "single", largest  # it computes in float32 inside
    if best == "float64" and largest < CONSTANTS:
        if coarse is not None and coarse < math.inf and largest * FALL <= coarse:
            return "rounding", largest
        lost = coarse is None or coarse <= ROUNDING * coarsely
        if native == "float32" and 10 * largest <= coarsely and lost:
            return "single", largest
    return ("approximate" if largest <= APPROXIMATE else "broken"), largest


@dataclass
class Evidence:
    """The errors of one output on one sample under one kind of transformation.

    All are relative to how much each channel varies, and have an entry for each channel.
    """

    reacts: bool  # whether the output depends on the coordinates here
    errors: dict[str, list[Tensor]] = field(default_factory=dict)  # by precision, of each element
    rounding: dict[str, Tensor] = field(default_factory=dict)  # by precision, the largest
    absolute: float = 0.0  # the largest error in the units of the output

    def add(self, precision: str, error: Tensor, absolute: float) -> None:
        """Note the error of one more element."""
        self.errors.setdefault(precision, []).append(error)
        self.absolute = max(self.absolute, absolute)

    def add_rounding(self, precision: str, rounding: Tensor) -> None:
        """Note what rounding did to the output once more."""
        before = self.rounding.get(precision)
        known = before is not None and before.shape == rounding.shape
        self.rounding[precision] = torch.maximum(before, rounding) if known else rounding  # type: ignore[arg-type]

    def excess(self, precision: str) -> float:
        """The largest error that is more than rounding explains; 0 where there is none."""
        errors, known = self.errors.get(precision), self.rounding.get(precision)
        if not errors:
            return 0.0
        top = _stack(errors).amax(0)
        if known is not None and known.shape == top.shape:
            top = top[top > ROUNDING * known]
        return float(top.max()) if len(top) else 0.0

    def judge(self, native: str) -> tuple[str, float, float]:
        """The verdict of the worst channel, its largest error, and its rounding."""
        best = "float64" if "float64" in self.errors else "float32"
        stacked = {p: _stack(errors) for p, errors in self.errors.items()}
        worst = ("rounding", 0.0, 0.0)
        for channel in range(stacked[best].size(1)):
            errors = {p: table[:, channel].tolist() for p, table in stacked.items()}
            rounding = {p: _entry(known, channel) for p, known in self.rounding.items()}
            verdict, error = verdict_of(errors, rounding, native)
            if (ORDER.index(verdict), error) >= (ORDER.index(worst[0]), worst[1]):
                worst = (verdict, error, rounding.get(best, 0.0))
        return worst


def _stack(errors: Sequence[Tensor]) -> Tensor:
    """Errors `[elements, channels]`; one channel where their number changes."""
    if len({error.shape for error in errors}) == 1:
        return torch.stack(list(errors))
    return torch.stack([error.max() for error in errors])[:, None]


def _entry(values: Tensor, channel: int) -> float:
    return float(values[channel]) if channel < len(values) else float(values.max())


def quantiles(errors: Sequence[float]) -> tuple[float, float, float]:
    """The least, the median and the largest."""
    low, middle, high = np.quantile(np.asarray(errors), [0.0, 0.5, 1.0], method="nearest")
    return float(low), float(middle), float(high)
