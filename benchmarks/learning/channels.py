"""How many channels product form needs: paired trials of 32, 24 and 16 on QM9, MNIST and TSP.

    python benchmarks/learning/channels.py --data DIR --cache DIR --out channels.json

Protocol, fixed before the first run: data, networks, epochs and batches as in `separable.py` beside
it (two layers, 32 numbers everywhere), ten initialisations of each; that with number k has the same
seed and the same batches for all. Fewer channels are enough for the default if on each of the three
datasets the mean of the ten paired differences to 32 channels is not worse than 0 by more than two
standard errors of them. If 16 are enough, the default is half of the width; else, if 24 are,
three quarters; else it stays as wide as other values. Nothing else is tried.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from separable import HOMO, MEV, TRIALS, _graphs, learn

from symgnn.data import load
from symgnn.progress import bar

#: The networks that are compared, each with the first, by the options that they have.
CHANNELS: dict[str, dict[str, Any]] = {str(count): {"channels": count} for count in (32, 24, 16)}
SEEDS = range(10)


def verdicts(rows: dict[str, list[float]], higher: bool) -> dict[str, Any]:
    """The paired differences to the first network, positive where another is better."""
    sign, found = 1.0 if higher else -1.0, {}
    first, *others = rows
    for name in others:
        gains = [sign * (a - b) for a, b in zip(rows[name], rows[first], strict=False)]
        if len(gains) > 1:
            error = stdev(gains) / len(gains) ** 0.5
            enough = mean(gains) >= -2 * error
            found[name] = {"gain": mean(gains), "standard error": error, "enough": enough}
    return found


def compare(about: str | None, networks: dict[str, dict[str, Any]], seeds: range) -> None:
    """Run all trials of some variants of AGN-separable, and keep each result as it comes."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    total, done = len(TRIALS) * len(seeds) * len(networks), 0
    with bar("trials", show=True) as show:
        for name, trial in TRIALS.items():
            splits = load(
                name, root=options.cache, **{"source": str(options.data / name)} | trial.options
            )
            train, test = (_graphs(each) for each in (splits.train, splits.test))
            factor = splits.about["std"][HOMO] * MEV if name == "qm9" else 1.0
            rows: dict[str, list[float]] = {name: [] for name in networks}
            for seed in seeds:
                for variant, given in networks.items():
                    block = {"architecture": "agn-separable", **given}
                    found = learn(block, trial, train, test, seed, None)
                    rows[variant].append(factor * found["value"])
                    done += 1
                    if show is not None:
                        show(done, total)
                known = {"unit": trial.unit, "values": rows, "means": _means(rows)}
                results[name] = {**known, "gains": verdicts(rows, trial.higher)}
                options.out.write_text(json.dumps(results, indent=1) + "\n")


def _means(rows: dict[str, list[float]]) -> dict[str, float]:
    return {name: mean(values) for name, values in rows.items()}


if __name__ == "__main__":
    compare(__doc__, CHANNELS, SEEDS)
