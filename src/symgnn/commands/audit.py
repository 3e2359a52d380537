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
    audit = commands.add_parser("audit", help="measure to what a model is symmetric")
    audit.add_argument(
        "target", help="package.module:factory, which makes the model, or a run of symgnn train"
    )
    audit.add_argument(
        "--data",
        type=Path,
        help="a file with a graph, as symgnn.data.read reads; for a run, else one of its test set",
    )
    audit.add_argument(
        "--radius", type=float, help="join nodes up to this distance; else the file's own edges"
    )
    audit.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="what an output is, such as --output forces=vector; may be given several times",
    )
    audit.add_argument(
        "--vector",
        action="append",
        default=[],
        metavar="NAME",
        help="an input that turns with the graph, such as vel or x[3:6]",
    )
    audit.add_argument("--elements", type=int, default=12, help="of each kind (default 12)")
    audit.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    audit.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="GROUP",
        help='exit with 1 if this does not hold, such as --expect "E(n)"',
    )
    audit.add_argument("--out", type=Path, help="write the page and the counterexamples there")
    audit.add_argument("--json", action="store_true", help="print JSON and nothing else")
    audit.add_argument("--rerun", type=Path, metavar="FILE", help="try a counterexample again")
    return audit


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from symgnn.audit import audit
    from symgnn.audit._group_names import kinds_of
    from symgnn.audit._loading import load_model, read_graph

    trained = None
    if Path(options.target).is_dir():
        from symgnn.train._trained_run import load

        trained = load(options.target)
    model = load_model(options.target) if trained is None else trained.model
    if options.rerun is not None:
        return _rerun(model, options.rerun)
    if trained is not None:
        data = trained.example(options.data)
    elif options.data is None:
        raise ValueError("--data: is missing; pass a file with a graph")
    else:
        data = read_graph(options.data)
    data = _joined(data, options.radius)
    vectors = options.vector or [name for name in ("vel",) if trained and name in data]
    for group in options.expect:
        kinds_of(group)  # a wrong name is known before anything is measured
    report = audit(
        model,
        data,
        outputs=_outputs(options.output),
        vectors=vectors,
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


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _outputs(given: list[str]) -> dict[str, str] | None:
    for text in given:
        if "=" not in text:
            raise ValueError(f"--output: {text!r} has no '='; pass NAME=TYPE, forces=vector")
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
