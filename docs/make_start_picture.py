"""Draws the picture of the start page: a cube under seven maps, and the networks that notice."""

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

from symgnn.data import polytope
from symgnn.geometry import (
    Affine,
    Dilation,
    Flex,
    Reflection,
    Rotation,
    SpecialConformal,
)
from symgnn.nn import build

PICTURES = Path(__file__).parent / "pictures"
NETWORKS = ["gn", "tgn", "dgn", "sdgn", "combined", "agn", "cgn"]
#: The kind of each map, as a symmetry has it.
KINDS = ["rotation", "reflection", "dilation", "affine", "redrawing", "flex", "special-conformal"]
TITLES = ["turn", "mirror", "scale", "shear", "redraw", "flex", "conformal"]
SAME, OTHER, LINE = "#2e9e6b", "#c9ced6", "#4051b5"


def moved(cube, axes):
    """The images of a cube with these axes `[3, 3]` under a map of each kind."""
    pos = cube.pos
    cosine, sine = math.cos(0.6), math.sin(0.6)
    turn = torch.tensor([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]], dtype=torch.float64)
    shear = torch.tensor([[1, 0, 0.7], [0, 1, 0], [0, 0, 1]], dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    box = cube.clone()
    box.pos = pos @ axes.T * torch.tensor([1.6, 0.6, 1.0], dtype=torch.float64) @ axes
    flex = Flex.random(pos, cube.edge_index, generator=torch.Generator().manual_seed(3), size=0.8)
    conformal = SpecialConformal(torch.tensor([0.35, 0.1, -0.2], dtype=torch.float64), zero)
    maps = [
        Rotation(turn),
        Reflection(torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)),
        Dilation(0.55),
        Affine(shear, zero),
    ]
    return [*(each.apply(cube) for each in maps), box, flex.apply(cube), conformal.apply(cube)]


@torch.no_grad()
def changes(cube, images) -> dict[str, list[float]]:
    """The change of each network's output, relative."""
    found = {}
    for name in NETWORKS:
        torch.manual_seed(0)
        model = build(name, dimension=3, outputs=5, aggregation="sum").double()
        before = model(cube)
        found[name] = [
            float((model(image) - before).abs().max() / before.abs().max()) for image in images
        ]
        for change, kind in zip(found[name], KINDS, strict=True):
            if (change < 1e-9) != (kind in model.symmetry):
                raise SystemExit(f"{name}, {kind}: {change} is not what the symmetry says")
    return found


def draw(path: Path) -> None:
    """The cube and its images, and a table of dots."""
    cube = polytope("hypercube", 3, dtype=torch.float64)
    # a little off, so that its mirror image and its turned copy are other cubes
    tilt = torch.linalg.qr(torch.tensor([[9.0, 2, 1], [-2, 9, 2], [-1, -2, 9]]).double()).Q
    cube.pos = cube.pos @ tilt
    images = moved(cube, tilt)
    found = changes(cube, images)
    columns = len(images) + 1
    figure = plt.figure(figsize=(12.5, 4.6))
    for k, (graph, title) in enumerate(zip([cube, *images], ["cube", *TITLES], strict=True)):
        axes = figure.add_axes((0.09 + k * 0.113, 0.56, 0.113, 0.36), projection="3d")
        for a, b in graph.edge_index.T.tolist():
            if a < b:
                x = graph.pos[[a, b]] - graph.pos.mean(0)
                colour = "#5b6b82" if k == 0 else LINE
                axes.plot(*x.T.numpy(), color=colour, linewidth=1.6)
        for side in ("x", "y", "z"):
            getattr(axes, f"set_{side}lim")(-0.82, 0.82)
        axes.set_box_aspect((1, 1, 1))
        axes.view_init(18, -62)
        axes.axis("off")
        figure.text(0.09 + (k + 0.5) * 0.113, 0.965, title, ha="center", va="center", size=12)
    table = figure.add_axes((0.09, 0.02, 0.113 * columns, 0.54))
    for row, name in enumerate(NETWORKS):
        y = len(NETWORKS) - 1 - row
        table.text(-0.05, y, name.upper() if name != "combined" else "Combined", size=12,
                   ha="right", va="center")  # fmt: skip
        for k, change in enumerate(found[name]):
            same = change < 1e-9
            table.scatter(k + 1.5, y, s=150, color=SAME if same else "none",
                          edgecolor=SAME if same else OTHER, linewidth=1.8)  # fmt: skip
    table.set_xlim(0, columns)
    table.set_ylim(-0.6, len(NETWORKS) - 0.4)
    table.axis("off")
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw(PICTURES / "start.png")
    print("wrote", PICTURES / "start.png")
