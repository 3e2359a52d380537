"""What an audit found, as text, as a page, and as answers for tests."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symgnn.audit.counterexample import Counterexample
from symgnn.audit.groups import GROUPS, kinds_of
from symgnn.audit.locate import Place
from symgnn.audit.measuring import quantiles
from symgnn.audit.outputs import Output
from symgnn.geometry import KINDS, Symmetry
from symgnn.geometry.symmetry import plural
from symgnn.store import write_whole

#: What each verdict is called, and what it means.
VERDICTS = {
    "rounding": "holds to rounding",
    "single": "holds in float32",
    "approximate": "holds approximately",
    "broken": "broken",
    "unmeasured": "not measured",
}


@dataclass
class Finding:
    """What was measured of one kind of transformation."""

    kind: str
    verdict: str  # one of VERDICTS
    error: float = 0.0  # the largest, in the most exact precision
    errors: dict[str, list[float]] = field(default_factory=dict)  # by precision, of each element
    rounding: dict[str, float] = field(default_factory=dict)  # by precision
    outputs: dict[str, float] = field(default_factory=dict)  # the largest error of each
    sizes: list[tuple[float, float]] = field(default_factory=list)  # size and error
    reason: str = ""  # why it was not measured
    claimed: bool | None = None  # whether model.symmetry has it
    where: Place | None = None
    counterexample: Counterexample | None = None

    @property
    def holds(self) -> bool:
        """To rounding, be it that of the float32 that the model is in."""
        return self.verdict in ("rounding", "single")

    def __str__(self) -> str:
        if self.verdict == "unmeasured":
            return f"{plural(self.kind)}: not measured, {self.reason}"
        text = f"{plural(self.kind)}: {VERDICTS[self.verdict]} (error {number(self.error)})"
        return f"{text}, first {self.where}" if self.where is not None else text


class Answer:
    """Whether something holds; false with the reason in its text."""

    def __init__(self, holds: bool, text: str) -> None:
        self._holds, self.text = holds, text

    def __bool__(self) -> bool:
        return self._holds

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __hash__(self) -> int:
        return hash(self._holds)

    def __repr__(self) -> str:
        return self.text


@dataclass
class Report:
    """What :func:`symgnn.audit.audit` found."""

    model: str
    dimension: int
    nodes: int
    edges: int
    outputs: list[Output]
    findings: dict[str, Finding]
    constant: list[str] = field(default_factory=list)  # outputs that no coordinate changes
    warnings: list[str] = field(default_factory=list)
    stochastic: str = ""  # what is random, in words
    derived: Symmetry | None = None  # the model's own `symmetry`
    seconds: float = 0.0
    parameters: int = 0

    @property
    def symmetry(self) -> Symmetry:
        """The kinds that hold to rounding."""
        return Symmetry(kind for kind, finding in self.findings.items() if finding.holds)

    @property
    def precisions(self) -> list[str]:
        """Those that were measured in, the most exact one first."""
        return sorted({p for f in self.findings.values() for p in f.errors}, reverse=True)

    def holds(self, group: str | Symmetry, tolerance: float | None = None) -> Answer:
        """Whether a group or kind holds, to rounding or up to a relative error `tolerance`.

        `group` is a name such as "E(n)", "SO(3)", "similarities", "conformal", "permutations" or
        "torsions", or a :class:`~symgnn.geometry.Symmetry`. The answer is true or false, and its
        text has the counterexample.
        """
        name, kinds = kinds_of(group, self.dimension)
        for kind in kinds:
            finding = self.findings[kind]
            near = tolerance is not None and finding.error <= tolerance
            if finding.holds or (kind == "rotation" and self.dimension == 1):
                continue
            if finding.verdict == "unmeasured":
                return Answer(False, f"{name}: unknown, {finding}")
            if near:
                continue
            return Answer(False, f"{name}: no, {self._why(finding)}")
        return Answer(True, f"{name}: yes")

    def _why(self, finding: Finding) -> str:
        text = f"error {number(finding.error)}: {finding.counterexample}"
        if finding.where is not None:
            text += f", first {finding.where}"
        return text

    @property
    def agrees(self) -> Answer:
        """Whether what holds is what `model.symmetry` says; true where it says nothing."""
        wrong = []
        for kind, finding in self.findings.items():
            if finding.claimed is None or finding.verdict == "unmeasured":
                continue
            if finding.claimed and not finding.holds:
                wrong.append(f"{plural(kind)} claimed, but {self._why(finding)}")
            elif finding.holds and not finding.claimed and not self.constant:
                wrong.append(f"{plural(kind)} not claimed, but kept")
        return Answer(not wrong, "; ".join(wrong) or "measured as derived")

    def summary(self) -> list[str]:
        """What holds in terms of groups, a line each."""
        lines = []
        if self.constant:
            names = ", ".join(repr(name) for name in self.constant)
            lines.append(f"{names} does not depend on the coordinates, so nothing can break it")
        for name in ("similarities", "E(n)", "SE(n)"):
            answer = self.holds(name)
            if answer:
                lines.append(f"{name}: yes")
                break
        else:
            lines.append(self._line("E(n)"))
        blind = all(output.type == "invariant" for output in self.outputs)
        if self.dimension > 1 and self.holds("SO(n)"):
            lines.append(self._line("reflections") + self._so("reflection", "mirror images", blind))
        if not self.holds("similarities"):
            lines.append(self._line("dilations"))
        lines.append(self._line("conformal", ("inversion", "special-conformal")))
        lines.append(self._line("affine maps", ("affine",)))
        lines.append(self._line("permutations"))
        for kind, apart in (("torsion", "conformers"), ("flex", "bent shapes")):
            if self.findings[kind].verdict != "unmeasured":
                lines.append(self._line(plural(kind)) + self._so(kind, apart, blind))
        return lines

    def _so(self, kind: str, shapes: str, blind: bool) -> str:
        """What follows for shapes that differ by such a transformation."""
        if not blind or self.constant or self.findings[kind].verdict == "unmeasured":
            return ""
        can = "cannot" if self.findings[kind].holds else "can"
        return f", so it {can} tell {shapes} apart"

    def breaks(self) -> list[str]:
        """Where Euclidean symmetry and that of the order of the nodes break first, a line each."""
        broken = [self.findings[kind] for kind in _LOCATED if self.findings[kind].counterexample]
        lines = []
        for place in dict.fromkeys(f.where for f in broken):
            here = [f for f in broken if f.where == place]
            first = f"break first {place}; " if place is not None else ""
            kinds = _listed([plural(f.kind) for f in here])
            lines.append(f"{kinds}: {first}{here[0].counterexample}")
        return lines

    def _line(self, name: str, kinds: tuple[str, ...] | None = None) -> str:
        kinds = kinds or kinds_of(name, self.dimension)[1]
        found = [self.findings[kind] for kind in kinds]
        measured = [finding for finding in found if finding.verdict != "unmeasured"]
        if not measured:
            return f"{name}: not measured, {found[0].reason}"
        if self.holds(name):
            return f"{name}: yes"
        worst = max(measured, key=lambda finding: finding.error)
        if worst.holds:
            return f"{name}: beyond similarities, yes"
        word = "approximately" if worst.verdict == "approximate" else "no"
        blame = f" under {plural(worst.kind)}" if plural(worst.kind) != name else ""
        return f"{name}: {word} (error {number(worst.error)}{blame})"

    def __repr__(self) -> str:
        return f"Report({self.model}: {self.symmetry})"

    def __str__(self) -> str:
        """The table, the summary and the warnings."""
        types = ", ".join(f"{o.name}: {o} ({o.known})" for o in self.outputs)
        lines = [f"{self.model} on {self.nodes} nodes in {self.dimension} dimensions; {types}", ""]
        lines += self._table()
        lines += ["", *(f"- {line}" for line in self.summary())]
        if self.derived is not None:
            lines.append(f"- model.symmetry says {self.derived}: {self.agrees}")
        lines += [f"- {line}" for line in self.breaks()]
        if self.stochastic:
            lines.append(f"- random: {self.stochastic}")
        lines += [f"! {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        precisions = self.precisions
        head = f"{'':24}{'verdict':22}"
        head += "".join(f"{p + ' median':>16}{'largest':>10}{'rounding':>10}" for p in precisions)
        lines = [head.rstrip()]
        for finding in self.findings.values():
            if finding.verdict == "unmeasured":
                lines.append(f"{plural(finding.kind):24}{'-':4}{finding.reason}")
                continue
            row = f"{plural(finding.kind):24}{VERDICTS[finding.verdict]:22}"
            for precision in precisions:
                _, middle, high = quantiles(finding.errors[precision])
                row += f"{number(middle):>16}{number(high):>10}"
                row += f"{number(finding.rounding[precision]):>10}"
            lines.append(row)
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Everything but the counterexamples' coordinates, ready for JSON."""
        findings = {}
        for kind, f in self.findings.items():
            findings[kind] = {
                "verdict": f.verdict,
                "error": _finite(f.error),
                "errors": {p: [_finite(e) for e in errors] for p, errors in f.errors.items()},
                "rounding": {p: _finite(e) for p, e in f.rounding.items()},
                "outputs": {name: _finite(e) for name, e in f.outputs.items()},
                "sizes": [[size, _finite(error)] for size, error in f.sizes],
                "reason": f.reason,
                "claimed": f.claimed,
                "where": None if f.where is None else str(f.where),
                "module": None if f.where is None else f.where.module,
                "counterexample": None if f.counterexample is None else str(f.counterexample),
            }
        return {
            "model": self.model,
            "parameters": self.parameters,
            "dimension": self.dimension,
            "nodes": self.nodes,
            "edges": self.edges,
            "outputs": {o.name: str(o) for o in self.outputs},
            "holds": {name: bool(self.holds(name)) for name in [*GROUPS, *KINDS]},
            "summary": self.summary(),
            "symmetry": str(self.symmetry),
            "derived": None if self.derived is None else str(self.derived),
            "agrees": bool(self.agrees),
            "constant": self.constant,
            "stochastic": self.stochastic,
            "warnings": self.warnings,
            "seconds": self.seconds,
            "findings": findings,
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page (`.html`) or everything in numbers (`.json`); give the path."""
        path = Path(path)
        if path.suffix == ".json":
            text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        elif path.suffix in (".html", ".htm"):
            from symgnn.audit.page import page

            text = page(self)
        else:
            raise ValueError(f"path: {path.name} is neither .html nor .json; choose one of them")
        return write_whole(path, text.encode("utf-8"))


#: Where these break is worth a line; the rest most models break on purpose.
_LOCATED = ("permutation", "translation", "rotation", "reflection")


def number(value: float) -> str:
    """An error in few digits."""
    return f"{value:.0e}" if value and (value < 1e-2 or value >= 1e4) else f"{value:.2g}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
