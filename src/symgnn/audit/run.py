"""The audit itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from symgnn.audit.borrowing import random_state_kept
from symgnn.audit.calling import CalculatorTarget, target_of
from symgnn.audit.graphs import Named, graphs_of, parse_vectors, unnamed
from symgnn.audit.measuring import Session
from symgnn.audit.report import Report
from symgnn.audit.steps import Steps, precision_name
from symgnn.geometry import KINDS, Symmetry
from symgnn.progress import bar


def audit(
    model: Callable[..., Any] | Any,
    data: Any,
    *,
    outputs: Mapping[str, str] | str | None = None,
    vectors: Iterable[str] | str = (),
    kinds: Iterable[str] | None = None,
    elements: int = 12,
    seed: int = 0,
    progress: bool | None = None,
) -> Report:
    """Measure to which transformations of its coordinates a model is symmetric.

    Args:
        model: A module that takes a PyG `Data` or `Batch`; a module or function whose parameters
            are called as what the data has (`pos`, `x`, `z`, `edge_index`, `batch`, ...); or an
            ASE calculator.
        data: A `Data`, a `Batch`, a list of `Data`, or ASE `Atoms`.
        outputs: What each output is: "invariant", "vector" or "coordinates", perhaps with
            " per graph", " per node" or " per edge"; by name, or a single one. If not given, it is
            inferred, or what the model says of itself (`model.output_type`). With a dictionary,
            only the outputs in it are audited.
        vectors: Inputs that turn with the graph, such as "vel", or columns such as "x[3:6]".
        kinds: The kinds of transformations to try, such as `["rotation"]`; if not given, all.
        elements: How many random transformations of each kind are tried.
        seed: Which ones.
        progress: Whether to show a bar when it takes longer; if not given, in a terminal.

    The model is called in eval mode, in float64 and float32, and is afterwards as it was.
    """
    begin = time.monotonic()
    atoms = data if type(data).__module__.startswith("ase.") else None
    data = data if atoms is None else graph_of_atoms(atoms)
    target = target_of(model, atoms)
    graphs, batched = graphs_of(data)
    given = data[0] if isinstance(data, list | tuple) else data
    if elements < 2:
        raise ValueError(f"elements: is {elements}; give at least 2")
    if outputs is None and isinstance(model, nn.Module):
        outputs = getattr(model, "output_type", None)
    named = parse_vectors(vectors, graphs[0])
    if isinstance(target, CalculatorTarget) and "cell" in graphs[0]:
        named.append(Named("cell", 0, 3))
    session = Session.of(target, graphs, named, batched, seed)
    with random_state_kept(), bar(f"auditing {target.name}", progress) as on_progress:
        work = Steps(session, elements, outputs, on_progress)
        work.native = precision_name(target.native(given))
        work.kinds = tuple(KINDS if kinds is None else Symmetry(kinds))
        for dtype in target.precisions:
            work.measure(dtype)
        work.conclude()
    derived = getattr(model, "symmetry", None) if isinstance(model, nn.Module) else None
    work.warnings += unnamed(graphs[0], named)
    for kind, finding in work.findings.items():
        finding.claimed = None if derived is None else kind in derived
    return Report(
        model=target.name,
        dimension=graphs[0].pos.size(1),
        nodes=sum(graph.num_nodes for graph in graphs),
        edges=sum(graph.num_edges for graph in graphs),
        outputs=session.outputs,
        findings=work.findings,
        constant=work.constant,
        warnings=work.warnings,
        stochastic=work.stochastic,
        derived=derived,
        seconds=time.monotonic() - begin,
        parameters=sum(p.numel() for module in target.modules for p in module.parameters()),
    )


def graph_of_atoms(atoms: Any) -> Data:
    """ASE's atoms as PyG's data: coordinates, atomic numbers, and the cell if it is periodic."""
    graph = Data(
        pos=torch.from_numpy(atoms.get_positions()),
        z=torch.from_numpy(atoms.get_atomic_numbers()),
    )
    if atoms.pbc.any():
        graph.cell = torch.from_numpy(atoms.cell.array.copy()).unsqueeze(0)
        graph.pbc = torch.from_numpy(atoms.pbc.copy()).unsqueeze(0)
    return graph
