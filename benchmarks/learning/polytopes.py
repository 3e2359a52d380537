"""The paper's polytopes in three dimensions with both starts of a network, beside the paper.

    python benchmarks/learning/polytopes.py --out runs/polytopes

Protocol, fixed before the run: the rows GN, DGN and AGN with sums of the paper's table (networks,
1000 epochs and learning rate as `symgnn reproduce polytopes-3d` has them), four initialisations, 20
test graphs for each class and map. "torch": PyTorch's weights and plain sums. "fit": weights that
keep the variance, sums over their average number of terms, standardised measures. There is no
criterion. Each row is written to OUT/polytopes.json as it ends, and a run that was stopped
continues there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Data

import symgnn
from symgnn.data import Polytopes, Task
from symgnn.experiments._polytope_accuracy import accuracy_on
from symgnn.experiments._polytope_tables import COLUMNS
from symgnn.experiments._polytope_training import LAYERS
from symgnn.experiments._train_row import train_row
from symgnn.store import environment, read_json, write_json
from symgnn.train import Training
from symgnn.train._loader import GraphDataset
from symgnn.train._metrics import Judge, Scaler

BLOCKS, STARTS, SEEDS, EPOCHS, COPIES = ("GN", "DGN", "AGN"), ("torch", "fit"), 4, 1000, 20


def network(block: str, start: str, graphs: list[Data]) -> symgnn.nn.Model:
    """The paper's network, with one of the starts."""
    options = {"dimension": 3, "hidden": 32, "mlp_hidden": 64, "layers": LAYERS[block]}
    options |= {"aggregation": "sum", "graph_state": False, "outputs": 5}
    if start == "torch":
        return symgnn.nn.build(block, init="torch", **options)
    return symgnn.nn.build(block, averages=symgnn.nn.averages(graphs, block), **options)


def row(block: str, start: str, epochs: int = EPOCHS) -> dict[str, list[float]]:
    """The accuracy of each initialisation, of each column of the table, and the first epoch whose
    loss is below 0.1.
    """
    train = Polytopes(3)
    task = Task("graph", "classification", ("polytope",), classes=tuple(train.names))
    unit = torch.ones(1, dtype=torch.float64)
    settings = Training(
        epochs=epochs,
        batch_size=len(train),
        seed=0,
        seeds=SEEDS,
        weights="last",
        validate_every=epochs,
    )
    make = partial(network, block, start, list(train))
    graphs = GraphDataset(train, angles=make().needs_angles)
    trained = train_row(make, graphs, Judge(task, Scaler(0 * unit, unit)), settings)
    below = [(one < 0.1).nonzero().flatten().tolist() for one in trained.losses.T]
    found = {"epoch of loss 0.1": [each[0] + 1 if each else None for each in below]}
    for number, column in enumerate(COLUMNS):
        kind = None if column == "train" else column
        tests = Polytopes(3, kind, COPIES, seed=1000 + number, dtype=torch.float64)
        found[column] = accuracy_on(trained.ensemble, tests).accuracy.tolist()
    return found


def table(results: dict) -> str:
    """In Markdown."""
    columns = [*COLUMNS, "epoch of loss 0.1"]
    lines = [["network", "start", *columns], ["---", "---", *["---:"] * len(columns)]]
    for name, found in results["rows"].items():
        cells = []
        for column in columns:
            values = found[column]
            late = any(value is None for value in values)
            digits = 0 if column == columns[-1] else 2
            cells.append("not reached" if late else f"{statistics.fmean(values):.{digits}f}")
        lines.append([*name.split("/"), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Train what is missing; print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--out", type=Path, required=True, help="where polytopes.json is kept")
    options.add_argument("--epochs", type=int, default=EPOCHS, help="fewer, to see that it works")
    given = options.parse_args(arguments)
    torch.set_num_threads(1)
    place = given.out / "polytopes.json"
    results = read_json(place) or {"environment": environment(), "rows": {}}
    for block in BLOCKS:
        for start in STARTS:
            if f"{block}/{start}" not in results["rows"]:
                results["rows"][f"{block}/{start}"] = row(block, start, given.epochs)
                write_json(place, results)
    sys.stdout.write(table(results) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
