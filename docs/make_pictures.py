"""Draws the pictures of the documentation from what the code says."""

import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
from matplotlib.patches import FancyBboxPatch

from symgnn.experiments.shape_comparison import COMPARISONS, draw
from symgnn.geometry import EVERYTHING, Symmetry
from symgnn.nn import GN, build
from symgnn.nn.inputs import v

PICTURES = Path(__file__).parent / "pictures"
BLOCKS = ["gn", "dgn", "sdgn", "agn", "agn+edges", "agn+distances", "combined", "cgn"]
BLOCKS += ["tgn", "stgn", "ugn", "ugn+flips"]
COLOURS = ["#eef1f6", "#dbe7f5", "#c5ddf2", "#add0ee", "#93c2e8", "#78b2e0"]


def symmetries() -> dict[Symmetry, list[str]]:
    """Each symmetry that a block has, with the blocks that have it."""
    found: dict[Symmetry, list[str]] = {}
    for psi in ("identity", "neighbour-sum"):
        for name in BLOCKS:
            if (name, psi) == ("gn", "neighbour-sum"):
                continue
            model = build(name, dimension=3, coordinate_map=psi)
            label = model.network.name + ("" if psi == "identity" else "*")
            found.setdefault(model.symmetry, []).append(label)
    blind = build(GN.replace(inputs=[v]))
    found.setdefault(blind.symmetry, []).append("GN without coordinates")
    return found


def heading(symmetry: Symmetry) -> str:
    """The symmetry in words, without the permutations that all have."""
    if symmetry == EVERYTHING:
        return "every map"
    words = str(symmetry).removesuffix(", permutations").replace(", ", " + ")
    upright = "translations + rotations about an axis + reflections along an axis"
    words = words.replace(upright, "motions that keep an axis")
    return textwrap.fill(words, 30)


def draw_lattice(path: Path) -> None:
    """The symmetries of the blocks, ordered by inclusion."""
    found = symmetries()
    order = nx.DiGraph()
    order.add_nodes_from(found)
    order.add_edges_from((a, b) for a in found for b in found if a != b and a <= b)
    order = nx.transitive_reduction(order)
    rank: dict[Symmetry, int] = {}
    for node in nx.topological_sort(order):
        rank[node] = max((rank[p] + 1 for p in order.predecessors(node)), default=0)

    place = {}
    for level in range(max(rank.values()) + 1):
        row = sorted(
            (s for s in found if rank[s] == level), key=lambda s: ("flex" not in s, str(s))
        )
        for k, symmetry in enumerate(row):
            place[symmetry] = (4.6 * (k - (len(row) - 1) / 2), 2.0 * level)

    figure, axes = plt.subplots(figsize=(11, 11))
    for a, b in order.edges:
        axes.plot(*zip(place[a], place[b], strict=True), color="#8a94a6", zorder=1)
    width, height = 4.0, 1.4
    for symmetry, (x, y) in place.items():
        axes.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.15",
                facecolor=COLOURS[min(rank[symmetry], len(COLOURS) - 1)],
                edgecolor="#5b6b82",
                zorder=2,
            )
        )
        centred = {"ha": "center", "va": "center", "zorder": 3}
        blocks = textwrap.fill(", ".join(found[symmetry]), 36)
        axes.text(x, y + 0.26, heading(symmetry), fontsize=9.5, weight="bold", **centred)
        axes.text(x, y - 0.38, blocks, fontsize=9, **centred)
    axes.set_xlim(min(x for x, _ in place.values()) - 2.2, max(x for x, _ in place.values()) + 2.2)
    axes.set_ylim(-1, max(y for _, y in place.values()) + 1)
    axes.text(
        0.0,
        0.0,
        "* with the neighbour-sum map. All are symmetric to permutations of the nodes.",
        transform=axes.transAxes,
        fontsize=9.5,
        color="#444",
    )
    axes.set_title(
        "What leaves the output unchanged: each box contains those below it", fontsize=13
    )
    axes.axis("off")
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    draw_lattice(PICTURES / "symmetry-lattice.png")
    print("wrote", PICTURES / "symmetry-lattice.png")
    for name in COMPARISONS:
        print("wrote", draw(name, PICTURES / f"{name}.png"))
