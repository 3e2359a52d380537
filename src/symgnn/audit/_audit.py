"""The audit itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from symgnn.audit._audit_report import Report
from symgnn.audit._consistency import check_consistency
from symgnn.audit._findings import Check
from symgnn.audit._group_names import kinds_of
from symgnn.audit._inputs import parse_inputs, undeclared
from symgnn.audit._isolation import random_state_kept
from symgnn.audit._procedure import Procedure, precision_name
from symgnn.audit._session import Session, sample_edges, sample_nodes
from symgnn.audit._statelessness import first_calls
from symgnn.audit._structures import POSITIONS, Sample, grown, is_atoms, samples_of
from symgnn.audit._targets import target_of
from symgnn.geometry import KINDS, Symmetry


def audit(
    model: Callable[..., Any] | Any,
    data: Any,
    *,
    outputs: Mapping[str, str] | str | None = None,
    vectors: Iterable[str] | str = (),
    inputs: Mapping[str, str] | None = None,
    groups: str | Symmetry | Iterable[str | Symmetry] | None = None,
    kinds: Iterable[str] | None = None,
    modules: Iterable[nn.Module] | None = None,
    units: Mapping[str, str] | None = None,
    elements: int = 12,
    search: int = 320,
    grow: bool = True,
    checks: bool = True,
    seed: int = 0,
    progress: bool | None = None,
) -> Report:
    """Measure the symmetry of a model: the transformations to which its outputs are equivariant.

    The model is called in eval mode, in float64 and float32, and is restored afterwards.

    Args:
        model: A module that takes a PyG `Data` or `Batch`, or a dictionary; a module or function
            whose parameters have the names of the data's attributes (`pos`, `x`, `z`,
            `edge_index`, `batch`, ...), also traced, scripted, compiled or exported; or an ASE
            calculator.
        data: A PyG `Data` or `Batch`, a dictionary of tensors with `pos`, coordinates `[N, n]`, or
            ASE `Atoms`; or a list of these, which are passed to the model one at a time.
        outputs: The type of each output: "invariant", "vector", "coordinates", "pseudoscalar",
            "pseudovector", "tensor", "symmetric tensor", "voigt", or irreps in e3nn's notation
            such as "1x0e+1x1o", optionally with " per graph", " per node", " per edge" or
            " per pair" (of nodes, `[N, N, ...]`); a dictionary by name, or a single type. If not
            given, it is `model.output_type`, or else inferred. With a dictionary, only the
            outputs in it are audited.
        vectors: Vector inputs, which rotate with the graph, such as "vel", or columns such as
            "x[3:6]". The vectors of a `cell` are transformed without being named.
        inputs: The types of inputs that transform with the graph, by name, such as
            `{"spin": "pseudovector", "x[0:4]": "1x0e+1x1o"}`.
        groups: The groups that the model should have, such as "E(n)" or `["SE(3)",
            "permutations"]`; only these are measured. If not given, all kinds are.
        kinds: The kinds of transformations to try, such as `["rotation"]`; if not given, those of
            `groups`, or all.
        modules: Submodules of the model that a search through closures, containers and attributes
            does not find.
        units: The units of outputs by name, such as `{"energy": "eV"}`; for the report.
        elements: The number of random transformations of each kind for each structure.
        search: The number of further rotations in the search for the worst one.
        grow: Whether several copies of a small graph side by side are tried too, since some faults
            appear only above a certain number of nodes.
        checks: Whether consistency is checked: forces against the energy, batches against single
            graphs and so on.
        seed: The seed of the random transformations.
        progress: Whether to show a progress bar; if not given, in a terminal.

    Returns:
        A report: `print` it, `save` it as a page, or query it with `holds`.

    Example:
        >>> import torch
        >>> report = audit(lambda pos: torch.pdist(pos).sum(), torch.randn(8, 3), groups="E(3)")
        >>> bool(report.holds("E(3)"))
        True
    """
    begin = time.monotonic()
    if elements < 2:
        raise ValueError(f"elements: is {elements}; give at least 2")
    if search < 0:
        raise ValueError(f"search: is {search}; give 0 for no search, or a number of rotations")
    if outputs is None and isinstance(model, nn.Module):
        outputs = getattr(model, "output_type", None)
    target = target_of(model, data if is_atoms(data) else None, modules)
    target.units |= dict(units or {})
    samples = samples_of(data)
    first = samples[0].graphs[0]
    moving = parse_inputs(vectors, inputs, first)
    expected, wanted = _expected(groups, first.pos.size(1))
    chosen = wanted
    if kinds is not None:
        asked = kinds.widest if isinstance(kinds, Symmetry) else tuple(kinds)
        chosen = tuple(kind for kind in Symmetry(asked) if kind in asked)
    if grow:
        samples += _grown(samples, seed)
    session = Session(target, samples, moving, seed=seed)
    session.axis = getattr(model, "axis", None) if isinstance(model, nn.Module) else None
    session.make_shapes()
    native = target.native(_dtype(data))
    found: dict[str, Check] = {}

    def more() -> None:
        if checks:
            found.update(check_consistency(session))

    if checks:
        with random_state_kept():
            session.first = first_calls(session)
    with random_state_kept(), _bar(f"auditing {target.name}", progress) as on_progress:
        work = Procedure(
            session, elements, outputs, chosen, search, precision_name(native), on_progress
        )
        for dtype in target.precisions:
            work.measure(dtype, more)
        work.conclude()
    own = getattr(model, "symmetry", None) if isinstance(model, nn.Module) else None
    derived = own if isinstance(own, Symmetry) else None
    for kind, finding in work.findings.items():
        finding.claimed = None if derived is None else kind in derived
        finding.expected = None if groups is None else kind in wanted
    names = {output.name for output in session.outputs}
    return Report(
        model=target.name,
        dimension=session.n,
        nodes=sample_nodes(session.samples),
        edges=sample_edges(session.samples),
        outputs=session.outputs,
        findings=work.findings,
        constant=work.constant,
        warnings=work.warnings + (undeclared(first, moving) or work.hints),
        stochastic=work.stochastic,
        derived=derived,
        expected=expected,
        checks=found,
        units={name: unit for name, unit in target.units.items() if name in names},
        moved=[f"{one} ({one.type})" for one in moving],
        calls=session.calls,
        seconds=time.monotonic() - begin,
        parameters=sum(p.numel() for module in target.modules for p in module.parameters()),
    )


def _dtype(data: Any) -> torch.dtype:
    """The type of the coordinates as they were given."""
    one = data[0] if isinstance(data, list | tuple) else data
    if isinstance(one, Mapping):
        one = next((one[key] for key in POSITIONS if key in one), None)
    for pos in (one, getattr(one, "pos", None)):
        if isinstance(pos, torch.Tensor) and pos.is_floating_point():
            return pos.dtype
    return torch.float32 if getattr(one, "dtype", None) == "float32" else torch.float64


def _expected(
    groups: str | Symmetry | Iterable[str | Symmetry] | None, dimension: int
) -> tuple[list[str], tuple[str, ...]]:
    """The names of the groups that were asked for, and their kinds."""
    if groups is None:
        return [], KINDS
    asked = [groups] if isinstance(groups, str | Symmetry) else list(groups)
    if not asked:
        raise ValueError("groups: is empty; pass a name such as 'E(n)'")
    names, kinds = [], set()
    for group in asked:
        name, own = kinds_of(group, dimension)
        names.append(name if not isinstance(group, Symmetry) else ", ".join(own))
        kinds |= set(own)
    return names, tuple(kind for kind in KINDS if kind in kinds)


def _grown(samples: list[Sample], seed: int) -> list[Sample]:
    """Copies of the largest structure side by side, where it is small."""
    largest = max(samples, key=lambda sample: sum(g.num_nodes for g in sample.graphs))
    if len(largest.graphs) > 1:
        return []
    graph = grown(largest.graphs[0], torch.Generator().manual_seed(seed + 5))
    if graph is None:
        return []
    name = f"{graph.num_nodes // largest.graphs[0].num_nodes} copies side by side"
    text = f"{name} ({graph.num_nodes} nodes)"
    return [Sample([graph], largest.batched, text, grown=True)]


def _bar(text: str, show: bool | None) -> AbstractContextManager[Any]:
    """A bar on stderr, where one is wanted and `rich` is there."""
    if not (sys.stderr.isatty() if show is None else show):
        return nullcontext()
    try:
        from symgnn.progress import bar
    except ImportError:
        return nullcontext()
    return bar(text, True)
