"""Whether a model agrees with itself: forces with the energy, batches with single graphs, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.audit._check_verdicts import (
    TOLERANCE,
    Skipped,
    energy_of,
    total,
    trusted,
    verdict,
    worst,
)
from symgnn.audit._derivatives import derivative
from symgnn.audit._findings import Check
from symgnn.audit._periodicity import PERIODIC_CHECKS
from symgnn.audit._session import Failure, Session, Values
from symgnn.audit._statelessness import inputs_kept, nothing_kept
from symgnn.audit._structures import is_periodic, joined, with_pos
from symgnn.audit._targets import CalculatorTarget
from symgnn.audit._tensor_graph import TensorGraph
from symgnn.geometry.sampling import cloud_of, random_direction

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph


def check_consistency(session: Session) -> dict[str, Check]:
    """All checks, by name; those that do not apply are "unmeasured"."""
    found = {}
    for name, check in {**CHECKS, **PERIODIC_CHECKS}.items():
        try:
            result = check(session)
        except Skipped as reason:
            result = Check(name, "unmeasured", str(reason))
        except Exception as error:  # a model may refuse what the check asks for
            result = Check(name, "unmeasured", f"the model fails: {Failure.of(error).reason}")
        result.name, result.required = name, name != "extensivity"
        found[name] = result
    return found


def forces_and_energy(session: Session) -> Check:
    """Forces equal -dE/dx, along random directions."""
    energy = energy_of(session)
    shape = session.samples[0].shapes[0][0].pos.shape
    vectors = [
        o
        for o in session.outputs
        if o.type in ("vector", "1x1o")
        and o.place == "node"
        and len(session.samples[0].graphs) == 1
    ]
    named = [o for o in vectors if "force" in o.name.lower() or o.name == "1"]
    if not named or session.at(0, 0)[named[0].name].shape != shape:
        raise Skipped("no output is the forces")
    forces, sample = named[0], session.samples[0]
    graph = sample.shapes[min(1, len(sample.shapes) - 1)][0]
    values = session.run(joined([graph], sample.batched))[forces.name]
    generator = torch.Generator().manual_seed(session.seed)
    step = 1e-3 * _reach(graph)
    wanted, found, uncertainties = [], [], []
    for _ in range(3):
        direction = torch.randn(shape, generator=generator, dtype=torch.float64)
        direction /= direction.norm()

        def along(t: float, direction: Tensor = direction) -> float:
            moved = with_pos(graph, graph.pos + t * direction)
            return total(session, joined([moved], sample.batched), energy)

        slope, uncertainty = derivative(along, step)
        wanted.append(-slope)
        uncertainties.append(uncertainty)
        found.append(float((values * direction).sum()))
    text = f"{forces.name!r} against -d {energy.name!r} / d pos"
    rough = trusted(session, forces, uncertainties)
    limit = TOLERANCE["forces"]
    return verdict(session, forces, torch.tensor(wanted), torch.tensor(found), text, limit, rough)


def _reach(graph: Graph) -> float:
    """A typical distance of neighbours."""
    from symgnn.audit._structures import spacing

    return float(spacing(graph.pos))


def batch_and_single(session: Session) -> Check:
    """The outputs of a graph in a batch equal its outputs alone."""
    parts, batch, singles = _batch(session)
    checks = []
    for output in session.outputs:
        if output.place == "graph" and not output.rows and batch[output.name].dim() == 0:
            raise Skipped("the model gives one number for a whole batch")
        if any(one[output.name].dim() == 0 for one in singles):
            raise Skipped("the output has no axis for the graphs of a batch")
        wanted = torch.cat([one[output.name] for one in singles])
        found = batch[output.name]
        text = f"{output.name!r} of {len(parts)} graphs in a batch against one by one"
        checks.append(verdict(session, output, wanted, found, text))
    return worst(checks)


def order_in_batch(session: Session) -> Check:
    """The order of the graphs in a batch does not matter."""
    parts, batch, singles = _batch(session)
    turned = session.run(joined(parts[::-1], True))
    checks = []
    for output in session.outputs:
        sizes = [len(one[output.name]) if one[output.name].dim() else 1 for one in singles]
        value = batch[output.name]
        if value.dim() == 0 or len(value) != sum(sizes):
            raise Skipped("the output has no rows for the graphs of a batch")
        wanted = torch.cat(value.split(sizes)[::-1])
        text = f"{output.name!r} of a batch in the other order"
        checks.append(verdict(session, output, wanted, turned[output.name], text))
    return worst(checks)


def _batch(session: Session) -> tuple[list[Graph], Values, list[Values]]:
    """Two graphs of different size, their batch, and the outputs of all."""
    sample = session.samples[0]
    if isinstance(session.target, CalculatorTarget):
        raise Skipped("a calculator takes one structure at a time")
    graph = sample.shapes[0][0]
    if isinstance(graph, TensorGraph):
        raise Skipped("the data is not a PyG graph, so it cannot be batched")
    others = [s.shapes[0][0] for s in session.samples[1:]]
    other = others[0] if others else sample.shapes[min(1, len(sample.shapes) - 1)][0]
    parts = [graph, other, graph]
    if not _takes_batches(session, graph):
        raise Skipped("the model takes no batch")
    singles = [session.run(joined([part], True)) for part in parts]
    return parts, session.run(joined(parts, True)), singles


def _takes_batches(session: Session, graph: Graph) -> bool:
    from symgnn.audit._arguments import WHOLE, parameters_of

    parameters = parameters_of(session.target.function)
    if not parameters:
        return False
    names = [p.name for p in parameters]
    first = parameters[0]
    whole = first.name in WHOLE or (first.name not in graph and first.annotation is not first.empty)
    return "batch" in names or whole


def extensivity(session: Session) -> Check:
    """The energy of two far copies is twice that of one."""
    energy, sample = energy_of(session), session.samples[0]
    graph = sample.shapes[0][0]
    if len(sample.graphs) > 1 or is_periodic(graph):
        raise Skipped("the data is a batch or periodic")
    if (0, energy.name) in session.constant:
        raise Skipped(f"{energy.name!r} does not depend on the coordinates")
    from symgnn.audit._structures import copies

    generator = torch.Generator().manual_seed(session.seed)
    far = 1e3 * cloud_of(graph.pos).radius * random_direction(session.n, generator)
    pair = copies(graph, torch.stack([torch.zeros_like(far), far]))
    if pair is None:
        raise Skipped("a graph of two copies cannot be built from this data")
    alone = total(session, joined([graph], sample.batched), energy)
    moved = with_pos(graph, graph.pos + far)
    other = total(session, joined([moved], sample.batched), energy)
    both = total(session, joined([pair], sample.batched), energy)
    text = f"{energy.name!r} of two far copies against twice that of one"
    wanted = torch.tensor([alone + other])
    return verdict(session, energy, wanted, torch.tensor([both]), text, 1e-5)


#: Signature: (session) -> Check
CHECKS: dict[str, Callable[[Session], Check]] = {
    "forces": forces_and_energy,
    "batch": batch_and_single,
    "batch order": order_in_batch,
    "extensivity": extensivity,
    "inputs kept": inputs_kept,
    "no cache": nothing_kept,
}
