"""What each part of a network's start is worth, by the protocol of ablation.yaml.

    python benchmarks/learning/ablation.py --out runs/ablation --source DIR

DIR/mnist and DIR/qm9 have the files of these datasets; without it, they are downloaded. Each cell
is written to OUT/ablation.json as it ends, and a run that was stopped continues there. The table is
printed in Markdown; `--table` prints that of what is there, and trains nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import yaml

import symgnn
from symgnn.store import environment, read_json, write_json

PROTOCOL = Path(__file__).with_suffix(".yaml")


def cells(protocol: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Task, block and variant of each cell; the slowest block last."""
    return [
        (task, block, variant)
        for block in protocol["blocks"]
        for task in protocol["tasks"]
        for variant in protocol["variants"]
    ]


def measure(protocol: dict[str, Any], cell: tuple[str, str, str], source: Path | None) -> dict:
    """Train a cell; give its numbers."""
    task, block, variant = cell
    chosen = protocol["tasks"][task]
    data = dict(chosen["data"])
    if source is not None and "source" not in data:
        data["source"] = str(source / task)
    model = {"block": block, **protocol["model"], **protocol["variants"][variant]}
    began = time.process_time()
    run = symgnn.fit(data, model, progress=False, **chosen["train"])
    seconds = time.process_time() - began
    found = run.metrics["test"][chosen["metric"]]
    return {"values": found["values"], "mean": found["mean"], "seconds": seconds}


def table(protocol: dict[str, Any], results: dict[str, Any]) -> str:
    """The cells in Markdown, a row for each task and block."""
    heads = ["task", "network", *protocol["variants"]]
    lines = [heads, ["---", "---", *["---:"] * len(protocol["variants"])]]
    for task, chosen in protocol["tasks"].items():
        for block in protocol["blocks"]:
            row = [f"{task}, {chosen['metric']}", block.upper()]
            for variant in protocol["variants"]:
                found = results["cells"].get(f"{task}/{block}/{variant}")
                row.append("" if found is None else number(found["mean"]))
            lines.append(row)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None) -> str:
    """In three digits."""
    if value is None:
        return "not finite"
    return f"{value:.3g}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:,.0f}"


def main(arguments: list[str] | None = None) -> int:
    """Train what is missing; print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--out", type=Path, required=True, help="where ablation.json is kept")
    options.add_argument("--source", type=Path, help="a folder with mnist and qm9")
    options.add_argument("--protocol", type=Path, default=PROTOCOL)
    options.add_argument(
        "--task", action="append", help="only this one; may be given several times"
    )
    options.add_argument("--table", action="store_true", help="train nothing, print the table")
    given = options.parse_args(arguments)
    protocol = yaml.safe_load(given.protocol.read_text())
    place = given.out / "ablation.json"
    results = read_json(place) or {"protocol": protocol, "environment": environment(), "cells": {}}
    if results["protocol"] != json.loads(json.dumps(protocol)):
        sys.stderr.write(f"{place}: is of another protocol; give another --out\n")
        return 2
    torch.set_num_threads(1)
    todo = [] if given.table else cells(protocol)
    todo = [cell for cell in todo if not given.task or cell[0] in given.task]
    for number_of, cell in enumerate(todo, 1):
        name = "/".join(cell)
        if name in results["cells"]:
            continue
        results["cells"][name] = measure(protocol, cell, given.source)
        write_json(place, results)
        sys.stderr.write(f"{number_of} of {len(todo)}: {name} {results['cells'][name]}\n")
    sys.stdout.write(table(protocol, results) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
