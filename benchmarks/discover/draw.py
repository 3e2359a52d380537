"""Draw the records of planted_truth.py.

python draw.py RECORD.json PICTURE.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from planted import EVERY, kept_by


def draw(record: Path, picture: Path) -> None:
    """The error without each kind, by what was planted."""
    rows = json.loads(record.read_text())["rows"]
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots()
    rng = np.random.default_rng(0)
    colours = {"kept": "#1a7f4b", "broken": "#b3261e"}
    for place, kind in enumerate(EVERY):
        for row in rows:
            if kind not in row["effects"]:
                continue
            truth = "kept" if kind in kept_by(row["shape"], row["rule"]) else "broken"
            wrong = kind in row["wrong"]
            height = place + (-0.17 if truth == "kept" else 0.17) + rng.uniform(-0.1, 0.1)
            marker = {"marker": "x", "s": 45} if wrong else {"marker": "o", "s": 12, "alpha": 0.6}
            axes.scatter(row["effects"][kind], height, color=colours[truth], **marker)
    axes.axvline(1, color="#9aa4a9", lw=0.8)
    axes.set(xscale="log", xlabel="error without it, over the best", ylim=(len(EVERY) - 0.5, -0.5))
    axes.set_yticks(range(len(EVERY)), EVERY)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xticks([1, 2, 3, 5, 10])
    axes.grid(alpha=0.25, axis="x")
    for truth, colour in colours.items():
        axes.scatter([], [], color=colour, s=14, label=f"planted as {truth}")
    axes.scatter([], [], color="#444444", marker="x", label="wrong or undecided")
    figure.legend(loc="outside upper right", ncols=3, frameon=False)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
