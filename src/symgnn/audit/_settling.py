"""Before measuring: is the model random, what are its outputs, and do they react?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from symgnn.audit._cases import Case
from symgnn.audit._choosing import SINGLE, choose, chosen_names, told
from symgnn.audit._fitting import elements as fitted_elements
from symgnn.audit._fitting import fit_representation
from symgnn.audit._inputs import followed
from symgnn.audit._outputs import Output, candidates
from symgnn.audit._recording import first_random, recorded
from symgnn.audit._session import Failure, Session, Values
from symgnn.audit._structures import deformed, joined
from symgnn.geometry import Affine


def find_random(session: Session) -> str:
    """The random parts of forward, in words; "" if there are none.

    Outputs that differ by rounding alone, since threads add in any order, are not random; the
    difference counts as rounding.
    """
    sample = session.samples[0]
    data = joined(sample.shapes[0], sample.batched)
    with recorded(session.target.modules) as one:
        before = session.target(data, session.dtype)
    with recorded(session.target.modules) as two:
        after = session.target(data, session.dtype)
    plain = session.target(data, session.dtype)  # without hooks
    if not any(_differs(before[k], other[k]) for other in (after, plain) for k in before):
        session.jitter = {
            k: (after[k] - before[k]).abs() for k in before if _same(before, after, k)
        }
        return ""
    session.random = True
    place = first_random(one, two)
    where = f" {place}" if place else ""
    again = [session.run(data) for _ in range(2)]
    fixed = not any(_differs(again[0][k], again[1][k]) for k in again[0])
    rest = "all calls were given the same random numbers"
    if not fixed:
        rest = "it stays so when the random numbers are fixed, so that errors contain it"
    return f"the same input gives other outputs each time{where}; {rest}"


def _same(one: Values, two: Values, key: str) -> bool:
    return one[key].shape == two[key].shape


def _differs(a: Tensor, b: Tensor) -> bool:
    """Whether two outputs for the same input differ by more than single precision does."""
    if a.shape != b.shape:
        return True
    a, b = a.nan_to_num(), b.nan_to_num()
    size = float(a.abs().max()) if a.numel() else 0.0
    return bool(((a - b).abs() > 1e-6 * size).any())


def settle_outputs(session: Session, asked: Mapping[str, str] | str | None) -> None:
    """Infer what the outputs are, as far as the user did not say."""
    base = session.at(0, 0)
    if bad := [k for k, v in base.items() if not v.isfinite().all()]:
        raise ValueError(f"model: {bad[0]!r} is not finite for the data; nothing to compare")
    turn = "rotation" if session.n > 1 else "reflection"
    kinds = {"permutation": "permutation", "rotation": turn, "translation": "translation"}
    kinds["reflection"] = "reflection"
    cases = {use: [session.case(kind, k) for k in (1, 2)] for use, kind in kinds.items()}
    after = {use: [session.attempt(c.after) for c in own] for use, own in cases.items()}
    tolerance = 1e4 * torch.finfo(session.dtype).eps
    for name, text in chosen_names(list(base), asked).items():
        value = base[name]
        if not value.numel():
            if text or len(base) == 1:
                raise ValueError(f"model: {name!r} is empty for the data; nothing to compare")
            continue
        options = candidates(name, value, cases["rotation"][0])
        if text:
            options = told(name, text, options, value, session.n)
        errors = {
            use: [
                max(
                    misfit_of(session, option, case, found)
                    for case, found in zip(own, after[use], strict=True)
                )
                for option in options
            ]
            for use, own in cases.items()
        }
        output, error = choose(options, errors, tolerance)
        if not text and error > max(tolerance, SINGLE) and session.n == 3:
            output = _fitted(session, output, options, tolerance) or output
        session.outputs.append(_symmetric(session, output))


def hints(session: Session) -> list[str]:
    """For outputs that fit no type, what they may be meant to be."""
    found = []
    for output in session.outputs:
        if output.known != "unclear":
            continue
        order = _order_of_axes(session, output) if 1 < session.n < 4 else ""
        if order:
            found.append(
                f"{output.name!r}: moves like vectors whose components are in the order {order}; "
                "the coordinates have another one"
            )
        else:
            found.append(
                f"{output.name!r}: fits no type, and is judged as {output.type}; say what it is "
                f"meant to be with outputs={{{output.name!r}: ...}}"
            )
    return found


def _order_of_axes(session: Session, output: Output) -> str:
    """The order of components, such as "yzx", in which an output is made of vectors; else ""."""
    value, cases = session.at(0, 0)[output.name], [session.case("rotation", k) for k in (1, 2)]
    options = [o for o in candidates(output.name, value, cases[0]) if o.type == "vector"]
    after = [session.attempt(case.after) for case in cases]
    for option in options:
        axis = option.axes[0]
        if value.size(axis) != session.n:
            continue
        for order in itertools.permutations(range(session.n)):
            index = torch.tensor(order)
            errors = []
            for case, moved in zip(cases, after, strict=True):
                before = session.at(0, case.origin[1])[output.name]
                if isinstance(moved, Failure) or moved[output.name].shape != before.shape:
                    return ""
                wanted = option.expected(before.index_select(axis, index), case)
                gap = moved[output.name].index_select(axis, index) - wanted
                errors.append(float(gap.abs().max()) / max(float(wanted.abs().max()), 1e-300))
            if max(errors) < SINGLE:
                places = sorted(range(session.n), key=lambda k: order[k])
                return "".join("xyz"[k] for k in places)
    return ""


def misfit_of(session: Session, option: Output, case: Case, found: Values | Failure) -> float:
    """The error of a candidate, relative to how much the output varies and to its size."""
    if isinstance(found, Failure) or option.name not in found:
        return 0.0  # says nothing of the type
    value = found[option.name]
    wanted = option.expected(session.at(0, case.origin[1])[option.name], case)
    if wanted.shape != value.shape:
        return math.inf
    if not bool(value.isfinite().all()):
        return 0.0
    if not value.numel():
        return 0.0
    size = max(float(wanted.abs().max()), float(value.abs().max()), 1e-300)
    return float((value - wanted).abs().max()) / size


def _fitted(
    session: Session, output: Output, options: list[Output], tolerance: float
) -> Output | None:
    """The output with irreps that fit it, if any do."""
    plain = next(o for o in options if o.type == "invariant" and o.place == output.place)
    sample = session.samples[0]
    generator = torch.Generator().manual_seed(session.seed + 2)
    maps = [Affine(matrix, torch.zeros(3, dtype=torch.float64)) for matrix in fitted_elements()]

    def values(k: int) -> tuple[Tensor, list[Tensor]]:
        graphs = sample.shapes[0]
        if k:
            graphs = [followed(deformed(g, generator), session.inputs) for g in graphs]
        empty = (None,) * len(graphs)
        inputs = tuple(session.inputs)
        cases = [
            Case("affine", tuple(graphs), (m,) * len(graphs), empty, inputs, sample.batched)
            for m in maps
        ]
        before = session.run(cases[0].before)[output.name]
        return before, [session.run(case.after)[output.name] for case in cases]

    try:
        return fit_representation(plain, values, max(tolerance, 1e-7))
    except Exception:  # the model fails on some shape, or nothing fits
        return None


def _symmetric(session: Session, output: Output) -> Output:
    """A tensor that is symmetric for every shape is called so."""
    if output.type != "tensor" or output.known == "told":
        return output
    for shape in range(len(session.samples[0].shapes)):
        parts = output.parts(session.at(0, shape)[output.name], session.n)
        square = parts.reshape(-1, session.n, session.n)
        if float((square - square.mT).abs().max()) > 1e-6 * float(square.abs().max()):
            return output
    return replace(output, type="symmetric tensor")


def reacts_to_features(session: Session) -> bool:
    """Whether an output changes with the features of a node, so that permutations say something."""
    sample = session.samples[0]
    graphs = [graph.clone() for graph in sample.shapes[0]]
    graph = graphs[0]
    for key, value in graph.to_dict().items():
        if key in ("pos", "batch") or not isinstance(value, Tensor) or not graph.is_node_attr(key):
            continue
        if value.is_floating_point():
            value = value.clone()
            value[0] += 1.0
            graph[key] = value
        elif bool((value != value[0]).any()):
            other = int((value != value[0]).reshape(len(value), -1).any(1).nonzero()[0])
            value = value.clone()
            value[0] = value[other]
            graph[key] = value
    found = session.attempt(joined(graphs, sample.batched))
    if isinstance(found, Failure):
        return False
    before = session.at(0, 0)
    names = [o.name for o in session.outputs]
    return any(
        found[k].shape != before[k].shape or not torch.equal(found[k], before[k])
        for k in names
        if k in found
    )
