"""`symgnn reproduce`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    reproduce = commands.add_parser(
        "reproduce", help="run one of the paper's tables and print it beside the paper's numbers"
    )
    reproduce.add_argument("name", nargs="?", help="which one; --list names them")
    reproduce.add_argument("--list", action="store_true", help="name what can be reproduced")
    reproduce.add_argument("--seeds", type=int, default=10, help="initialisations (default 10)")
    reproduce.add_argument("--epochs", type=int, default=1000, help="default 1000")
    reproduce.add_argument(
        "--rows",
        action="append",
        metavar="WORDS",
        help='only these rows, such as --rows "agn sum"; may be given several times',
    )
    reproduce.add_argument(
        "--node-features", action="store_true", help="give the nodes features that differ"
    )
    reproduce.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="rows at once (default: all cores)"
    )
    reproduce.add_argument(
        "--out", type=Path, default=Path("results"), help="where to write (default results)"
    )
    return reproduce


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.experiments import REPRODUCIBLE, reproduce
    from symgnn.report import rich_table, write_report
    from symgnn.train import keep_memory

    keep_memory()
    console = Console()
    if options.list:
        for name, title in REPRODUCIBLE.items():
            console.print(f"[bold]{name}[/]  {title}")
        return 0
    if options.name is None:
        raise ValueError(f"reproduce: which one? choose from {', '.join(REPRODUCIBLE)}")
    for field in ("seeds", "epochs", "jobs"):
        if getattr(options, field) < 1:
            raise ValueError(f"--{field}: is {getattr(options, field)}; give at least 1")
    out = options.out / options.name
    if options.name in REPRODUCIBLE:
        _make_directory(out)
    results = reproduce(
        options.name,
        out,
        seeds=options.seeds,
        epochs=options.epochs,
        rows=options.rows,
        node_features=options.node_features,
        jobs=options.jobs,
        console=console,
    )
    console.print(rich_table(results))
    console.print(f"report: {write_report(results, out)}", soft_wrap=True, markup=False)
    return 0


def _make_directory(out: Path) -> None:
    """Before anything is trained, so that no result is lost for want of a place."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"--out: cannot make {out} ({error.strerror}); choose another directory"
        ) from None
