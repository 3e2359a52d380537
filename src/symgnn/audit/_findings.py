"""The measurements of each kind of transformation, and answers for tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from symgnn.audit._counterexample import Counterexample
from symgnn.audit._locating import LayerError
from symgnn.audit._recording import Place
from symgnn.geometry.symmetry import plural

#: What each verdict is called.
VERDICTS = {
    "rounding": "holds to rounding",
    "single": "holds in float32",
    "approximate": "holds approximately",
    "broken": "broken",
    "vacuous": "no reaction",
    "unmeasured": "not measured",
}


#: Why a kind was not measured that is in none of the groups that were asked for.
NOT_ASKED = "it was not asked for"


@dataclass
class Finding:
    """The measurements of one kind of transformation."""

    kind: str
    verdict: str  # one of VERDICTS
    error: float = 0.0  # the largest, in the most exact precision
    errors: dict[str, list[float]] = field(default_factory=dict)  # by precision, of each element
    rounding: dict[str, float] = field(default_factory=dict)  # by precision, of the worst output
    outputs: dict[str, float] = field(default_factory=dict)  # the largest error of each
    absolute: dict[str, float] = field(default_factory=dict)  # the same in the output's own units
    verdicts: dict[str, str] = field(default_factory=dict)  # of each output
    sizes: list[tuple[float, float]] = field(default_factory=list)  # size and error
    reason: str = ""  # why it was not measured
    claimed: bool | None = None  # whether model.symmetry has it
    expected: bool | None = None  # whether the user asked for it; None where nobody asked
    where: Place | None = None
    not_located: str = ""  # why there is no place
    profile: list[LayerError] = field(default_factory=list)
    suggestion: str = ""
    counterexample: Counterexample | None = None
    key: tuple[int, str] = (0, "")  # the sample and the output that decided

    @property
    def holds(self) -> bool:
        """Whether the symmetry holds to rounding, in float64 or at least in float32."""
        return self.verdict in ("rounding", "single")

    @property
    def measured(self) -> bool:
        """Whether the verdict is based on a measurement."""
        return self.verdict not in ("unmeasured", "vacuous")

    def largest(self, precision: str) -> float:
        """The largest error in a precision, including the search for the worst rotation."""
        own = max(self.errors.get(precision, ()), default=0.0)
        return max(own, self.error) if precision == max(self.errors, default="") else own

    def __str__(self) -> str:
        if not self.measured:
            return f"{plural(self.kind)}: {VERDICTS[self.verdict]}, {self.reason}"
        text = f"{plural(self.kind)}: {VERDICTS[self.verdict]} (error {number(self.error)})"
        return f"{text}, first {self.where}" if self.where is not None else text

    def to_dict(self) -> dict[str, Any]:
        """All fields except the counterexample's coordinates, for JSON."""
        return {
            "verdict": self.verdict,
            "error": finite(self.error),
            "errors": {p: [finite(e) for e in errors] for p, errors in self.errors.items()},
            "rounding": {p: finite(e) for p, e in self.rounding.items()},
            "outputs": {name: finite(e) for name, e in self.outputs.items()},
            "absolute": {name: finite(e) for name, e in self.absolute.items()},
            "verdicts": dict(self.verdicts),
            "sizes": [[size, finite(error)] for size, error in self.sizes],
            "reason": self.reason,
            "claimed": self.claimed,
            "expected": self.expected,
            "where": None if self.where is None else str(self.where),
            "module": None if self.where is None else self.where.module,
            "not_located": self.not_located,
            "profile": [[e.module, e.kind, finite(e.error)] for e in self.profile],
            "suggestion": self.suggestion,
            "counterexample": None if self.counterexample is None else str(self.counterexample),
        }


class Answer:
    """Whether a symmetry or check holds; behaves like a bool, with an explanation.

    Attributes:
        text: The answer in words, with the reason if it is false.
        known: False if it was not measured, so that it is neither true nor false.
    """

    def __init__(self, holds: bool, text: str, known: bool = True) -> None:
        self._holds, self.text, self.known = holds, text, known

    def __bool__(self) -> bool:
        return self._holds

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __hash__(self) -> int:
        return hash(self._holds)

    def __repr__(self) -> str:
        return self.text


@dataclass
class Check:
    """The result of a consistency check, such as forces against the energy.

    Attributes:
        name: A short name, such as "forces".
        verdict: "holds", "broken" or "unmeasured".
        error: The largest error, relative to the variation of the output.
        text: The compared quantities, or the reason why the check was not measured.
        absolute: The largest error in the units of the output.
        unit: The name of the unit, "" if unknown.
        required: Whether a model that fails the check is wrong; extensivity, for instance, is not
            required of every model.
    """

    name: str
    verdict: str
    text: str
    error: float = 0.0
    absolute: float = 0.0
    unit: str = ""
    required: bool = True

    @property
    def holds(self) -> bool:
        """Whether the check was measured and holds."""
        return self.verdict == "holds"

    def __str__(self) -> str:
        if self.verdict == "unmeasured":
            return f"{self.name}: not measured, {self.text}"
        word = "yes" if self.holds else "no"
        size = "" if self.holds else f" (error {number(self.error)}{self._in_units()})"
        return f"{self.name}: {word}{size}, {self.text}"

    def _in_units(self) -> str:
        return f", {number(self.absolute)} {self.unit}" if self.unit else ""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "verdict": self.verdict,
            "error": finite(self.error),
            "absolute": finite(self.absolute),
            "unit": self.unit,
            "text": self.text,
        }


def number(value: float) -> str:
    """An error in few digits."""
    return f"{value:.0e}" if value and (value < 1e-2 or value >= 1e4) else f"{value:.2g}"


def finite(value: float) -> float | str:
    """The number, or as text where JSON has none for it."""
    return value if math.isfinite(value) else str(value)
