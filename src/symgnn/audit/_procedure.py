"""The steps of an audit: what the outputs are, how far each kind is kept, where it breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from symgnn.audit._cases import Case
from symgnn.audit._elements import SIZED
from symgnn.audit._explaining import explain
from symgnn.audit._findings import NOT_ASKED, Finding
from symgnn.audit._judging import judge, rounding_warnings
from symgnn.audit._precision import coarse
from symgnn.audit._representations import Undefined
from symgnn.audit._session import Failure, Session
from symgnn.audit._settling import find_random, hints, reacts_to_features, settle_outputs
from symgnn.audit._verdicts import APPROXIMATE, Evidence
from symgnn.audit._worst_search import climbed, rotated, rotations, stands_out
from symgnn.geometry import KINDS
from symgnn.geometry.symmetry import IMPLIED

#: Sizes of transformations at which errors are measured, relative to the usual one.
SIZES = (0.01, 0.03, 0.1, 0.3, 1.0)
#: Kinds that are measured on copies side by side too, and located in the model.
RIGID = ("permutation", "translation", "rotation", "reflection")


class Procedure:
    """The steps of an audit, in one precision after the other."""

    def __init__(
        self,
        session: Session,
        elements: int,
        outputs: Mapping[str, str] | str | None,
        kinds: tuple[str, ...],
        search: int,
        native: str,
        on_progress: Callable[[int, int], Any] | None,
    ) -> None:
        self.session, self.elements, self.asked = session, elements, outputs
        self.kinds, self.search, self.native = kinds, search, native
        self.on_progress = on_progress or (lambda done, total: None)
        self.total = len(kinds) * len(session.target.precisions) + 2
        self.done = 0
        self.findings: dict[str, Finding] = {}
        self.evidence: dict[str, dict[tuple[int, str], Evidence]] = {}
        self.worst: dict[str, dict[tuple[int, str], tuple[float, Case]]] = {}
        self.warnings: list[str] = []
        self.hints: list[str] = []  # on outputs that fit no type
        self.stochastic = ""
        self.reacts_to_features = False

    def step(self) -> None:
        """Count one step for the bar."""
        self.done += 1
        self.on_progress(self.done, self.total)

    @property
    def constant(self) -> list[str]:
        """The outputs that no sample's coordinates change."""
        session = self.session
        return [
            o.name
            for o in session.outputs
            if all((k, o.name) in session.constant for k in range(len(session.samples)))
        ]

    def measure(self, dtype: torch.dtype, after: Callable[[], None] | None = None) -> None:
        """Everything in this precision; the first that works settles what the outputs are.

        `after` is called at the end, while the model is still in this precision, the first time.
        """
        session = self.session
        first, last = not session.outputs, dtype == session.target.precisions[-1]
        with session.target.isolated(dtype):
            session.use(dtype)
            try:
                if first:
                    self.stochastic = find_random(session)
                session.at(0, 0)
            except Exception as error:
                self._failed(error, dtype, last and first)
                return
            if first:
                self._settle()
                self.step()
            for kind in KINDS:
                self.measure_kind(kind, first)
                if kind in self.kinds:
                    self.step()
            if first:
                if dtype == torch.float64 and not self.constant and not self.stochastic:
                    self.warnings += filter(None, [coarse(session)])
                found = [finding.verdict for finding in self.findings.values()]
                session.single = (
                    "single" in found
                    or any("single precision" in warning for warning in self.warnings)
                    or session.target.coarsest(dtype) > torch.finfo(dtype).eps
                )
                if after is not None:
                    after()
                self.step()

    def _failed(self, error: Exception, dtype: torch.dtype, fatal: bool) -> None:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        if fatal:
            raise ValueError(f"model: fails on the data: {reason}") from error
        name = precision_name(dtype)
        self.warnings.append(f"{name}: not measured, the model fails: {reason}")

    def _settle(self) -> None:
        """The types of the outputs, and how much they vary on each sample."""
        session = self.session
        raw = session.jitter
        for index in reversed(range(len(session.samples))):
            sample = session.samples[index]
            failure = session.drop_failing_shapes(index)
            if failure is not None and sample.grown:
                del session.samples[index]  # it takes graphs of this size alone
            elif failure is not None:
                raise ValueError(
                    f"model: fails on {sample.name or 'the data'}: "
                    f"{failure.reason.partition(': ')[2] or failure.reason}"
                )
        settle_outputs(session, self.asked)
        self.hints = hints(session)
        session.jitter = {
            o.name: o.peaks(raw[o.name], session.n) for o in session.outputs if o.name in raw
        }
        for index in reversed(range(len(session.samples))):
            sample, own = session.samples[index], session.at(index, 0)
            if sample.grown and not all(
                o.has_rows_for(own[o.name], sample.graphs) for o in session.outputs
            ):
                del session.samples[index]  # it makes edges of its own
                continue
            try:
                session.measure_spread(index)
            except (ValueError, KeyError, RuntimeError):
                if not session.samples[index].grown:
                    raise
                del session.samples[index]
        self.reacts_to_features = bool(self.constant) and reacts_to_features(session)

    # ---- one kind of transformation

    def measure_kind(self, kind: str, first: bool) -> None:
        """The errors of many elements of a kind, on every sample."""
        if kind not in self.kinds:
            self.findings[kind] = Finding(kind, "unmeasured", reason=NOT_ASKED)
        finding = self.findings.get(kind)
        if finding is not None and finding.verdict == "unmeasured":
            return
        if self._implied(kind) is not None:
            return
        reason: Undefined | None = None
        errors: list[float] = []
        for index, sample in enumerate(self.session.samples):
            if sample.grown and kind not in RIGID:
                continue
            try:
                found = self._measure_sample(kind, index)
            except Undefined as error:
                reason = error
                continue
            errors += [] if sample.grown else found
        if kind not in self.evidence:
            self.findings[kind] = Finding(kind, "unmeasured", reason=str(reason))
            return
        finding = self.findings.setdefault(kind, Finding(kind, ""))
        finding.errors[precision_name(self.session.dtype)] = errors
        self._judge(finding)
        if first:
            if kind == "rotation":
                self._search(finding)
            if kind in SIZED:
                self._grow(finding)
            if finding.verdict not in ("rounding", "vacuous"):
                self._explain(finding)

    def _implied(self, kind: str) -> Finding | None:
        """The finding of a wider kind that holds, so that this one need not be measured."""
        for wide, narrow in IMPLIED.items():
            found = self.findings.get(wide)
            if kind in narrow and found is not None and found.holds:
                return found
        return None

    def _count(self, kind: str, index: int) -> int:
        if self.session.samples[index].grown:
            return max(2, self.elements // 3)
        return min(self.elements, 4) if kind in ("flex", "angle-flex") else self.elements

    def _measure_sample(self, kind: str, index: int) -> list[float]:
        session, precision = self.session, precision_name(self.session.dtype)
        largest: list[float] = []
        for number in range(self._count(kind, index)):
            size = (0.1, 0.3, 1.0, 2.0)[number % 4] if kind == "affine" else 1.0
            case = session.case(kind, number, size, index)
            after = session.attempt(case.after)
            largest.append(self._note(kind, case, after, precision))
            if not isinstance(after, Failure) and (number < 2 or number % 3 == 0):
                self._note_rounding(kind, index, precision, session.rounding(case, after))
        self._note_rounding_of_worst(kind, index, precision)
        return largest

    def _note_rounding_of_worst(self, kind: str, index: int, precision: str) -> None:
        """Look closer at rounding where an error is small and yet more than what rounding did.

        A root of a sum that cancels, as on the diagonal of `torch.cdist`, is rough at few places.
        """
        session = self.session
        for output in session.outputs:
            evidence = self.evidence.get(kind, {}).get((index, output.name))
            if evidence is None or not 0 < evidence.excess(precision) < APPROXIMATE:
                continue
            case = self.worst[kind][index, output.name][1]
            after = session.attempt(case.after)
            if not isinstance(after, Failure):
                found = session.rounding(case, after, repeats=8)
                self._note_rounding(kind, index, precision, found)

    def _note(self, kind: str, case: Case, after: Any, precision: str) -> float:
        """Add the errors of one element to the evidence; give the largest."""
        index, errors = case.origin[0], self.session.errors(case, after)
        own = self.evidence.setdefault(kind, {})
        worst = self.worst.setdefault(kind, {})
        largest = 0.0
        for name, (error, absolute) in errors.items():
            key = (index, name)
            reacts = key not in self.session.constant
            evidence = own.setdefault(key, Evidence(reacts))
            evidence.add(precision, error, absolute)
            top = float(error.max()) if len(error) else 0.0
            largest = max(largest, top)
            if top > worst.get(key, (-1.0, case))[0]:
                worst[key] = top, case
        return largest

    def _note_rounding(
        self, kind: str, index: int, precision: str, found: Mapping[str, torch.Tensor]
    ) -> None:
        for name, rounding in found.items():
            evidence = self.evidence.get(kind, {}).get((index, name))
            if evidence is not None:
                evidence.add_rounding(precision, rounding)

    def _judge(self, finding: Finding) -> None:
        kind, features = finding.kind, self.reacts_to_features
        evidence, worst = self.evidence[kind], self.worst[kind]
        judge(self.session, finding, evidence, worst, self.native, features)

    def _search(self, finding: Finding) -> None:
        """Try many more rotations; where one has an error, look for a larger one near it."""
        session, precision = self.session, precision_name(self.session.dtype)
        if self.search <= 0 or session.n < 2 or finding.verdict in ("vacuous", "broken"):
            return
        known = self.evidence["rotation"]
        for index, sample in enumerate(session.samples):
            count = self.search if index == 0 and not sample.grown else self.search // 4
            for number, element in enumerate(rotations(session, index, count)):
                case = rotated(session, index, element, number)
                after = session.attempt(case.after)
                if stands_out(session, known, case, after, precision):
                    self._note("rotation", case, after, precision)
        self._judge(finding)
        if finding.verdict == "approximate":
            key = finding.key
            error, case = self.worst["rotation"][key]
            if case.origin[2] >= 10_000_000:
                case, error = climbed(session, case, error)
                self._note("rotation", case, session.attempt(case.after), precision)
                self._judge(finding)

    def _grow(self, finding: Finding) -> None:
        """The error against the size of the transformation."""
        index = finding.key[0]
        try:
            for size in SIZES:
                error = self.session.largest(self.session.case(finding.kind, 0, size, index))
                finding.sizes.append((size, error))
        except Undefined:
            finding.sizes.clear()

    def _explain(self, finding: Finding) -> None:
        index, name = finding.key
        case = self.worst[finding.kind][index, name][1]
        explain(self.session, finding, case, name, located=True)

    def conclude(self) -> None:
        """The finding that follows from both precisions."""
        for kind in KINDS:
            wider = self._implied(kind)
            if kind in self.kinds and kind not in self.evidence and wider is not None:
                plain: dict[str, Any] = {"errors": {}, "rounding": {}, "sizes": []}
                self.findings[kind] = replace(wider, kind=kind, **plain)
            elif kind not in self.findings:
                self.findings[kind] = Finding(kind, "unmeasured", reason="it was not tried")
        for finding in self.findings.values():
            if finding.holds:  # which it may not have been in the first precision alone
                finding.where = finding.counterexample = None
                finding.suggestion = finding.not_located = ""
        self.warnings += rounding_warnings(self.session, list(self.findings.values()))


def precision_name(dtype: torch.dtype) -> str:
    """Such as "float64"."""
    return str(dtype).removeprefix("torch.")
