"""`symgnn data`."""

from __future__ import annotations

import argparse
import ast
import os
from pathlib import Path
from typing import Any


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    data = commands.add_parser("data", help="list, get, check, make and show the datasets")
    actions = data.add_subparsers(dest="action", metavar="ACTION")
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument("--root", type=Path, help="folder of the data (default ~/.cache/symgnn)")
    choice = argparse.ArgumentParser(add_help=False, parents=[place])
    choice.add_argument("name", help="name of the dataset; symgnn data list shows all")
    choice.add_argument(
        "--from",
        dest="source",
        metavar="PATH",
        help="file or folder with the dataset, or sample for the few graphs in the package",
    )
    how = argparse.ArgumentParser(add_help=False, parents=[choice])
    how.add_argument(
        "--limit", metavar="N", help="maximum number of graphs of each split: N, or N,N,N"
    )
    how.add_argument("--seed", type=int, help="seed of the splits or of generated graphs")
    how.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="number of processes (default: all cores)",
    )
    how.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another option of the dataset, such as source=generated; may be given several times",
    )
    actions.add_parser("list", parents=[place], help="list the datasets and their files on disk")
    actions.add_parser("get", parents=[choice], help="download a dataset, or copy it from PATH")
    actions.add_parser("check", parents=[how], help="check files, splits and every graph")
    actions.add_parser("make", parents=[how], help="prepare or generate the graphs of a dataset")
    show = actions.add_parser("show", parents=[choice], help="draw a graph of a dataset")
    show.add_argument(
        "index", nargs="?", type=int, default=0, help="number of the graph (default 0)"
    )
    show.add_argument("--split", default="train", help="train, validation or test")
    show.add_argument("--out", type=Path, help="file of the picture (default NAME-INDEX.png)")
    return data


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    return {"list": _list, "get": _get, "check": _check, "make": _make, "show": _show}[
        options.action
    ](options)


def _list(options: argparse.Namespace) -> int:
    from rich.table import Table

    from symgnn.data._registry import DATASETS, state

    table = Table(box=None, pad_edge=False)
    for column in ("name", "what", "graphs", "MB", "from", "here"):
        table.add_column(column, overflow="fold")
    for name, each in DATASETS.items():
        size = sum(source.size for source in each.sources)
        table.add_row(
            f"[bold]{name}[/]",
            each.what,
            f"{sum(each.sizes):,}",
            f"{size / 1e6:.0f}" if size else "-",
            each.origin,
            state(name, options.root),
        )
    _console().print(table)
    return 0


def _get(options: argparse.Namespace) -> int:
    from symgnn.data._registry import get

    for line in get(options.name, root=options.root, source=options.source):
        _print(line)
    return 0


def _make(options: argparse.Namespace) -> int:
    from symgnn.data._checking import facts
    from symgnn.data._registry import load

    splits = load(options.name, **_load_options(options))
    found = facts(splits)
    train, validation, test = found["graphs"]
    _print(f"{options.name}: {train:,} to train, {validation:,} to validate, {test:,} to test")
    _print(
        f"{found['nodes']:.1f} nodes and {found['edges']:.1f} edges a graph, "
        f"edges {found['median edge']:.2f} long (coordinates times {found['scale']:g})"
    )
    _print("; ".join(f"{key}: {value}" for key, value in splits.about.items() if _short(value)))
    return 0


def _check(options: argparse.Namespace) -> int:
    from symgnn.data._checking import check_files, check_graphs
    from symgnn.data._registry import dataset, load

    faults = check_files(options.name, root=options.root, source=options.source)
    if not faults:
        splits = load(options.name, **_load_options(options))
        sizes = tuple(len(part) for part in (splits.train, splits.validation, splits.test))
        expected = dataset(options.name).sizes
        special = options.limit or options.set or options.source in ("sample", "generated")
        if not special and sizes != expected:
            faults.append(f"the splits have {sizes} graphs, not {expected}")
        faults += check_graphs(splits)
        _print(f"{options.name}: {' / '.join(f'{size:,}' for size in sizes)} graphs checked")
    for fault in faults:
        _print(fault)
    _print("all is well" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


def _show(options: argparse.Namespace) -> int:
    from symgnn.data._registry import dataset
    from symgnn.report._samples import draw_sample

    given = {"root": options.root, "source": options.source}
    known = dataset(options.name).options
    chosen = {key: value for key, value in given.items() if value is not None and key in known}
    out = options.out or Path(f"{options.name}-{options.index}.png")
    if out.is_dir():
        out /= f"{options.name}-{options.index}.png"
    draw_sample(options.name, options.index, out, split=options.split, **chosen)
    _print(f"picture: {out}")
    return 0


def _load_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `load`: those given, and those defaults that the dataset takes."""
    from symgnn.data._registry import dataset

    given = {"root": options.root, "source": options.source, "seed": options.seed}
    chosen = {key: value for key, value in given.items() if value is not None}
    if options.limit is not None:
        chosen["limit"] = _value(options.limit)
    if "jobs" in dataset(options.name).options:
        chosen["jobs"] = options.jobs
    for pair in options.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set: {pair!r} is not of the form KEY=VALUE")
        chosen[key] = _value(value)
    return chosen


def _value(text: str) -> Any:
    """A number, list or word: `3`, `1,2,3`, `mu,gap`, `true`."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text.split(",") if "," in text else text
    return list(value) if isinstance(value, tuple) else value


def _short(value: object) -> bool:
    return isinstance(value, str | int | float | bool | dict)


def _console() -> Any:
    from rich.console import Console

    return Console()


def _print(text: str) -> None:
    _console().print(text, soft_wrap=True, markup=False, highlight=False)
