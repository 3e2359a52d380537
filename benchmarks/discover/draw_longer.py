"""Draw the record of longer.py.

python benchmarks/discover/draw_longer.py docs/results/discover docs/pictures/discover-longer.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from longer import NETWORKS
from longer_table import rows
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

COLOURS = {True: "#1a7f4b", False: "#b3261e", None: "#8a9196"}
GREY = "#7c8a91"
MARKERS = dict(zip(NETWORKS, "osDv^X*Ph", strict=True))


def draw(folder: Path, picture: Path) -> None:
    """The test error of each network over that of the best, set by set; the advised one filled."""
    found = [row for row in rows(folder) if row["means"][row["best"]] > 1e-6]  # not solids
    figure = Figure(figsize=(8.6, 0.75 * len(found) + 1.2), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(found):
        least = row["means"][row["best"]]
        ends = [mean / least for mean in row["means"].values()]
        axes.plot([1, max(ends)], [place, place], color="#d5dadd", lw=1, zorder=0)
        for name, mean in row["means"].items():
            chosen = name == row["advised"]
            colour = COLOURS[row["agree"]] if chosen else GREY
            fill, order = (colour, 3) if chosen else ("white", 2)
            look = {"s": 70, "marker": MARKERS[name], "zorder": order}
            axes.scatter(mean / least, place, color=fill, edgecolor=colour, **look)
    axes.set_yticks(range(len(found)), [row["name"] for row in found])
    axes.set(ylim=(len(found) - 0.4, -0.6))
    axes.set_xlabel(
        "test error over that of the best network; filled: the advised one, green where the "
        "criterion holds"
    )
    look = {"linestyle": "", "color": "white", "markeredgecolor": GREY, "markersize": 8}
    handles = [Line2D([], [], marker=mark, label=name, **look) for name, mark in MARKERS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False)
    axes.grid(alpha=0.25, axis="x")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
