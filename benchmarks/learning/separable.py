"""What product form learns beside AGN's MLP: small paired trials on QM9, MNIST and TSP.

    python benchmarks/learning/separable.py --data DIR --cache DIR --out separable.json

DIR has the folders `mnist` and `qm9`; TSP is generated. Protocol, fixed before the first run:

- Networks of two layers, 32 numbers everywhere, sums, averages measured on the training graphs (as
  `symgnn.fit` does), Adam with 1e-3, in float32, one thread. Blocks: AGN; AGN-separable of
  degree 3; the same with 16 channels.
- QM9: 5,000 molecules on their bonds, the energy homo, 3 epochs of batch 32, mean absolute error
  in meV on 1,000 others. MNIST: 2,000 graphs, 3 epochs of batch 32, accuracy on 1,000 others. TSP:
  240 problems of 50 to 100 nodes, 4 epochs of batch 8, mean cross-entropy of edges on 60 others.
- Three initialisations; that with number k has the same seed and the same batches for all blocks.
- Equal epochs: the test value after these epochs. AGN-separable is not below AGN if the mean of the
  three paired differences is not worse than 0 by more than two standard errors of them.
- Equal time: AGN-separable goes on until it has taken the processor time of AGN's epochs with the
  same seed, or twice the epochs. It is above AGN if the mean difference is better than 0.
- The last value is taken, never the best; no other setting is tried.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.data import load
from symgnn.nn import Model, averages, build
from symgnn.progress import bar

BLOCKS: dict[str, dict[str, Any]] = {
    "AGN": {"architecture": "agn"},
    "AGN-separable": {"architecture": "agn-separable"},
    "AGN-separable, 16 channels": {"architecture": "agn-separable", "channels": 16},
}
SIZES = {"hidden": 32, "mlp_hidden": 32, "layers": 2, "aggregation": "sum", "graph_state": False}
HOMO, MEV = 2, 27211.386
SEEDS = 3


class Trial(NamedTuple):
    """A dataset, and how it is learned."""

    options: dict[str, Any]
    model: dict[str, Any]
    epochs: int
    batch: int
    loss: Callable[[Tensor, Batch], Tensor]
    value: Callable[[Tensor, Batch], Tensor]  # of each thing that is predicted
    unit: str
    higher: bool  # whether a larger value is better


def _homo(out: Tensor, batch: Batch) -> Tensor:
    return (out[:, 0] - batch.y[:, HOMO]).abs()


def _cross_entropy(out: Tensor, batch: Batch) -> Tensor:
    return F.cross_entropy(out, batch.y.long(), reduction="none")


def _right(out: Tensor, batch: Batch) -> Tensor:
    return (out.argmax(1) == batch.y).float()


TRIALS = {
    "qm9": Trial(
        {"limit": [5000, 500, 1000]},
        {"node_features": 5, "edge_features": 4, "outputs": 1},
        3,
        32,
        lambda out, batch: _homo(out, batch).mean(),
        _homo,
        "meV",
        False,
    ),
    "mnist": Trial(
        {"limit": [2000, 200, 1000], "standardise": True},
        {"node_features": 1, "outputs": 10},
        3,
        32,
        lambda out, batch: _cross_entropy(out, batch).mean(),
        _right,
        "accuracy",
        True,
    ),
    "tsp": Trial(
        {"limit": [240, 30, 60], "source": "generated", "nodes": (50, 100)},
        {"task": "edge", "outputs": 2},
        4,
        8,
        lambda out, batch: _cross_entropy(out, batch).mean(),
        _cross_entropy,
        "cross-entropy",
        False,
    ),
}


def batches(graphs: list[Data], size: int, seed: int) -> Iterator[Batch]:
    """The graphs in random order."""
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(seed)).tolist()
    for start in range(0, len(graphs) - size + 1, size):
        yield Batch.from_data_list([graphs[k] for k in order[start : start + size]])


def measured(model: Model, graphs: list[Data], trial: Trial) -> float:
    """The mean value on graphs."""
    found = []
    model.eval()
    with torch.no_grad():
        for start in range(0, len(graphs), 20):
            batch = Batch.from_data_list(graphs[start : start + 20])
            found.append(trial.value(model(batch), batch))
    model.train()
    return float(torch.cat(found).mean())


def learn(
    block: dict[str, Any],
    trial: Trial,
    train: list[Data],
    test: list[Data],
    seed: int,
    most: float | None,
) -> dict[str, float]:
    """The values after the epochs and, with `most` seconds of a processor, after that time."""
    found = averages(train, block["architecture"])
    torch.manual_seed(seed)
    model = build(**block, **SIZES, **trial.model, averages=found)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    taken, result = 0.0, {}
    epochs = trial.epochs if most is None else 2 * trial.epochs
    for epoch in range(epochs):
        start = time.process_time()
        for batch in batches(train, trial.batch, 100 * seed + epoch):
            optimiser.zero_grad()
            trial.loss(model(batch), batch).backward()
            optimiser.step()
            enough = most is not None and epoch >= trial.epochs
            if enough and taken + time.process_time() - start >= most:
                break
        taken += time.process_time() - start
        if epoch + 1 == trial.epochs:
            result = {"seconds": taken, "value": measured(model, test, trial)}
        if epoch + 1 >= trial.epochs and most is not None and taken >= most:
            break
    if most is not None:
        result |= {"seconds at the end": taken, "value at the end": measured(model, test, trial)}
    return result


def main() -> None:
    """Run all trials, and keep each result as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    total, done = len(TRIALS) * SEEDS * len(BLOCKS), 0
    with bar("trials", show=True) as show:
        for name, trial in TRIALS.items():
            source = {"source": str(options.data / name)} | trial.options
            splits = load(name, root=options.cache, **source)
            train, test = (_graphs(each) for each in (splits.train, splits.test))
            factor = splits.about["std"][HOMO] * MEV if name == "qm9" else 1.0
            rows: dict[str, list[dict[str, float]]] = {block: [] for block in BLOCKS}
            for seed in range(SEEDS):
                for block, given in BLOCKS.items():
                    most = rows["AGN"][seed]["seconds"] if block == "AGN-separable" else None
                    found = learn(given, trial, train, test, seed, most)
                    scaled = {k: v * factor if "value" in k else v for k, v in found.items()}
                    rows[block].append(scaled)
                    done += 1
                    if show is not None:
                        show(done, total)
                    results[name] = {"unit": trial.unit, "rows": rows, **_verdicts(rows, trial)}
                    options.out.write_text(json.dumps(results, indent=1) + "\n")


def _graphs(split: Any) -> list[Data]:
    """Without the types of atoms, which the networks do not read: atoms have features."""
    found = []
    for each in split:
        data = Data(pos=each.pos, edge_index=each.edge_index, y=each.y)
        data.x, data.edge_attr = each.x, each.edge_attr
        found.append(data)
    return found


def _verdicts(rows: dict[str, list[dict[str, float]]], trial: Trial) -> dict[str, Any]:
    """The paired differences to AGN, positive where product form is better."""
    sign = 1.0 if trial.higher else -1.0
    found = {}
    for block, key in (
        ("AGN-separable", "value"),
        ("AGN-separable", "value at the end"),
        ("AGN-separable, 16 channels", "value"),
    ):
        pairs = zip(rows[block], rows["AGN"], strict=False)
        gains = [sign * (one[key] - other["value"]) for one, other in pairs]
        if len(gains) == SEEDS:
            error = stdev(gains) / SEEDS**0.5
            found[f"{block}, {key}"] = {"gain": mean(gains), "standard error": error}
    return {"gains": found}


if __name__ == "__main__":
    main()
