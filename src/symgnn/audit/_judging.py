"""The verdict on one kind of transformation, from the evidence of all outputs and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from symgnn.audit._cases import Case
from symgnn.audit._findings import Finding
from symgnn.audit._session import Failure, Session
from symgnn.audit._verdicts import JUMP, ORDER, Evidence
from symgnn.geometry.symmetry import plural

#: The evidence by the number of the sample and the name of the output.
Known = Mapping[tuple[int, str], Evidence]
#: The largest error and its case, likewise.
Worst = Mapping[tuple[int, str], tuple[float, Case]]


def judge(
    session: Session, finding: Finding, evidence: Known, worst: Worst, native: str, features: bool
) -> None:
    """Set the verdict of the worst output; "vacuous" where none reacts to the coordinates.

    Args:
        session: The samples and the target.
        finding: What is set.
        evidence: What was measured of its kind.
        worst: The transformations with the largest errors.
        native: The precision that the model is in.
        features: Whether an output reacts to the features of nodes.
    """
    is_calculator = session.target.precisions == (torch.float64,)
    judged = []
    for key, one in evidence.items():
        verdict, error, rounding = one.judge(native)
        if verdict == "approximate" and is_calculator:
            verdict = _single(session, worst[key][1], key[1], one) or verdict
        judged.append((ORDER.index(verdict), error, rounding, key))
    given = [one for one in judged if not session.samples[one[3][0]].grown]
    if any(rank > 1 for rank, *_ in given):
        judged = given  # copies side by side tell of faults that were not seen before
    finding.outputs, finding.absolute, finding.verdicts = {}, {}, {}
    for rank, error, _, (index, name) in judged:
        finding.outputs[name] = max(error, finding.outputs.get(name, 0.0))
        absolute = evidence[index, name].absolute
        finding.absolute[name] = max(absolute, finding.absolute.get(name, 0.0))
        known = ORDER.index(finding.verdicts.get(name, "rounding"))
        finding.verdicts[name] = ORDER[max(known, rank)]
    order = {key: not session.samples[key[0]].grown for key in evidence}
    decides = max(judged, key=lambda one: (one[0], order[one[3]], one[1]))
    rank, finding.error, rounding, finding.key = decides
    finding.verdict = ORDER[rank]
    for precision in finding.errors:
        own = evidence[finding.key].rounding.get(precision)
        finding.rounding[precision] = float(own.max()) if own is not None and len(own) else 0.0
    finding.rounding["float64" if "float64" in finding.errors else "float32"] = rounding
    reacts = any(one.reacts for one in evidence.values())
    if rank <= 1 and not (reacts or (features and finding.kind == "permutation")):
        finding.verdict = "vacuous"
        finding.reason = (
            "no output depends on the coordinates here; pass a structure whose nodes interact"
        )


def rounding_warnings(session: Session, findings: Sequence[Finding]) -> list[str]:
    """The precision that the model computes in, according to the findings that hold."""
    warnings = []
    single = [plural(finding.kind) for finding in findings if finding.verdict == "single"]
    if single:
        exact = torch.finfo(torch.float64).eps
        in_float32 = session.target.coarsest(torch.float64) > exact
        why = "the model is in" if in_float32 else "does the model hold constants in"
        warnings.append(
            f"{', '.join(single)}: hold to the rounding of float32, but not of float64; {why} "
            f"float32{'' if in_float32 else '?'}"
        )
    largest: dict[str, float] = {}
    for finding in findings:
        for precision, value in finding.rounding.items() if finding.holds else ():
            largest[precision] = max(value, largest.get(precision, 0.0))
    if largest.get("float64", 0.0) > JUMP:
        warnings.append(
            "outputs jump: they change by more than 0.001 of how much they vary when the "
            "coordinates are rounded to float64"
        )
    elif largest.get("float32", 0.0) > 0.1:
        warnings.append(
            f"in float32, rounding changes outputs by up to {largest['float32']:.2g} of how much "
            "they vary with the coordinates"
        )
    return warnings


def _single(session: Session, case: Case, name: str, evidence: Evidence) -> str:
    """ "single" where the error is lost in what rounding to float32 does to a calculator."""
    if "float32" not in evidence.rounding:
        after = session.attempt(case.after)
        if isinstance(after, Failure):
            return ""
        found = session.rounding(case, after, torch.finfo(torch.float32).eps)
        if name in found:
            evidence.add_rounding("float32", found[name])
    verdict = evidence.judge("float32")[0]
    return verdict if verdict != "broken" else ""
