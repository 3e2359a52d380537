"""`symgnn discover`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    discover = commands.add_parser(
        "discover", help="estimate the symmetry of data, and recommend a network"
    )
    discover.add_argument("data", help="a dataset, a file or folder, or a YAML file")
    discover.add_argument(
        "changes",
        nargs="*",
        default=[],
        metavar="key=value",
        help="options of the data, such as targets=[homo] or limit=1000",
    )
    discover.add_argument(
        "--minutes", type=float, default=10, help="stop after this many minutes (default 10)"
    )
    discover.add_argument(
        "--out", type=Path, help="directory for the page, the JSON and a training configuration"
    )
    discover.add_argument("--resume", action="store_true", help="continue the search in --out")
    discover.add_argument(
        "--level", help="level of the targets (graph, node, ...), if their shape is ambiguous"
    )
    discover.add_argument(
        "--seed", type=int, default=0, help="seed of the random numbers (default 0)"
    )
    discover.add_argument("--json", action="store_true", help="print only JSON")
    return discover


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    import yaml

    from symgnn.discovery import discover
    from symgnn.store import check_writable, write_whole

    if options.resume and options.out is None:
        raise ValueError("--resume: needs --out; give the directory of the search to continue")
    if options.out is not None:
        check_writable(options.out / "discover.html")
    report = discover(
        options.data,
        minutes=options.minutes,
        level=options.level,
        data=_options(options.changes),
        out=options.out,
        resume=options.resume,
        seed=options.seed,
    )
    text = json.dumps(report.to_dict(), allow_nan=False) if options.json else str(report)
    sys.stdout.write(f"{text}\n")
    if options.out is not None:
        report.save(options.out / "discover.json")
        config = yaml.safe_dump(report.config, sort_keys=False)
        write_whole(options.out / "config.yaml", config.encode())
        page = report.save(options.out / "discover.html")
        if not options.json:
            sys.stdout.write(f"page: {page}\nconfig: {options.out / 'config.yaml'}\n")
    return 0


def _options(changes: list[str]) -> dict[str, object]:
    """`key=value` as YAML reads the value."""
    import yaml

    found: dict[str, object] = {}
    for change in changes:
        key, sign, value = change.partition("=")
        if not sign or not key:
            raise ValueError(f"{change}: is no option; give key=value, such as limit=1000")
        found[key.removeprefix("data.")] = yaml.safe_load(value)
    return found
