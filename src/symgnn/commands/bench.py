"""`symgnn bench`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from symgnn._argument_checks import check_count


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    bench = commands.add_parser(
        "bench", help="measure speed, memory and error at equal time, as ratios"
    )
    bench.add_argument(
        "names", nargs="*", metavar="NAME", help="suites to run (default: all except learning)"
    )
    bench.add_argument("--list", action="store_true", help="list the suites")
    bench.add_argument(
        "--check",
        action="store_true",
        help="exit with code 1 if a ratio misses its bound, and list those ratios",
    )
    bench.add_argument("--json", action="store_true", help="print only JSON")
    bench.add_argument(
        "--out", type=Path, help="directory for results.json, figures and report.html"
    )
    bench.add_argument(
        "--threads", type=int, help="number of threads of torch (default: torch's choice)"
    )
    bench.add_argument(
        "--shape",
        "--target",
        action="append",
        default=[],
        metavar="SHAPE",
        help="only graphs of this shape, such as 3-d for scale, or this target for learning; "
        "may be given several times",
    )
    learning = bench.add_argument_group("learning")
    learning.add_argument("--source", help="folder with QM9 (default: as for symgnn train)")
    learning.add_argument(
        "--molecules", type=int, help="number of training molecules (default: 10000)"
    )
    learning.add_argument(
        "--minutes", type=float, help="processor time of each training (default: 2)"
    )
    learning.add_argument(
        "--network",
        action="append",
        dest="networks",
        metavar="NETWORK",
        help="train only this network; may be given several times",
    )
    bench.add_argument(
        "--quick", action="store_true", help="small graphs and two rounds, to test the command"
    )
    return bench


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from rich.console import Console

    from symgnn.bench import SUITES, check_name
    from symgnn.commands.reproduce import make_directory
    from symgnn.store import finite

    console = Console()
    if options.list:
        for name, title in SUITES.items():
            console.print(f"[bold]{name}[/]  {title}")
        return 0
    if options.threads is not None:
        check_count("--threads", options.threads)
    for name in options.names:
        check_name(name)
    if options.out is not None:
        make_directory(options.out)
    from symgnn.bench._bench_table import rich_table
    from symgnn.bench._speed_claims import missed
    from symgnn.bench._suite import recorded, run_suites

    def show(suite: dict[str, Any]) -> None:
        if not options.json:
            console.print(rich_table(suite))

    chosen = {name: getattr(options, name) for name in ("quick", "threads", "out")}
    chosen["shapes"] = options.shape
    own = {name: getattr(options, name) for name in ("source", "molecules", "minutes", "networks")}
    chosen["options"] = {name: value for name, value in own.items() if value is not None}
    try:
        results = run_suites(options.names, on_suite=show, **chosen)
    except KeyboardInterrupt:
        where = f"; what was done is in {options.out}" if options.out is not None else ""
        sys.stderr.write(f"symgnn: stopped{where}\n")
        return 130
    if options.json:
        sys.stdout.write(json.dumps(finite(results), allow_nan=False) + "\n")
    if options.out is not None:
        from symgnn.bench._bench_page import write_page

        page = write_page(recorded(options.out), options.out)
        if not options.json:
            console.print(f"report: {page}", soft_wrap=True, markup=False)
    faults = missed(results) if options.check else []
    for fault in faults:
        sys.stderr.write(f"symgnn: {fault}\n")
    return 1 if faults else 0
