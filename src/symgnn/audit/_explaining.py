"""Why a symmetry does not hold: the smallest counterexample, and the submodule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symgnn.audit._cases import Case
from symgnn.audit._counterexample import Counterexample
from symgnn.audit._elements import SIZED
from symgnn.audit._locating import locate
from symgnn.audit._repairs import suggestion
from symgnn.audit._representations import Undefined
from symgnn.audit._session import Failure, Session
from symgnn.audit._verdicts import ROUNDING

if TYPE_CHECKING:
    from symgnn.audit._findings import Finding

#: An error that can be seen, as a share of how much the output varies.
CLEAR = 0.5


def explain(session: Session, finding: Finding, case: Case, name: str, located: bool) -> None:
    """Add where it breaks, and the smallest counterexample, for the output that breaks most."""
    case = smallest(session, finding, case, name)
    sample, shape, _ = case.origin
    before, after = session.at(sample, shape), session.attempt(case.after)
    output = next(o for o in session.outputs if o.name == name)
    wanted = output.expected(before[name], case)
    errors = session.errors(case, after)
    error = float(errors[name][0].max()) if name in errors else float("inf")
    failure = after.reason if isinstance(after, Failure) else ""
    found = wanted.new_zeros(0) if isinstance(after, Failure) else after[name]
    finding.counterexample = Counterexample(
        case=case,
        output=output,
        precision=str(session.dtype).removeprefix("torch."),
        before=before[name],
        expected=wanted,
        after=found,
        spread=session.spread[sample, name],
        error=error,
        seed=session.seed,
        failure=failure,
        sample=session.samples[sample].name,
    )
    if failure:
        finding.not_located = "the model raises an error"
    elif located:
        found_at = locate(session, case, error)
        finding.where, finding.profile = found_at.place, found_at.profile
        finding.not_located = found_at.reason
        finding.suggestion = suggestion(session, finding)


def smallest(session: Session, finding: Finding, case: Case, name: str) -> Case:
    """The same transformation, as small as it can be and still change the output clearly."""
    if finding.kind not in SIZED or case.origin[2] >= 10_000_000:
        return case
    sample, _, seed = case.origin
    enough = min(finding.error / 2, CLEAR)
    enough = max(enough, 2 * ROUNDING * max(finding.rounding.values(), default=0.0))
    for size in (0.001, 0.01, 0.03, 0.1, 0.2, 0.5):
        if finding.kind in ("flex", "angle-flex") and size < 0.01:
            continue
        try:
            other = session.case(finding.kind, seed - 1000 * session.seed, size, sample)
            found = session.errors(other, session.attempt(other.after))
            if name in found and float(found[name][0].max()) >= enough:
                return other
        except Undefined:
            continue
    return case
