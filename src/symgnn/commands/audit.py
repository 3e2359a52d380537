"""`symgnn audit`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symgnn.audit import Report


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    audit = commands.add_parser("audit", help="measure the symmetry of a model")
    audit.add_argument(
        "target", help="package.module:factory that returns the model, or a run of symgnn train"
    )
    audit.add_argument(
        "--data",
        type=Path,
        help="file with a graph, in a format of symgnn.data.read (for a run, default: a graph of "
        "its test set)",
    )
    audit.add_argument(
        "--radius",
        type=float,
        help="join nodes up to this distance (default: the edges of the file)",
    )
    audit.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="type of an output, such as --output forces=vector; may be given several times",
    )
    audit.add_argument(
        "--vector",
        action="append",
        default=[],
        metavar="NAME",
        help="vector input, which rotates with the graph, such as vel or x[3:6]; may be given "
        "several times",
    )
    audit.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="type of an input that transforms with the graph, such as --input spin=pseudovector; "
        "may be given several times",
    )
    audit.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help='measure only this group, such as --group "E(3)"; may be given several times '
        "(default: all kinds of transformations)",
    )
    audit.add_argument(
        "--elements",
        type=int,
        default=12,
        help="random transformations of each kind (default 12)",
    )
    audit.add_argument(
        "--seed", type=int, default=0, help="seed of the random transformations (default 0)"
    )
    audit.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="GROUP",
        help='exit with code 1 if this group does not hold, such as --expect "E(n)"; may be given '
        "several times",
    )
    audit.add_argument(
        "--out", type=Path, help="directory for the HTML page, the JSON and the counterexamples"
    )
    audit.add_argument("--json", action="store_true", help="print only JSON")
    audit.add_argument(
        "--rerun", type=Path, metavar="FILE", help="apply a saved counterexample to the model again"
    )
    return audit


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from symgnn.audit import audit
    from symgnn.audit._group_names import kinds_of
    from symgnn.audit._loading import load_model, read_graph

    trained = None
    if Path(options.target).is_dir():
        from symgnn.train._run_loading import load

        trained = load(options.target)
    model = load_model(options.target) if trained is None else trained.model
    energies = trained is not None and trained.task.level == "potential"
    if (
        trained is not None and energies
    ):  # with stress, supercells and all that needs the atoms, not one graph of them
        model = trained.calculator(precision="64")
    if options.rerun is not None:
        return _rerun(model, options.rerun)
    if energies:
        if options.radius is not None:
            raise ValueError("--radius: a potential builds its own edges; remove --radius")
        data = _atoms(trained, options.data)
    elif trained is not None:
        data = trained.example(options.data)
    elif options.data is None:
        raise ValueError("--data: is missing; pass a file with a graph")
    else:
        data = read_graph(options.data)
    data = _joined(data, options.radius)
    known = trained is not None and not energies
    vectors = options.vector or [name for name in ("vel",) if known and name in data]
    for group in options.expect:
        kinds_of(group)  # a wrong name is known before anything is measured
    report = audit(
        model,
        data,
        outputs=_types("--output", options.output, "forces=vector"),
        vectors=vectors,
        inputs=_types("--input", options.input, "spin=pseudovector"),
        groups=[*options.group, *options.expect] if options.group else None,
        elements=options.elements,
        seed=options.seed,
    )
    answers = [report.holds(group) for group in options.expect]
    _say(json.dumps(report.to_dict(), allow_nan=False) if options.json else str(report))
    if options.out is not None:
        page = _write(report, options.out)
        if not options.json:
            _say(f"page: {page}")
    for answer in answers:
        if not answer:
            sys.stderr.write(f"symgnn: {answer}\n")
    return 0 if all(answers) else 1


def _atoms(trained: Any, file: Path | None) -> Any:
    """The atoms of a file, or the first of the test set of a potential."""
    from ase import Atoms

    from symgnn.audit._loading import read_graph
    from symgnn.data._rescaling import at_scale

    if file is not None:
        found = read_graph(file)
        if not isinstance(found, Atoms):
            raise ValueError(f"--data: {file} has no atoms; give a file that ASE reads")
        return found
    graph = at_scale(trained.splits().test[0], 1.0)
    atoms = Atoms(graph.z.numpy(), graph.pos.numpy())
    if graph.get("cell") is not None:
        atoms.set_cell(graph.cell[0].numpy())
        atoms.set_pbc(graph.pbc[0].numpy())
    return atoms


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _types(option: str, given: list[str], example: str) -> dict[str, str] | None:
    """The types of outputs or inputs by their names."""
    for text in given:
        if "=" not in text:
            raise ValueError(f"{option}: {text!r} has no '='; pass NAME=TYPE, such as {example}")
    return {text.partition("=")[0]: text.partition("=")[2] for text in given} or None


def _joined(data: Any, radius: float | None) -> Any:
    """The data with all edges up to a radius, if one is given."""
    if radius is None:
        return data
    from symgnn.audit._structures import graph_of_atoms
    from symgnn.graphs import RadiusGraph

    if isinstance(data, list):
        return [_joined(graph, radius) for graph in data]
    return RadiusGraph(radius)(data if hasattr(data, "pos") else graph_of_atoms(data))


def _write(report: Report, out: Path) -> Path:
    report.save(out / "audit.json")
    for kind, finding in report.findings.items():
        if finding.counterexample is not None:
            finding.counterexample.save(out / "counterexamples" / f"{kind}.npz")
    return report.save(out / "audit.html")


def _rerun(model: Any, path: Path) -> int:
    from symgnn.audit import Counterexample

    example = Counterexample.load(path)
    error = example.rerun(model)
    still = error > 0.1 * example.error
    word = "still breaks it" if still else "no longer breaks it"
    _say(f"{example}: {word} (error {error:.2g}, was {example.error:.2g})")
    return 1 if still else 0
