"""Whether a call leaves nothing behind: inputs are kept, and nothing of the calls before."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from symgnn.audit._check_verdicts import Skipped, verdict, worst
from symgnn.audit._findings import Check
from symgnn.audit._isolation import contents_kept, seed_all
from symgnn.audit._module_search import containers_in
from symgnn.audit._session import Session, Values
from symgnn.audit._structures import joined, with_pos
from symgnn.audit._targets import CalculatorTarget, cast


def inputs_kept(session: Session) -> Check:
    """The model does not write into its inputs."""
    sample = session.samples[0]
    data = cast(joined(sample.shapes[0], sample.batched), session.dtype)
    before = {k: v.clone() for k, v in data.to_dict().items() if isinstance(v, Tensor)}
    session.target.call(data)
    after = data.to_dict()
    changed = [k for k, v in before.items() if not _equal(v, after.get(k))]
    if changed:
        text = f"it writes into {', '.join(changed)} of its input"
        return Check("", "broken", text, math.inf, math.inf)
    return Check("", "holds", "its inputs are as they were after a call")


def _equal(before: Tensor, after: object) -> bool:
    return (
        isinstance(after, Tensor)
        and before.shape == after.shape
        and torch.equal(before.nan_to_num(), after.detach().nan_to_num())
    )


def first_calls(session: Session) -> list[tuple[Values, Values]]:
    """Outputs of a graph in the very first call, and after a call with another graph.

    The state of the modules, and of the containers that a function refers to, is restored in
    between, so that both start from the same model.
    """
    sample = session.samples[0]
    held = (
        []
        if isinstance(session.target, CalculatorTarget)
        else containers_in(session.target.function)
    )
    if not (session.target.modules or held) or len(sample.shapes) < 2:
        return []
    data, other = (joined(shape, sample.batched) for shape in sample.shapes[:2])
    for dtype in session.target.precisions:
        try:
            with contents_kept(held), session.target.isolated(dtype):
                seed_all(session.seed)
                before = session.target(data, dtype)
            with contents_kept(held), session.target.isolated(dtype):
                session.target(other, dtype)
                seed_all(session.seed)
                return [(before, session.target(data, dtype))]
        except Exception:  # in the other precision it may work
            continue
    return []


def nothing_kept(session: Session) -> Check:
    """Outputs of the model do not depend on earlier calls."""
    sample = session.samples[0]
    if session.random:
        raise Skipped("the model is random")
    shapes = [joined(s, sample.batched) for s in sample.shapes[:2]]
    others = [joined(s.shapes[0], s.batched) for s in session.samples[1:]]
    seed_all(session.seed)
    wanted = session.run(shapes[0])
    for other in (shapes[-1], *others):
        session.attempt(other)
    found = session.run(shapes[0])
    same = session.run(with_pos(shapes[0], shapes[0].pos.clone()))
    checks = []
    for output in session.outputs:
        for one, two in [(wanted, found), (wanted, same), *session.first]:
            text = f"{output.name!r} after calls with other graphs"
            checks.append(verdict(session, output, one[output.name], two[output.name], text, 1e-5))
    return worst(checks)
