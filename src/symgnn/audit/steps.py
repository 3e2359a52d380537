"""The steps of an audit: what the outputs are, how far each kind is kept, where it breaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from symgnn.audit.borrowing import borrowed
from symgnn.audit.counterexample import Counterexample
from symgnn.audit.elements import SIZED, Case, Undefined
from symgnn.audit.graphs import joined
from symgnn.audit.locate import Place, first_break, first_random, recorded
from symgnn.audit.measuring import JUMP, ROUNDING, Session, verdict_of
from symgnn.audit.outputs import Output, candidates, choose, chosen_names, told
from symgnn.audit.precision import coarse
from symgnn.audit.report import Finding
from symgnn.geometry import KINDS
from symgnn.geometry.symmetry import plural

#: An error that can be seen, as a share of how much the output varies.
CLEAR = 0.5
#: Sizes of transformations at which errors are measured, relative to the usual one.
SIZES = (0.01, 0.03, 0.1, 0.3, 1.0)


class Steps:
    """The steps of an audit, in one precision after the other."""

    def __init__(
        self,
        session: Session,
        elements: int,
        outputs: Mapping[str, str] | str | None,
        on_progress: Callable[[int, int], Any] | None,
    ) -> None:
        self.session, self.elements, self.asked = session, elements, outputs
        self.on_progress = on_progress or (lambda done, total: None)
        self.total = len(KINDS) * len(session.target.precisions) + 1
        self.done = 0
        self.findings: dict[str, Finding] = {}
        self.warnings: list[str] = []
        self.constant: list[str] = []
        self.stochastic = ""
        self.native = "float32"
        self.kinds: tuple[str, ...] = KINDS

    def step(self) -> None:
        self.done += 1
        self.on_progress(self.done, self.total)

    def measure(self, dtype: torch.dtype) -> None:
        """Everything in this precision; the first that works settles what the outputs are."""
        session = self.session
        first, last = not session.outputs, dtype == session.target.precisions[-1]
        with borrowed(session.target.modules, dtype):
            session.use(dtype)
            try:
                if first:
                    self.stochastic = self.find_random()
                session.at(0)
            except Exception as error:
                if last and first:
                    reason = str(error).strip().partition("\n")[0] or type(error).__name__
                    raise ValueError(f"model: fails on the data: {reason}") from error
                reason = str(error).strip().partition("\n")[0]
                self.warnings.append(
                    f"{precision_name(dtype)}: not measured, the model fails: {reason}"
                )
                return
            if first:
                self.settle_outputs()
                self.step()
            for kind in KINDS:
                self.measure_kind(kind, first)
                self.step()
            if first and dtype == torch.float64 and not self.constant and not self.stochastic:
                self.warnings += filter(None, [coarse(session)])

    def find_random(self) -> str:
        """What is random in the forward, in words; "" if nothing."""
        session = self.session
        data = joined(session.shapes[0], session.batched)
        with recorded(session.target.modules) as one:
            before = session.target(data, session.dtype)
        with recorded(session.target.modules) as two:
            after = session.target(data, session.dtype)
        if all(torch.equal(before[k].nan_to_num(), after[k].nan_to_num()) for k in before):
            return ""
        session.random = True
        place = first_random(one, two)
        where = f" {place}" if place else ""
        again = [session.run(data) for _ in range(2)]
        fixed = all(torch.equal(again[0][k], again[1][k]) for k in again[0])
        rest = "all calls were given the same random numbers"
        if not fixed:
            rest = "it stays so when the random numbers are fixed, so that errors contain it"
        return f"the same input gives other outputs each time{where}; {rest}"

    def settle_outputs(self) -> None:
        """What the outputs are, and how much they vary."""
        session = self.session
        base = session.at(0)
        if bad := [k for k, v in base.items() if not v.isfinite().all()]:
            raise ValueError(f"model: {bad[0]!r} is not finite for the data; nothing to compare")
        turn = "rotation" if session.shapes[0][0].pos.size(1) > 1 else "reflection"
        kinds = {"permutation": "permutation", "rotation": turn, "translation": "translation"}
        cases = {use: [session.case(kind, k) for k in (1, 2)] for use, kind in kinds.items()}
        after = {use: [session.run(c.after) for c in own] for use, own in cases.items()}
        tolerance = 1e4 * torch.finfo(session.dtype).eps
        for name, text in chosen_names(list(base), self.asked).items():
            options = candidates(name, base[name], cases["rotation"][0])
            options = told(name, text, options) if text else options
            errors = {
                use: [
                    max(
                        self.misfit(option, case, values[name])
                        for case, values in zip(own, after[use], strict=True)
                    )
                    for option in options
                ]
                for use, own in cases.items()
            }
            session.outputs.append(choose(options, errors, tolerance))
        self.constant = session.measure_spread()

    def misfit(self, option: Output, case: Case, found: torch.Tensor) -> float:
        """The error of a candidate, relative to the size of the output."""
        wanted = option.expected(self.session.at(case.origin[0])[option.name], case)
        if wanted.shape != found.shape:
            return math.inf
        size = max(float(wanted.abs().max()), float(found.abs().max()), 1e-300)
        return float((found - wanted).abs().max()) / size

    def measure_kind(self, kind: str, first: bool) -> None:
        """The errors of many elements of a kind."""
        session, precision = self.session, precision_name(self.session.dtype)
        if kind not in self.kinds:
            self.findings[kind] = Finding(kind, "unmeasured", reason="it was not asked for")
        finding = self.findings.get(kind)
        if finding is not None and finding.verdict == "unmeasured":
            return
        count = min(self.elements, 4) if kind == "flex" else self.elements
        errors: list[float] = []
        rounding, worst, case_of_worst = 0.0, -1.0, None
        outputs: dict[str, float] = {}
        for number in range(count):
            size = (0.1, 0.3, 1.0, 2.0)[number % 4] if kind == "affine" else 1.0
            try:
                case = session.case(kind, number, size)
                after = session.run(case.after)
                found = session.errors(case, after)
            except Undefined as error:
                self.findings[kind] = Finding(kind, "unmeasured", reason=str(error))
                return
            errors.append(max(found.values()))
            outputs = {k: max(e, outputs.get(k, 0.0)) for k, e in found.items()}
            if errors[-1] > worst:
                worst, case_of_worst = errors[-1], case
            if number % 3 == 0:  # of every shape, as there are four
                rounding = max(rounding, session.rounding(case, after))
        if finding is None:
            finding = self.findings[kind] = Finding(kind, "", outputs=outputs)
        finding.errors[precision], finding.rounding[precision] = errors, rounding
        finding.verdict, finding.error = verdict_of(finding.errors, finding.rounding, self.native)
        if not first:
            return
        if kind in SIZED:
            self.grow(finding)
        if finding.verdict != "rounding" and case_of_worst is not None:
            self.explain(finding, case_of_worst)

    def grow(self, finding: Finding) -> None:
        """The error against the size of the transformation."""
        for size in SIZES:
            errors = self.session.errors(self.session.case(finding.kind, 0, size))
            finding.sizes.append((size, max(errors.values())))

    def explain(self, finding: Finding, case: Case) -> None:
        """Where it breaks, and the smallest counterexample."""
        session = self.session
        case = self.smallest(finding, case)
        before, after = session.at(case.origin[0]), session.run(case.after)
        errors = session.errors(case, after)
        name = max(errors, key=lambda key: errors[key])
        output = next(o for o in session.outputs if o.name == name)
        finding.counterexample = Counterexample(
            case=case,
            output=output,
            precision=precision_name(session.dtype),
            before=before[name],
            expected=output.expected(before[name], case),
            after=after[name],
            spread=session.spread[name],
            error=errors[name],
            seed=session.seed,
        )
        finding.where = self.find_break(case, errors[name])

    def smallest(self, finding: Finding, case: Case) -> Case:
        """The same transformation, as small as it can be and still change the output clearly."""
        if finding.kind not in SIZED:
            return case
        session = self.session
        enough = min(finding.error / 2, CLEAR)
        enough = max(enough, 2 * ROUNDING * max(finding.rounding.values()))
        for size in (0.001, 0.01, 0.03, 0.1, 0.2, 0.5):
            if finding.kind == "flex" and size < 0.01:
                continue
            try:
                other = session.case(finding.kind, case.origin[1] - 1000 * session.seed, size)
                if max(session.errors(other).values()) >= enough:
                    return other
            except Undefined:
                continue
        return case

    def find_break(self, case: Case, error: float) -> Place | None:
        """The first submodule that breaks it."""
        session = self.session
        if not session.target.modules or case.kind == "flex":
            return None
        with recorded(session.target.modules) as before:
            session.run(case.before)
        with recorded(session.target.modules) as after:
            session.run(case.after)
        eps = torch.finfo(session.dtype).eps
        tolerance = math.sqrt(min(error, 1.0) * 100 * eps)
        return first_break(before, after, case, tolerance)

    def conclude(self) -> None:
        """What both precisions together say."""
        largest: dict[str, float] = {}
        for finding in self.findings.values():
            if finding.holds:  # which it may not have been in the first alone
                finding.where = finding.counterexample = None
                for precision, value in finding.rounding.items():
                    largest[precision] = max(value, largest.get(precision, 0.0))
        single = [plural(f.kind) for f in self.findings.values() if f.verdict == "single"]
        if single:
            self.warnings.append(
                f"{', '.join(single)}: hold to the rounding of float32, but not of float64; does "
                "the model hold constants in float32?"
            )
        if largest.get("float64", 0.0) > JUMP:
            self.warnings.append(
                "outputs jump: they change by more than 0.001 of how much they vary when the "
                "coordinates are rounded to float64"
            )
        elif largest.get("float32", 0.0) > 0.1:
            self.warnings.append(
                f"in float32, rounding changes outputs by up to {largest['float32']:.2g} of how "
                "much they vary with the coordinates"
            )


def precision_name(dtype: torch.dtype) -> str:
    """Such as "float64"."""
    return str(dtype).removeprefix("torch.")
