"""`symgnn reproduce`."""

from __future__ import annotations

import argparse
from pathlib import Path

from symgnn._argument_checks import check_count


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    reproduce = commands.add_parser(
        "reproduce", help="run one of the paper's experiments and compare with the paper's numbers"
    )
    reproduce.add_argument("name", nargs="?", help="name of the experiment; --list shows all")
    reproduce.add_argument("--list", action="store_true", help="list the experiments")
    reproduce.add_argument(
        "--protocol",
        choices=("cpu", "paper"),
        help="for datasets and step-time: sized for hours on one core (cpu, default), or as "
        "published, for a GPU",
    )
    reproduce.add_argument(
        "--source",
        metavar="PATH",
        help="folder with the dataset (default: SYMGNN_DATA, the cache, or a download); "
        "sample: the few graphs in the package; for tsp also: generated",
    )
    reproduce.add_argument(
        "--limit", type=int, help="maximum number of graphs of each split (default: the protocol's)"
    )
    reproduce.add_argument(
        "--seeds",
        type=int,
        help="number of initialisations (default: the protocol's; polytopes 10)",
    )
    reproduce.add_argument(
        "--epochs", type=int, help="number of epochs (default: the protocol's; polytopes 1000)"
    )
    reproduce.add_argument(
        "--rows",
        action="extend",
        nargs="+",
        metavar="WORDS",
        help='only these rows, such as --rows gn "agn sum"',
    )
    reproduce.add_argument(
        "--samples",
        type=int,
        action="extend",
        nargs="+",
        metavar="COUNT",
        help="for data-efficiency: the numbers of samples per polytope, such as --samples 1 10 100",
    )
    reproduce.add_argument(
        "--node-features",
        choices=("random", "one marked", "half marked", "constant"),
        nargs="?",
        const="random",
        help="node features of the polytopes: two random numbers (default), a mark on one "
        "vertex or on half of them, or a constant",
    )
    reproduce.add_argument(
        "--reading",
        type=Path,
        metavar="FILE",
        help="for the polytope tables: results.json of polytopes-readings, whose best reading is "
        "used (default: symgnn's own)",
    )
    reproduce.add_argument(
        "--join",
        type=Path,
        action="extend",
        nargs="+",
        metavar="FILE",
        help="results.json of the same experiment and options: only the rows that it lacks (or "
        "those of --rows) are run, and all are shown and judged together",
    )
    reproduce.add_argument(
        "--join-only",
        action="store_true",
        help="for datasets: show and judge the rows of --join, with the initialisations that they "
        "have, and run nothing",
    )
    reproduce.add_argument(
        "--jobs", type=int, help="number of rows to run at once (default: the number of cores)"
    )
    reproduce.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="run rows in local processes (local, default) or on a Ray cluster",
    )
    reproduce.add_argument(
        "--out", type=Path, default=Path("results"), help="output directory (default results)"
    )
    return reproduce


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.experiments import REPRODUCIBLE, Options, engine_named, reproduce
    from symgnn.report import rich_table, write_report
    from symgnn.train import keep_memory

    keep_memory()
    console = Console()
    if options.list:
        for name, title in REPRODUCIBLE.items():
            console.print(f"[bold]{name}[/]  {title}")
        return 0
    if options.name is None:
        raise ValueError(
            "reproduce: the name is missing; put it first, as in symgnn reproduce mnist --rows gn, "
            f"and choose from {', '.join(REPRODUCIBLE)}"
        )
    for field in ("seeds", "epochs", "limit", "jobs"):
        value = getattr(options, field)
        if value is not None:
            check_count(f"--{field}", value)
    for count in options.samples or ():
        check_count("--samples", count)
    engine = engine_named(options.engine, options.jobs)
    out = options.out / options.name
    if options.name in REPRODUCIBLE:
        make_directory(out)
    chosen = Options(**{name: getattr(options, name) for name in Options.__dataclass_fields__})
    results = reproduce(
        options.name, out, chosen, trained=options.out / "trained", engine=engine, console=console
    )
    console.print(rich_table(results))
    console.print(f"report: {write_report(results, out)}", soft_wrap=True, markup=False)
    return 0


def make_directory(out: Path) -> None:
    """Before anything is trained, so that no result is lost for want of a place."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"--out: cannot make {out} ({error.strerror}); choose another directory"
        ) from None
