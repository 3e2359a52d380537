"""The table of docs/discover.md from the records of `longer.py` and `real.py`.

python benchmarks/discover/longer_table.py docs/results/discover
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from longer import MOVING, NETWORKS

#: The number that is compared, where it is not the mean absolute error.
METRICS = {"polytopes": "loss", "mnist": "loss", "tsp": "loss", "nbody": "mse"}


def errors(name: str, metrics: dict[str, list[float]]) -> list[float]:
    """The error of each initialisation."""
    return metrics[METRICS.get(name, "mae")]


def rows(folder: Path) -> list[dict[str, Any]]:
    """Of each set: errors of the networks, the advised one, the best one, whether they agree."""
    found = []
    for name, networks in json.loads((folder / "longer.json").read_text())["sets"].items():
        report = json.loads((folder / "real" / f"{name}.json").read_text())
        model = report["config"]["model"]
        known = MOVING if name == "nbody" else NETWORKS
        advised = next((n for n, each in known.items() if each == model), str(model))
        values = {n: errors(name, row["metrics"]) for n, row in networks.items()}
        means = {n: sum(v) / len(v) for n, v in values.items()}
        best = min(means, key=lambda n: means[n])
        near = None
        if advised in means:
            apart = max(abs(values[n][0] - values[n][1]) for n in (advised, best))
            near = means[advised] - means[best] <= apart
        found.append(
            {"name": name, "advised": advised, "best": best, "agree": near, "means": means}
        )
    return found


def main(folder: Path) -> None:
    """Print Markdown."""
    names = list(NETWORKS)
    print(f"| data | {' | '.join(names)} | advised | within |")
    print(f"|---|{'---:|' * len(names)}---|---|")
    for row in rows(folder):
        least = row["means"][row["best"]]
        cells = []
        for name in names:
            mean = row["means"].get(name)
            text = "" if mean is None else f"{mean:.3g}"
            cells.append(f"**{text}**" if mean is not None and mean == least else text)
        said = {True: "yes", False: "no", None: "not trained"}[row["agree"]]
        print(f"| {row['name']} | {' | '.join(cells)} | {row['advised']} | {said} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
