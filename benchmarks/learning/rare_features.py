"""What the bound on standardised features changes: QM9, where fluorine is rare.

    python benchmarks/learning/rare_features.py FOLDER CACHE benchmarks/learning/rare_features.json

FOLDER has the files that `symgnn.data.load("qm9")` takes as `source`.

Protocol. 10,000 molecules to train on, 2,000 to test, 12 standardised targets, the networks of the
experiment "qm9", four epochs in batches of 128, Adam with 5e-4, one initialisation. Each network with
deviations as they are, and with the bound of `symgnn.nn.averaging`. Reported is the mean
squared error of the test.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

import symgnn
from symgnn.experiments._dataset_protocols import EXPERIMENTS
from symgnn.nn import averaging
from symgnn.store import environment, read_json, write_json

BLOCKS = ("gn", "dgn", "agn", "agn-separable", "combined-separable")
BOUNDS = {"bounded": averaging.FARTHEST, "plain": None}


def main(source: Path, cache: Path, path: Path) -> None:
    """One after the other; what is in the file already is not trained again."""
    torch.set_num_threads(1)
    given = {"source": source, "root": cache, "limit": (10_000, 10, 2_000), "validation": 10}
    splits = symgnn.data.load("qm9", **given)
    experiment = EXPERIMENTS["qm9"]
    found = (read_json(path) or {}).get("rows", {})
    for block in BLOCKS:
        for name, bound in BOUNDS.items():
            key = f"{block}, {name}"
            if key in found:
                continue
            averaging.FARTHEST = bound  # type: ignore[assignment]
            began = time.process_time()
            model = {"block": block, "layers": experiment.layers, **experiment.network}
            rate = {"learning_rate": experiment.learning_rate, "weights": "last"}
            run = symgnn.fit(splits, model, epochs=4, batch_size=128, progress=False, **rate)
            found[key] = {
                "train_mse": run.evaluate("train")["loss"][0],
                "test_mse": run.evaluate("test")["loss"][0],
                "processor_seconds": time.process_time() - began,
            }
            print(key, found[key], flush=True)
            write_json(path, {"rows": found, "environment": environment()})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
