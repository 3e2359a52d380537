"""Draws the pictures of the documentation from what the code says."""

import textwrap
from pathlib import Path

import matplotlib
import tomllib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.patches import FancyBboxPatch

from symgnn.experiments._shape_comparison import COMPARISONS, draw
from symgnn.geometry import EVERYTHING, Symmetry
from symgnn.nn import GN, build
from symgnn.nn.inputs import v
from symgnn.report._order_diagram import order_diagram

PICTURES = Path(__file__).parent / "pictures"
BLOCKS = ["gn", "dgn", "sdgn", "agn", "agn+edges", "agn+distances", "combined", "cgn"]
CHIRAL = ["agn-separable", "combined-separable", "cgn-separable"]
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
    for name in CHIRAL:
        for chiral in (False, True):
            model = build(name, dimension=3, chiral=chiral)
            found.setdefault(model.symmetry, []).append(model.network.name)
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
    diagram = order_diagram(list(found), lambda a, b: b <= a)
    across, up = 5.0, 2.5
    place = {one: (across * x, up * row) for one, (x, row) in diagram.places.items()}

    figure, axes = plt.subplots(figsize=(12, 13))
    for line in diagram.lines:
        x, y = (torch.tensor(each) for each in zip(*line, strict=True))
        axes.plot(across * x, up * y, color="#8a94a6", zorder=1)
    width, height = 4.5, 1.4
    for symmetry, (x, y) in place.items():
        axes.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.15",
                facecolor=COLOURS[min(round(y / up), len(COLOURS) - 1)],
                edgecolor="#5b6b82",
                zorder=2,
            )
        )
        centred = {"ha": "center", "va": "center", "zorder": 3}
        blocks = textwrap.fill(", ".join(found[symmetry]), 36)
        words = heading(symmetry)
        size = 9.5 if words.count("\n") < 2 else 7.5
        axes.text(x, y + 0.26, words, fontsize=size, weight="bold", **centred)
        axes.text(x, y - 0.4, blocks, fontsize=9 if "\n" not in blocks else 7.5, **centred)
    widest = across * max(abs(x) for line in diagram.lines for x, _ in line)
    axes.set_xlim(-widest - 0.3, widest + 0.3)
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


#: What each package is for; their order is that of the contract in pyproject.toml.
PURPOSES = {
    "cli": "the command symgnn",
    "commands": "one file per command",
    "symmetry_demo": "make demo",
    "bench": "speed claims, measured",
    "explorer": "symgnn explore",
    "experiments": "the paper's tables and figures",
    "train": "fit, load, Run, Ensemble, one loop",
    "audit": "the symmetry of any model",
    "discovery": "the symmetry of any data",
    "report": "tables, plots, pages",
    "nn": "Spec, Update, Block, Model; _engine is fast",
    "data": "datasets and your own files",
    "graphs": "Topology: neighbours, rays, angles",
    "geometry": "measures, transformations, symmetries",
    "_argument_checks": "",
    "progress": "",
    "store": "",
    "warning_lines": "",
}


def layers() -> list[list[str]]:
    """The packages, from the top to the bottom, as the contract on imports has them."""

    config = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    (found,) = (c for c in config["tool"]["importlinter"]["contracts"] if c["id"] == "layers")
    return [[name.strip() for name in row.split("|")] for row in found["layers"]]


def draw_architecture(path: Path) -> None:
    """The packages as rows of boxes: each imports from the rows below it alone."""
    rows = layers()
    figure, axes = plt.subplots(figsize=(9, 0.85 * len(rows) + 0.6))
    total, gap, height = 10.0, 0.2, 0.78
    for k, row in enumerate(rows):
        y = len(rows) - 1 - k
        width = (total - gap * (len(row) - 1)) / len(row)
        for j, name in enumerate(row):
            x = j * (width + gap)
            axes.add_patch(
                FancyBboxPatch(
                    (x, y),
                    width,
                    height,
                    boxstyle="round,pad=0,rounding_size=0.1",
                    facecolor=COLOURS[min(k * len(COLOURS) // len(rows), len(COLOURS) - 1)],
                    edgecolor="#5b6b82",
                )
            )
            purpose = PURPOSES[name]
            middle = {"ha": "center", "va": "center"}
            size = 11 if len(row) < 3 else 9
            rise = {0: 0.0, 1: 0.16}.get(len(purpose.splitlines()), 0.24)
            axes.text(
                x + width / 2, y + height / 2 + rise, name, weight="bold", size=size, **middle
            )
            below = y + height / 2 - (0.16 if rise < 0.2 else 0.12)
            axes.text(x + width / 2, below, purpose, size=9.5, **middle)
    axes.annotate(
        "",
        xy=(-0.35, 0.1),
        xytext=(-0.35, len(rows) - 0.3),
        arrowprops={"arrowstyle": "-|>", "color": "#5b6b82", "linewidth": 1.5},
    )
    axes.text(-0.6, len(rows) / 2, "imports", rotation=90, ha="center", va="center", color="#444")
    axes.set_xlim(-0.9, total + 0.1)
    axes.set_ylim(-0.1, len(rows))
    axes.axis("off")
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for picture, name in ((draw_lattice, "symmetry-lattice"), (draw_architecture, "architecture")):
        picture(PICTURES / f"{name}.png")
        print("wrote", PICTURES / f"{name}.png")
    for name in COMPARISONS:
        print("wrote", draw(name, PICTURES / f"{name}.png"))
