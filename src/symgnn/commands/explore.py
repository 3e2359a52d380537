"""`symgnn explore`."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from symgnn.explorer._explorer_stage import Stage


def add(commands: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Its options."""
    explore = commands.add_parser(
        "explore", help="local page: transform a shape and see which networks change their output"
    )
    explore.add_argument(
        "target", nargs="?", type=Path, metavar="RUN", help="run of symgnn train to add to the page"
    )
    explore.add_argument(
        "--data",
        type=Path,
        help="file with a structure, in a format of symgnn.data.read (for a run, default: a graph "
        "of its test set)",
    )
    explore.add_argument(
        "--radius",
        type=float,
        help="join nodes up to this distance (default: the edges of the file)",
    )
    explore.add_argument("--port", type=int, default=8050, help="port of the page (default 8050)")
    return explore


def run(options: argparse.Namespace) -> int:
    """Run it; give the exit code."""
    from symgnn.explorer import make_app, serve

    app = make_app(stage_of(options.target, options.data, options.radius))
    serve(app, options.port, ready=_say)
    return 0


def _say(address: str) -> None:
    sys.stdout.write(f"the explorer is at {address} (stop it with Ctrl-C)\n")
    sys.stdout.flush()


def stage_of(target: Path | None, file: Path | None, radius: float | None = None) -> Stage:
    """The stage of the page: the package's shapes, a file, or a run with its own data."""
    from symgnn.explorer._explorer_networks import watched_run
    from symgnn.explorer._explorer_stage import Stage, stage_of_file

    if target is None and file is None:
        if radius is not None:
            raise ValueError("--radius: applies to a structure of --data; add --data FILE")
        return Stage()
    if target is None:
        from symgnn.graphs import RadiusGraph

        assert file is not None
        if radius is not None and not 0 < radius < math.inf:
            raise ValueError(f"--radius: is {radius:g}; give a number above 0")
        data = _first_graph(file)
        return stage_of_file(file.name, data if radius is None else RadiusGraph(radius)(data))
    import torch

    from symgnn.train import load

    if radius is not None:
        raise ValueError("--radius: a run builds edges as in its training; remove --radius")
    trained = load(target)
    if file is not None and "read" not in trained.record.get("about", {}):
        raise ValueError(
            f"--data: {target} was not trained on files, so {file.name} cannot be read in the form "
            "of its graphs; remove --data"
        )
    data = trained.example(file)
    data = data.apply(lambda t: t.to(torch.float64) if t.is_floating_point() else t)
    own = watched_run(f"{target.name} (yours)", trained.model)
    return stage_of_file(
        f"{target.name}: {'test graph' if file is None else file.name}", data, [own]
    )


def _first_graph(file: Path) -> Data:
    from symgnn.data import read

    try:
        return read(file)[0]
    except ValueError as error:  # of `read`, which has an option that this command has not
        reason = str(error).removeprefix("path: ").partition("; or pass on_error")[0]
        raise ValueError(f"--data: {reason}") from None
