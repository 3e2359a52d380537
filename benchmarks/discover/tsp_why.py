"""Why GN wins on tours though their edges keep similarities: information, or training?

    python benchmarks/discover/tsp_why.py CACHE docs/results/discover/tsp-why.json

Protocol. The problems and settings of `longer.py` (300 to train on, 60 to choose by, 140 to test, 3
layers of width 32, batches of 8, two initialisations), cross-entropy and F1 of the test problems:
- GN, 6 epochs, on the problems as they are, and with every problem turned at random about its centre
  and mirrored with probability 1/2 (training, validation and test): what GN has from the square and
  its axes is gone, labels stay;
- DGN, 6 epochs, and DGN with 16 smooth functions of the distance in place of its square, 6 epochs.
- SDGN, 20 epochs, with two more features of every edge: the rank of its length among the edges at
  either end, which similarities keep (`longer.py` has SDGN without them, 23 epochs);
- a logistic regression, edge by edge, on what similarities keep: the same ranks, one column for each
  up to 6, and the length over the mean length of the problem, fitted to the same training problems.
If turned GN stays near GN and a network that keeps rotations comes near with a better input, the
labels keep rotations, and the difference is what the network makes of distances. If SDGN with ranks
stays above a logistic regression on the same numbers, which it could copy, it is not what it reads
that holds it back. Losses on the training problems are recorded beside those of the test: if they
are alike, nothing is overfitted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from longer import SETS, turned

import symgnn
from symgnn.store import environment, read_json, write_json


def ranked(splits: Any) -> Any:
    """Every edge with the ranks of its length among the edges at its target and at its source."""

    def one(graph: Any) -> Any:
        copy = graph.clone()
        source, target = graph.edge_index
        length = (graph.pos[source] - graph.pos[target]).norm(dim=1)
        columns = []
        for owner in (target, source):
            shorter = (owner.unsqueeze(1) == owner) & (length < length.unsqueeze(1))
            columns.append(torch.exp(-shorter.sum(1) / 2.0))
        copy.edge_attr = torch.stack(columns, 1).to(graph.pos.dtype)
        return copy

    parts = [[one(part[k]) for k in range(len(part))] for part in
             (splits.train, splits.validation, splits.test)]  # fmt: skip
    return symgnn.data.Splits(*parts, splits.task)


def regression(splits: Any) -> dict[str, list[float]]:
    """A logistic regression on ranks and relative lengths: cross-entropy and F1."""

    def rows(part: Any) -> tuple[torch.Tensor, torch.Tensor]:
        columns, labels = [], []
        for k in range(len(part)):
            graph = part[k]
            source, target = graph.edge_index
            length = (graph.pos[source] - graph.pos[target]).norm(dim=1).double()
            found = [torch.ones_like(length), length / length.mean()]
            for owner in (target, source):
                shorter = (owner.unsqueeze(1) == owner) & (length < length.unsqueeze(1))
                rank = shorter.sum(1).clamp(max=6)
                found += list(torch.nn.functional.one_hot(rank, 7).double().T)
            columns.append(torch.stack(found, 1))
            labels.append(graph.y.reshape(-1).double())
        return torch.cat(columns), torch.cat(labels)

    x, y = rows(splits.train)
    weights = torch.zeros(x.shape[1], dtype=torch.float64)
    for _ in range(25):  # Newton's method, with a small penalty
        chance = torch.sigmoid(x @ weights)
        slope = x.T @ (chance - y) + 1e-3 * weights
        curve = (x * (chance * (1 - chance)).unsqueeze(1)).T @ x
        curve = curve + 1e-3 * torch.eye(len(weights), dtype=torch.float64)
        weights = weights - torch.linalg.solve(curve, slope)
    found: dict[str, list[float]] = {}
    for name, part in (("train_loss", splits.train), ("loss", splits.test)):
        x, y = rows(part)
        score = x @ weights
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, y)
        found[name] = [float(loss)]
    right = float(((score > 0) & (y > 0)).sum())
    found["f1"] = [2 * right / float((score > 0).sum() + y.sum())]
    return found


def main(cache: Path, path: Path) -> None:
    """Five trainings and a regression; those of the file that are there already are not done again."""
    torch.set_num_threads(1)
    splits = SETS["tsp"](Path(), cache)
    runs = {
        "gn": (splits, {"block": "gn"}, 6),
        "gn, turned problems": (turned(splits), {"block": "gn"}, 6),
        "dgn": (splits, {"block": "dgn"}, 6),
        "dgn, basis": (splits, {"block": "dgn", "radial": 16, "cutoff": 4.0}, 6),
        "sdgn, ranks, 20 epochs": (ranked(splits), {"block": "sdgn"}, 20),
    }
    found = (read_json(path) or {}).get("runs", {})
    name = "logistic regression on ranks and lengths"
    if name not in found:
        found[name] = regression(splits)
        print(name, found[name], flush=True)
        write_json(path, {"runs": found, "environment": environment()})
    given = {"seeds": 2, "clip": 1.0, "schedule": "cosine", "progress": False, "batch_size": 8}
    for name, (data, model, epochs) in runs.items():
        if name in found:
            continue
        run = symgnn.fit(data, {**model, "hidden": 32, "layers": 3}, epochs=epochs, **given)
        found[name] = run.evaluate("test")
        if epochs > 6:
            found[name]["train_loss"] = run.evaluate("train")["loss"]
        print(name, found[name], flush=True)
        write_json(path, {"runs": found, "environment": environment()})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
