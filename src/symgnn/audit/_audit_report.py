"""The report of an audit: text, page, and answers for tests."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symgnn.audit._findings import NOT_ASKED, VERDICTS, Answer, Check, Finding, number
from symgnn.audit._group_names import GROUPS, kinds_of
from symgnn.audit._outputs import Output
from symgnn.audit._verdicts import quantiles
from symgnn.geometry import KINDS, Symmetry
from symgnn.geometry.symmetry import IMPLIED, plural
from symgnn.store import write_whole


@dataclass
class Report:
    """The result of :func:`symgnn.audit.audit`."""

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
    expected: list[str] = field(default_factory=list)  # the groups that were asked for
    checks: dict[str, Check] = field(default_factory=dict)  # of the model with itself
    units: dict[str, str] = field(default_factory=dict)  # of outputs, where known
    moved: list[str] = field(default_factory=list)  # inputs that moved with the graph
    calls: int = 0
    seconds: float = 0.0
    parameters: int = 0

    @property
    def symmetry(self) -> Symmetry:
        """The kinds that hold to rounding."""
        return Symmetry(kind for kind, finding in self.findings.items() if finding.holds)

    @property
    def precisions(self) -> list[str]:
        """The precisions of the measurements, the most exact one first."""
        return sorted({p for f in self.findings.values() for p in f.errors}, reverse=True)

    def holds(self, group: str | Symmetry, tolerance: float | None = None) -> Answer:
        """Whether a group or kind holds, to rounding or up to a relative error `tolerance`.

        `group` is a name such as "E(n)", "SO(3)", "similarities", "conformal", "permutations" or
        "torsions", or a :class:`~symgnn.geometry.Symmetry`. The answer is true or false, and its
        text has the counterexample.
        """
        if isinstance(group, str) and group in self.checks:
            check = self.checks[group]
            return Answer(check.holds, str(check), check.verdict != "unmeasured")
        name, kinds = kinds_of(group, self.dimension)
        unknown = None
        for kind in kinds:
            finding = self.findings[kind]
            near = tolerance is not None and finding.error <= tolerance
            if finding.holds or (kind == "rotation" and self.dimension == 1):
                continue
            if not finding.measured:
                unknown = unknown or finding
            elif not near:
                return Answer(False, f"{name}: no, {self._why(finding)}")
        if unknown is not None:
            return Answer(False, f"{name}: unknown, {unknown}", known=False)
        return Answer(True, f"{name}: yes")

    @property
    def as_expected(self) -> Answer:
        """Whether all requested groups hold; true if none was requested."""
        answers = [self.holds(group) for group in self.expected]
        wrong = [answer for answer in answers if not answer]
        text = "; ".join(map(repr, wrong or answers)) or "nothing was asked for"
        return Answer(not wrong, text, all(answer.known for answer in wrong))

    @property
    def consistent(self) -> Answer:
        """Whether all consistency checks hold that are required of every model."""
        broken = [check for check in self.checks.values() if check.verdict == "broken"]
        wrong = [check for check in broken if check.required]
        return Answer(not wrong, "; ".join(map(str, wrong)) or "consistent")

    def _why(self, finding: Finding) -> str:
        text = f"error {number(finding.error)}{self._in_units(finding)}: {finding.counterexample}"
        if finding.where is not None:
            text += f", first {finding.where}"
        return text

    def _in_units(self, finding: Finding) -> str:
        """The absolute error of the output that decided, where it has a unit."""
        name = finding.key[1]
        unit = self.units.get(name)
        if unit is None or name not in finding.absolute:
            return ""
        return f" ({number(finding.absolute[name])} {unit})"

    @property
    def agrees(self) -> Answer:
        """Whether the measured symmetry equals `model.symmetry`; true for models without it."""
        wrong = []
        for kind, finding in self.findings.items():
            if finding.claimed is None or not finding.measured:
                continue
            if finding.claimed and not finding.holds:
                wrong.append(f"{plural(kind)} claimed, but {self._why(finding)}")
            elif finding.holds and not (finding.claimed or self.constant or self.implied(kind)):
                wrong.append(f"{plural(kind)} not claimed, but kept")
        return Answer(not wrong, "; ".join(wrong) or "measured as derived")

    def summary(self) -> list[str]:
        """The groups that hold, one line each."""
        lines = []
        if self.constant:
            names = ", ".join(repr(name) for name in self.constant)
            lines.append(
                f"{names} does not depend on the coordinates of this data, so nothing is known of "
                "its symmetry"
            )
        for name in ("similarities", "E(n)", "SE(n)"):
            answer = self.holds(name)
            if answer:
                lines.append(f"{name}: yes")
                break
        else:
            lines.append(self._line("E(n)"))
        lines = [line for line in lines if line.partition(":")[0] not in self.expected]
        blind = all(output.type == "invariant" for output in self.outputs)
        if self.dimension > 1 and self.holds("SO(n)"):
            lines.append(self._line("reflections") + self._so("reflection", "mirror images", blind))
        if not self.holds("similarities"):
            lines.append(self._line("dilations"))
        lines.append(self._line("conformal", ("inversion", "special-conformal")))
        lines.append(self._line("affine maps", ("affine",)))
        if "permutations" not in self.expected:
            lines.append(self._line("permutations"))
        for kind, apart in _SHAPES.items():
            if self.findings[kind].measured:
                lines.append(self._line(plural(kind)) + self._so(kind, apart, blind))
        return [line for line in lines if not line.endswith(NOT_ASKED)]

    def _so(self, kind: str, shapes: str, blind: bool) -> str:
        """The consequence for shapes that differ by such a transformation."""
        if not blind or self.constant or not self.findings[kind].measured:
            return ""
        can = "cannot" if self.findings[kind].holds else "can"
        return f", so it {can} tell {shapes} apart"

    def breaks(self) -> list[str]:
        """The submodules in which Euclidean or permutation symmetry first breaks, one line each."""
        broken = [self.findings[kind] for kind in _LOCATED if self.findings[kind].counterexample]
        lines = []
        for place in dict.fromkeys(f.where for f in broken):
            here = [f for f in broken if f.where == place]
            why = here[0].not_located
            first = f"break first {place}; " if place is not None else ""
            first = first or (f"not located, {why}; " if why else "")
            kinds = _listed([plural(f.kind) for f in here])
            lines.append(f"{kinds}: {first}{here[0].counterexample}")
        return lines

    def suggestions(self) -> list[str]:
        """Suggested repairs, for known causes."""
        found: dict[str, str] = {}
        for kind in _LOCATED:
            finding = self.findings[kind]
            if finding.suggestion:
                place = "" if finding.where is None else finding.where.module
                found.setdefault(place, finding.suggestion)
        return list(found.values())

    def _line(self, name: str, kinds: tuple[str, ...] | None = None) -> str:
        kinds = kinds or kinds_of(name, self.dimension)[1]
        found = [self.findings[kind] for kind in kinds]
        measured = [finding for finding in found if finding.measured]
        if not measured:
            word = VERDICTS[found[0].verdict]
            return f"{name}: {word}, {found[0].reason}"
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
        lines.append("")
        lines += [f"- expected {self.holds(group)}" for group in self.expected]
        lines += [f"- {line}" for line in self.summary()]
        if self.derived is not None:
            lines.append(f"- model.symmetry says {self.derived}: {self.agrees}")
        lines += [f"- {line}" for line in self.breaks()]
        lines += [f"- repair: {line}" for line in self.suggestions()]
        shown = [check for check in self.checks.values() if check.verdict != "unmeasured"]
        lines += [f"- {check}" for check in shown]
        if self.stochastic:
            lines.append(f"- random: {self.stochastic}")
        lines += [f"! {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        precisions = self.precisions
        head = f"{'':27}{'verdict':22}"
        head += "".join(f"{p + ' median':>16}{'largest':>10}{'rounding':>10}" for p in precisions)
        lines = [head.rstrip()]
        for finding in self.findings.values():
            if finding.reason == NOT_ASKED or self.implied(finding.kind):
                continue
            if not finding.measured:
                lines.append(f"{plural(finding.kind):27}{'-':4}{finding.reason}")
                continue
            row = f"{plural(finding.kind):27}{VERDICTS[finding.verdict]:22}"
            for precision in precisions:
                if not finding.errors.get(precision):
                    row += f"{'':36}"
                    continue
                middle = quantiles(finding.errors[precision])[1]
                row += f"{number(middle):>16}{number(finding.largest(precision)):>10}"
                row += f"{number(finding.rounding[precision]):>10}"
            lines.append(row + self._in_units(finding))
        return lines

    def implied(self, kind: str) -> bool:
        """Whether a kind holds because a wider kind does."""
        wide = [one for one, narrow in IMPLIED.items() if kind in narrow]
        return any(self.findings[one].holds for one in wide)

    def to_dict(self) -> dict[str, Any]:
        """All fields except the counterexamples' coordinates, for JSON."""
        return {
            "model": self.model,
            "parameters": self.parameters,
            "dimension": self.dimension,
            "nodes": self.nodes,
            "edges": self.edges,
            "outputs": {o.name: str(o) for o in self.outputs},
            "holds": {name: self._known(name) for name in [*GROUPS, *KINDS]},
            "expected": {name: self._known(name) for name in self.expected},
            "checks": {name: check.to_dict() for name, check in self.checks.items()},
            "units": self.units,
            "moved": self.moved,
            "suggestions": self.suggestions(),
            "summary": self.summary(),
            "symmetry": str(self.symmetry),
            "derived": None if self.derived is None else str(self.derived),
            "agrees": bool(self.agrees),
            "constant": self.constant,
            "stochastic": self.stochastic,
            "warnings": self.warnings,
            "seconds": self.seconds,
            "calls": self.calls,
            "findings": {kind: finding.to_dict() for kind, finding in self.findings.items()},
        }

    def _known(self, group: str) -> bool | None:
        """True or false, or None where it was not measured."""
        answer = self.holds(group)
        return bool(answer) if answer.known else None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the report as a page (`.html`) or as data (`.json`); return the path."""
        path = Path(path)
        if path.suffix == ".json":
            text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        elif path.suffix in (".html", ".htm"):
            try:
                from symgnn.audit._audit_page import page
            except ImportError as error:  # torch and numpy are enough for all but the page
                raise ValueError(
                    f"path: a page needs {error.name}; pip install {error.name}, or save as .json"
                ) from error

            text = page(self)
        else:
            raise ValueError(f"path: {path.name} is neither .html nor .json; choose one of them")
        return write_whole(path, text.encode("utf-8"))


#: What a model that keeps these kinds cannot tell apart.
_SHAPES = {
    "torsion": "conformers",
    "flex": "bent shapes",
    "redrawing": "shapes with parallel edges",
    "angle-flex": "shapes with the same angles",
    "part-motion": "arrangements of the parts",
}
#: Where these break is worth a line; the rest most models break on purpose.
_LOCATED = ("permutation", "translation", "rotation", "reflection")


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
