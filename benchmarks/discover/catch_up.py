"""Do the advised networks of tours and digits catch up with other rates and longer training?

    python benchmarks/discover/catch_up.py FOLDER CACHE docs/results/discover/catch-up.json

FOLDER has the folder mnist with the files that `symgnn.data.load` takes as `source`.

Protocol. The graphs and settings of `longer.py`, in which SDGN on tours (23 epochs) and STGN on digits
(6 epochs) were behind GN. Three learning rates, a third of the default, the default (0.001) and
three times it, with as many epochs as there and one initialisation; the rate with the smallest
validation loss is trained with two initialisations and four times the epochs. GN is trained on the
digits with four times its epochs (36) at the default rate, so that it has the same budget; on tours
GN after 39 epochs stays the mark (0.124). Cross-entropy of test graphs, mean over
initialisations.

Criterion. A network has caught up if its test loss is below that of GN, or above it by at most two
standard errors of the difference (as in `longer.py`: over test graphs and initialisations).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from longer import SETS

import symgnn
from symgnn.store import environment, read_json, write_json

RATES = (0.00033, 0.001, 0.003)
#: The network that was behind, and its epochs in `longer.py`.
BEHIND = {"tsp": ("sdgn", 23), "mnist": ("stgn", 6)}
LONGER, GN_EPOCHS = 4, 9


def trained(splits: Any, block: str, rate: float, epochs: int, seeds: int) -> dict[str, Any]:
    """Losses of validation, training and test graphs; the last of them graph by graph `[G, seeds]`."""
    run = symgnn.fit(
        splits,
        {"block": block, "hidden": 32, "layers": 3},
        epochs=epochs,
        seeds=seeds,
        learning_rate=rate,
        clip=1.0,
        schedule="cosine",
        batch_size=8,
        progress=False,
    )
    test = [run.evaluate([splits.test[k]])["loss"] for k in range(len(splits.test))]
    return {
        "epochs": epochs,
        "rate": rate,
        "validation": run.evaluate("validation")["loss"],
        "train": run.evaluate("train")["loss"],
        "test": run.evaluate("test"),
        "graphs": [[float(f"{value:.5g}") for value in row] for row in test],
    }


def main(folder: Path, cache: Path, path: Path) -> None:
    """One after the other; what is in the file already is not trained again."""
    torch.set_num_threads(1)
    found = (read_json(path) or {}).get("runs", {})

    def once(name: str, *given: Any) -> dict[str, Any]:
        if name not in found:
            found[name] = trained(*given)
            told = {key: value for key, value in found[name].items() if key != "graphs"}
            print(name, told, flush=True)
            write_json(path, {"runs": found, "environment": environment()})
        return found[name]

    for name, (block, epochs) in BEHIND.items():
        splits = SETS[name](folder, cache)
        tried = {r: once(f"{name}, {block}, rate {r}", splits, block, r, epochs, 1) for r in RATES}
        rate = min(tried, key=lambda r: tried[r]["validation"][0])
        once(f"{name}, {block}, longer", splits, block, rate, LONGER * epochs, 2)
        if name == "mnist":
            once("mnist, gn, longer", splits, "gn", 0.001, LONGER * GN_EPOCHS, 2)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
