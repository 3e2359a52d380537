"""The table of docs/discover.md from the records of `longer.py` and `real.py`.

python benchmarks/discover/longer_table.py docs/results/discover
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from longer import MOVING, NETWORKS


def difference(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """How much larger the first error is, and the standard error of that."""
    tables = [torch.tensor(row["graphs"], dtype=torch.float64) for row in (one, other)]
    apart = tables[0].mean(1) - tables[1].mean(1)
    square = float(apart.var()) / len(apart)
    square += sum(float(table.mean(0).var()) / table.shape[1] for table in tables)
    return float(apart.mean()), square**0.5


def rows(folder: Path) -> list[dict[str, Any]]:
    """Of each set: errors of the networks, the advised one, the best one, whether they agree."""
    found = []
    for name, networks in json.loads((folder / "longer.json").read_text())["sets"].items():
        report = json.loads((folder / "real" / f"{name}.json").read_text())
        model = report["config"]["model"]
        known = MOVING if name == "nbody" else NETWORKS
        advised = next((n for n, each in known.items() if each == model), str(model))
        means = {n: float(torch.tensor(row["graphs"]).mean()) for n, row in networks.items()}
        best = min(means, key=lambda n: means[n])
        apart, error, near = 0.0, 0.0, None
        if advised in means:
            apart, error = difference(networks[advised], networks[best])
            near = apart <= 2 * error
        found.append(
            {
                "name": name,
                "advised": advised,
                "best": best,
                "apart": apart,
                "error": error,
                "agree": near,
                "means": means,
                "epochs": {n: row["epochs"] for n, row in networks.items()},
            }
        )
    return found


def main(folder: Path) -> None:
    """Print Markdown."""
    names = list(NETWORKS)
    print(f"| data | {' | '.join(names)} | advised | behind the best by | agree |")
    print(f"|---|{'---:|' * len(names)}---|---:|---|")
    for row in rows(folder):
        least = row["means"][row["best"]]
        cells = []
        for name in names:
            mean = row["means"].get(name)
            text = "" if mean is None else f"{mean:.3g}"
            cells.append(f"**{text}**" if mean is not None and mean == least else text)
        said = {True: "yes", False: "no", None: "not trained"}[row["agree"]]
        behind = f"{row['apart']:.2g} ± {row['error']:.2g}"
        print(f"| {row['name']} | {' | '.join(cells)} | {row['advised']} | {behind} | {said} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
