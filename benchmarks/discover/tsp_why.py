"""Why GN wins on tours though their edges keep similarities: information, or training?

    python benchmarks/discover/tsp_why.py CACHE docs/results/discover/tsp-why.json

Protocol. The problems and settings of `longer.py` (300 to train on, 60 to choose by, 140 to test, 3
layers of width 32, batches of 8, two initialisations), cross-entropy and F1 of the test problems:
- GN, 6 epochs, on the problems as they are, and with every problem turned at random about its centre
  and mirrored with probability 1/2 (training, validation and test): what GN has from the square and
  its axes is gone, labels stay;
- DGN, 6 epochs, and DGN with 16 smooth functions of the distance in place of its square, 6 epochs.
If turned GN stays near GN and DGN comes near with a better input, the labels keep rotations, and the
difference is one of training.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from longer import SETS

import symgnn
from symgnn.store import environment, write_json


def turned(splits: Any) -> Any:
    """Every problem under an orthogonal map of its own."""
    generator = torch.Generator().manual_seed(0)

    def one(graph: Any) -> Any:
        copy = graph.clone()
        q, r = torch.linalg.qr(torch.randn(2, 2, generator=generator))
        q = q * torch.where(torch.diagonal(r) < 0, -1.0, 1.0)
        centre = graph.pos.mean(0)
        copy.pos = (graph.pos - centre) @ q.T.to(graph.pos) + centre
        return copy

    parts = [[one(part[k]) for k in range(len(part))] for part in
             (splits.train, splits.validation, splits.test)]  # fmt: skip
    return symgnn.data.Splits(*parts, splits.task)


def main(cache: Path, path: Path) -> None:
    """Four trainings."""
    torch.set_num_threads(1)
    splits = SETS["tsp"](Path(), cache)
    runs = {
        "gn": (splits, {"block": "gn"}),
        "gn, turned problems": (turned(splits), {"block": "gn"}),
        "dgn": (splits, {"block": "dgn"}),
        "dgn, basis": (splits, {"block": "dgn", "radial": 16, "cutoff": 4.0}),
    }
    found = {}
    given = {"seeds": 2, "clip": 1.0, "schedule": "cosine", "progress": False, "batch_size": 8}
    for name, (data, model) in runs.items():
        run = symgnn.fit(data, {**model, "hidden": 32, "layers": 3}, epochs=6, **given)
        found[name] = run.evaluate("test")
        print(name, found[name], flush=True)
        write_json(path, {"runs": found, "environment": environment()})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
