"""The steps of an audit: what the outputs are, how far each kind is kept, where it breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from symgnn.audit._cases import Case
from symgnn.audit._elements import SIZED
from symgnn.audit._explaining import explain
from symgnn.audit._findings import Finding
from symgnn.audit._isolation import isolated
from symgnn.audit._precision import coarse
from symgnn.audit._representations import Undefined
from symgnn.audit._session import Failure, Session
from symgnn.audit._settling import find_random, reacts_to_features, settle_outputs
from symgnn.audit._verdicts import JUMP, ORDER, ROUNDING, Evidence
from symgnn.audit._worst_search import climbed, rotated, rotations
from symgnn.geometry import KINDS
from symgnn.geometry.symmetry import IMPLIED, plural

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
        with isolated(session.target.modules, dtype):
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
        """What the outputs are, and how much they vary on each sample."""
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
        session.jitter = {
            o.name: o.peaks(raw[o.name], session.n) for o in session.outputs if o.name in raw
        }
        for index in reversed(range(len(session.samples))):
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
            self.findings[kind] = Finding(kind, "unmeasured", reason="it was not asked for")
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
        """What was found of a wider kind that holds, so that this one need not be measured."""
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
        return largest

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
        """The verdict of the worst output; "vacuous" where none reacts to the coordinates."""
        evidence = self.evidence[finding.kind]
        judged = []
        for key, one in evidence.items():
            verdict, error, rounding = one.judge(self.native)
            if verdict == "approximate" and self._is_calculator:
                verdict = self._single(finding.kind, *key, one) or verdict
            judged.append((ORDER.index(verdict), error, rounding, key))
        given = [one for one in judged if not self.session.samples[one[3][0]].grown]
        if any(rank > 1 for rank, *_ in given):
            judged = given  # copies side by side tell of faults that were not seen before
        finding.outputs, finding.absolute, finding.verdicts = {}, {}, {}
        for rank, error, _, (index, name) in judged:
            finding.outputs[name] = max(error, finding.outputs.get(name, 0.0))
            absolute = evidence[index, name].absolute
            finding.absolute[name] = max(absolute, finding.absolute.get(name, 0.0))
            known = ORDER.index(finding.verdicts.get(name, "rounding"))
            finding.verdicts[name] = ORDER[max(known, rank)]
        order = {key: not self.session.samples[key[0]].grown for key in evidence}
        decides = max(judged, key=lambda one: (one[0], order[one[3]], one[1]))
        rank, finding.error, rounding, finding.key = decides
        finding.verdict = ORDER[rank]
        best = "float64" if "float64" in finding.errors else "float32"
        for precision in finding.errors:
            own = evidence[finding.key].rounding.get(precision)
            finding.rounding[precision] = float(own.max()) if own is not None and len(own) else 0.0
        finding.rounding[best] = rounding
        reacts = any(one.reacts for one in evidence.values())
        if finding.kind == "permutation":
            reacts = reacts or self.reacts_to_features
        if rank <= 1 and not reacts:
            finding.verdict = "vacuous"
            finding.reason = (
                "no output depends on the coordinates here; pass a structure whose nodes interact"
            )

    @property
    def _is_calculator(self) -> bool:
        return self.session.target.precisions == (torch.float64,)

    def _single(self, kind: str, index: int, name: str, evidence: Evidence) -> str:
        """ "single" where the error is lost in what rounding to float32 does to a calculator."""
        if "float32" not in evidence.rounding:
            case = self.worst[kind][index, name][1]
            after = self.session.attempt(case.after)
            if isinstance(after, Failure):
                return ""
            eps = torch.finfo(torch.float32).eps
            found = self.session.rounding(case, after, eps)
            if name in found:
                evidence.add_rounding("float32", found[name])
        verdict = evidence.judge("float32")[0]
        return verdict if verdict != "broken" else ""

    def _search(self, finding: Finding) -> None:
        """Try many more rotations; where one has an error, look for a larger one near it."""
        session, precision = self.session, precision_name(self.session.dtype)
        if self.search <= 0 or session.n < 2 or finding.verdict in ("vacuous", "broken"):
            return
        for index, sample in enumerate(session.samples):
            count = self.search if index == 0 and not sample.grown else self.search // 4
            for number, element in enumerate(rotations(session, index, count)):
                case = rotated(session, index, element, number)
                after = session.attempt(case.after)
                if self._stands_out(case, after, precision):
                    self._note("rotation", case, after, precision)
        self._judge(finding)
        if finding.verdict == "approximate":
            key = finding.key
            error, case = self.worst["rotation"][key]
            if case.origin[2] >= 10_000_000:
                case, error = climbed(session, case, error)
                self._note("rotation", case, session.attempt(case.after), precision)
                self._judge(finding)

    def _stands_out(self, case: Case, after: Any, precision: str) -> bool:
        """Whether an error is more than rounding, in general and for this very transformation."""
        known = self.evidence["rotation"]
        own: Mapping[str, torch.Tensor] | None = None
        for name, (error, _) in self.session.errors(case, after).items():
            rounding = known[case.origin[0], name].rounding.get(precision)
            usual = rounding if rounding is not None and rounding.shape == error.shape else 0.0
            if bool((error <= ROUNDING * usual).all()):
                continue
            if isinstance(after, Failure):
                return True
            own = self.session.rounding(case, after) if own is None else own
            here = own.get(name)
            if here is None or here.shape != error.shape or float(here.max()) > JUMP:
                return True
            if bool((error > ROUNDING * torch.maximum(here, torch.as_tensor(usual))).any()):
                return True
        return False

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
        """What both precisions together say."""
        for kind in KINDS:
            wider = self._implied(kind)
            if kind in self.kinds and kind not in self.evidence and wider is not None:
                plain: dict[str, Any] = {"errors": {}, "rounding": {}, "sizes": []}
                self.findings[kind] = replace(wider, kind=kind, **plain)
            elif kind not in self.findings:
                self.findings[kind] = Finding(kind, "unmeasured", reason="it was not tried")
        largest: dict[str, float] = {}
        for finding in self.findings.values():
            if finding.holds:  # which it may not have been in the first alone
                finding.where = finding.counterexample = None
                finding.suggestion = finding.not_located = ""
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
