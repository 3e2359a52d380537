"""Is the network that discover advises the best when networks are trained longer?

    python benchmarks/discover/longer.py FOLDER CACHE docs/results/discover/longer.json [NAME ...]

FOLDER has the folders qm9 and mnist with the files that `symgnn.data.load` takes as `source`.

Protocol. The eight sets of `real.py`, with more graphs: QM9 (homo, mu and r2; 800 molecules to
train on, 200 to choose by, 500 to test), MNIST (800, 100, 300 superpixel graphs), TSP
(generated problems of 20 to 30 nodes; 300, 60, 140), charged particles (1,000, 300, 500),
polytopes (60 copies of each solid under orthogonal maps) and G2, both divided at random: three
fifths, a fifth, a fifth. The networks are those of NETWORKS (of MOVING for coordinates), less those
of LEFT_OUT, which differ little from another one on that set or need more than the budget for an
epoch (angles of superpixels and of complete graphs). Each is trained by `symgnn.fit` with
its default settings (the same rate for all) but for 3 layers of width 32, gradients clipped at 1, a
cosine schedule, batches of 16 graphs (8 of TSP and MNIST) and two initialisations in one
computation. The budget is the same for all networks of a set: for both initialisations 80 s of
processor time for TSP, 20 s for polytopes and G2, 50 s for the others. The number of epochs, at most 300, is what the time of
an epoch allows, which is taken from fits of one and of three epochs to a quarter of the graphs. The
weights of the best validation are tested: mean absolute error for regression, mean squared error
for coordinates, cross-entropy for classes of graphs and edges, graph by graph.

Criterion. The advised network agrees with training if its mean test error is below that of the best
network plus two standard errors of the difference. The square of the standard error is the sum of
two variances: of the mean difference over test graphs (paired, each the mean of two
initialisations), and of the means over initialisations, of both networks. What is chosen as the best
by test errors looks better than it is, which is to the disadvantage of the advised one.

A first run (longer-short.json) had 5 to 10 s for both initialisations, five sets, and no criterion. A second
one (longer-second.json) had half of the present budgets and an earlier version of the library, and no
`combined` with moved coordinates, which is advised for homo.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from real import g2
from torch_geometric.data import Data

import symgnn
from symgnn.data._task_of_graphs import with_task
from symgnn.store import environment, read_json, write_json

_MAP = {"coordinate_map": "neighbour-sum"}
NETWORKS: dict[str, dict[str, Any]] = {
    "gn": {"block": "gn"},
    "stgn": {"block": "stgn"},
    "sdgn": {"block": "sdgn"},
    "dgn": {"block": "dgn"},
    "dgn, moved": {"block": "dgn", **_MAP},
    "agn": {"block": "agn"},
    "combined": {"block": "combined"},
    "combined, moved": {"block": "combined", **_MAP},
    "cgn": {"block": "cgn"},
}
#: For coordinates: networks that move them.
MOVING: dict[str, dict[str, Any]] = {
    name: {"block": name, "coordinate_map": "egcn-neighbours"}
    for name in ("dgn", "agn", "combined")
}
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "qm9-homo": ("stgn", "sdgn", "agn", "cgn"),
    "qm9-mu": ("stgn", "sdgn", "agn", "cgn"),
    "qm9-r2": ("stgn", "sdgn", "agn", "cgn"),
    "tsp": ("dgn, moved", "agn", "combined", "combined, moved", "cgn"),
    "mnist": ("dgn, moved", "agn", "combined", "combined, moved", "cgn"),
}
#: Of processor time, for both initialisations.
SECONDS = {"tsp": 80.0, "polytopes": 20.0, "g2": 20.0}
OTHERS, MOST_EPOCHS = 50.0, 300
#: The number that is compared, where it is not the mean absolute error.
METRICS = {"polytopes": "loss", "mnist": "loss", "tsp": "loss", "nbody": "mse"}


def qm9(target: str) -> Callable[[Path, Path], Any]:
    """Molecules of QM9 with one target."""

    def load(folder: Path, cache: Path) -> Any:
        given = {"source": folder / "qm9", "root": cache, "targets": [target]}
        return symgnn.data.load("qm9", **given, limit=(800, 200, 500), validation=200)

    return load


def divided(graphs: list[Data]) -> Any:
    """Three fifths to train on, a fifth to choose by, a fifth to test."""
    known, task = with_task(graphs, "graph")
    return symgnn.data.splits(known, task=task, fractions=(0.6, 0.2, 0.2), seed=0)


SETS: dict[str, Callable[[Path, Path], Any]] = {
    "polytopes": lambda folder, cache: divided(
        list(symgnn.data.Polytopes(3, "orthogonal", copies=60))
    ),
    "qm9-homo": qm9("homo"),
    "qm9-mu": qm9("mu"),
    "qm9-r2": qm9("r2"),
    "nbody": lambda folder, cache: symgnn.data.load("nbody", root=cache, limit=(1000, 300, 500)),
    "g2": lambda folder, cache: divided(g2(folder, cache)),
    "tsp": lambda folder, cache: symgnn.data.load(
        "tsp", root=cache, source="generated", nodes=(20, 30), limit=(300, 60, 140)
    ),
    "mnist": lambda folder, cache: symgnn.data.load(
        "mnist", source=folder / "mnist", root=cache, limit=(800, 100, 300)
    ),
}


def trained(name: str, splits: Any, model: dict[str, Any]) -> dict[str, Any]:
    """The test errors of two initialisations, each as long as the budget allows."""
    model = {**model, "hidden": 32, "layers": 3}
    batch = 8 if name in ("tsp", "mnist") else 16
    given = {"seeds": 2, "clip": 1.0, "schedule": "cosine", "progress": False, "batch_size": batch}
    quarter = [splits.train[k] for k in range(len(splits.train) // 4)]
    few = symgnn.data.Splits(quarter, quarter[:4], quarter[:4], splits.task)

    def seconds(data: Any, epochs: int) -> tuple[float, Any]:
        begin = time.process_time()
        run = symgnn.fit(data, model, epochs=epochs, **given)
        return time.process_time() - begin, run

    seconds(few, 1)  # also loads code
    one = 2 * max(seconds(few, 3)[0] - seconds(few, 1)[0], 1e-3)  # an epoch of all graphs
    epochs = max(1, min(MOST_EPOCHS, int(SECONDS.get(name, OTHERS) / one)))
    used, run = seconds(splits, epochs)
    metric = METRICS.get(name, "mae")
    test = [run.evaluate([splits.test[k]])[metric] for k in range(len(splits.test))]
    return {
        "epochs": epochs,
        "processor_seconds": used,
        "metrics": run.evaluate("test"),
        "train_metrics": run.evaluate("train"),
        # [G, 2], the error of each test graph and initialisation
        "graphs": [[float(f"{value:.5g}") for value in row] for row in test],
    }


def turned(splits: Any) -> Any:
    """Every graph under an orthogonal map of its own about its centre."""
    generator = torch.Generator().manual_seed(0)

    def one(graph: Any) -> Any:
        copy, n = graph.clone(), graph.pos.shape[1]
        q, r = torch.linalg.qr(torch.randn(n, n, generator=generator))
        q = q * torch.where(torch.diagonal(r) < 0, -1.0, 1.0)
        centre = graph.pos.mean(0)
        copy.pos = (graph.pos - centre) @ q.T.to(graph.pos) + centre
        return copy

    parts = [
        [one(part[k]) for k in range(len(part))]
        for part in (splits.train, splits.validation, splits.test)
    ]
    return symgnn.data.Splits(*parts, splits.task)


def main(folder: Path, cache: Path, path: Path, names: list[str]) -> None:
    """One after the other; what is in the file already is not trained again."""
    torch.set_num_threads(1)
    found = (read_json(path) or {}).get("sets", {})
    for name in names or SETS:
        splits = SETS[name](folder, cache)
        rows = found.setdefault(name, {})
        for network, model in (MOVING if name == "nbody" else NETWORKS).items():
            if network in rows or network in LEFT_OUT.get(name, ()):
                continue
            rows[network] = trained(name, splits, model)
            told = {key: value for key, value in rows[network].items() if key != "graphs"}
            print(name, network, told, flush=True)
            write_json(path, {"sets": found, "environment": environment()})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), sys.argv[4:])
