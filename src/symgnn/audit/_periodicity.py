"""Checks of models of periodic structures: stress, shifts by the lattice, cells and supercells."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.audit._check_verdicts import TOLERANCE, Skipped, energy_of, trusted, verdict, worst
from symgnn.audit._derivatives import derivative
from symgnn.audit._findings import Check
from symgnn.audit._outputs import Output
from symgnn.audit._session import Session
from symgnn.audit._structures import cell_keys, copies, is_periodic, joined, with_pos

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph


def _periodic(session: Session) -> tuple[Graph, str, Tensor]:
    """The graph, the name of its cell, and the cell `[n, n]`."""
    sample = session.samples[0]
    graph = sample.shapes[min(1, len(sample.shapes) - 1)][0]
    keys = list(cell_keys(graph))
    if not keys or not is_periodic(graph) or len(sample.graphs) > 1:
        raise Skipped("the data is not periodic")
    if graph.edge_index is not None:
        raise Skipped("the data has edges, which belong to one cell")
    if not bool(torch.as_tensor(graph.to_dict().get("pbc", True)).all()):
        raise Skipped("the data is not periodic in all directions")
    return graph, keys[0], graph[keys[0]].reshape(-1, session.n, session.n)[0].double()


def _run(session: Session, graph: Graph) -> dict[str, Tensor]:
    return session.run(joined([graph], session.samples[0].batched))


def _with_cell(graph: Graph, key: str, cell: Tensor) -> Graph:
    out = copy.copy(graph)
    out[key] = cell.reshape(graph[key].shape)
    return out


def _compare(
    session: Session, before: dict[str, Tensor], after: dict[str, Tensor], text: str
) -> Check:
    found = [
        verdict(session, o, before[o.name], after[o.name], f"{o.name!r} {text}")
        for o in session.outputs
    ]
    return worst(found)


def stress_and_energy(session: Session) -> Check:
    """Stress equals dE/dstrain over the volume."""
    graph, key, cell = _periodic(session)
    energy = energy_of(session)
    named = [o for o in session.outputs if "stress" in o.name.lower()]
    if not named or named[0].type not in ("voigt", "tensor", "symmetric tensor"):
        raise Skipped("no output is the stress")
    stress: Output = named[0]
    value = _run(session, graph)[stress.name]
    volume = float(torch.linalg.det(cell).abs())
    n = session.n
    wanted = torch.zeros(n, n, dtype=torch.float64)
    uncertainties = []
    for i in range(n):
        for j in range(i, n):

            def strained(t: float, i: int = i, j: int = j) -> float:
                strain = torch.eye(n, dtype=torch.float64)
                strain[i, j] += t / 2
                strain[j, i] += t / 2
                moved = with_pos(graph, graph.pos @ strain)
                moved = _with_cell(moved, key, cell @ strain)
                return float(_run(session, moved)[energy.name].sum())

            slope, uncertainty = derivative(strained, 1e-3)
            wanted[i, j] = wanted[j, i] = slope / volume
            uncertainties.append(uncertainty / volume)
    if stress.type == "voigt":
        rows, columns = [0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]
        wanted = wanted[rows, columns] if n == 3 else wanted[[0, 1, 0], [0, 1, 1]]
    text = f"{stress.name!r} against d {energy.name!r} / d strain over the volume"
    rough = trusted(session, stress, uncertainties)
    wanted = wanted.reshape(value.shape)
    return verdict(session, stress, wanted, value, text, TOLERANCE["stress"], rough)


def lattice_shifts(session: Session) -> Check:
    """An atom that is moved by vectors of the lattice is where it was."""
    graph, _, cell = _periodic(session)
    pos = graph.pos.clone()
    pos[0] += cell[0] - 2 * cell[-1]
    pos[-1] -= cell[min(1, session.n - 1)]
    before, after = _run(session, graph), _run(session, with_pos(graph, pos))
    return _compare(session, before, after, "with atoms shifted by vectors of the lattice")


def equivalent_cells(session: Session) -> Check:
    """Another cell of the same lattice is the same structure."""
    graph, key, cell = _periodic(session)
    change = torch.eye(session.n, dtype=torch.float64)
    change[-1, 0] = 1.0  # the last vector and the first one, instead of the last
    before, after = _run(session, graph), _run(session, _with_cell(graph, key, change @ cell))
    return _compare(session, before, after, "in an equivalent cell")


def supercells(session: Session) -> Check:
    """Two cells side by side have twice the energy, and the same for each atom."""
    graph, key, cell = _periodic(session)
    double = copies(graph, torch.stack([torch.zeros(session.n).double(), cell[0]]), periodic=True)
    if double is None:
        raise Skipped("a supercell cannot be built from this data")
    wide = cell.clone()
    wide[0] *= 2
    before, after = _run(session, graph), _run(session, _with_cell(double, key, wide))
    found = []
    for output in session.outputs:
        value = before[output.name]
        if output.place == "node":
            wanted = torch.cat([value, value])
        elif output.type == "invariant" and "energy" in output.name.lower():
            wanted = 2 * value
        elif "stress" in output.name.lower():
            wanted = value
        else:
            continue
        text = f"{output.name!r} of two cells side by side"
        found.append(verdict(session, output, wanted, after[output.name], text))
    if not found:
        raise Skipped("no output is an energy or a stress or belongs to nodes")
    return worst(found)


#: Signature: (session) -> Check
PERIODIC_CHECKS: dict[str, Callable[[Session], Check]] = {
    "stress": stress_and_energy,
    "lattice shifts": lattice_shifts,
    "equivalent cells": equivalent_cells,
    "supercell": supercells,
}
