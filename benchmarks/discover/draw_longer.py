"""Draw the record of longer.py.

python benchmarks/discover/draw_longer.py docs/results/discover docs/pictures/discover-longer.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from longer_table import rows
from matplotlib.figure import Figure

COLOURS = {True: "#1a7f4b", False: "#b3261e", None: "#8a9196"}


def draw(folder: Path, picture: Path) -> None:
    """The test error of each network over that of the best, set by set; the advised one filled."""
    found = [row for row in rows(folder) if row["means"][row["best"]] > 1e-6]  # not solids
    figure = Figure(figsize=(8.6, 0.75 * len(found) + 1.2), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(found):
        least = row["means"][row["best"]]
        ends = [mean / least for mean in row["means"].values()]
        axes.plot([1, max(ends)], [place, place], color="#d5dadd", lw=1, zorder=0)
        for number, (name, mean) in enumerate(sorted(row["means"].items(), key=lambda m: m[1])):
            chosen = name == row["advised"]
            colour = COLOURS[row["agree"]] if chosen else "#7c8a91"
            fill = colour if chosen else "white"
            order = 3 if chosen else 2
            axes.scatter(mean / least, place, s=42, color=fill, edgecolor=colour, zorder=order)
            axes.annotate(
                name, (mean / least, place), xytext=(0, (7, -13, 16, -22)[number % 4]), ha="center",
                textcoords="offset points", fontsize=7, color=colour,
            )  # fmt: skip
    axes.set_yticks(range(len(found)), [row["name"] for row in found])
    axes.set(ylim=(len(found) - 0.4, -0.6))
    axes.set_xlabel("test error over that of the best network; filled: the advised one")
    axes.grid(alpha=0.25, axis="x")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
