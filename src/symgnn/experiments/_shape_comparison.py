"""The paper's pictures of what its networks tell apart, drawn from measurements.

"square": a square becomes a rectangle, which AGN keeps, or a rhombus or a line, which DGN keeps.
"hexagon": a hexagon and two triangles, which AGN tells apart and DGN does not.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.geometry import folding_square
from symgnn.nn import build

#: Each comparison: the shapes, the first of which the others are compared with, and the blocks.
COMPARISONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "square": (("square", "rectangle", "rhombus", "line"), ("dgn", "agn", "combined")),
    "hexagon": (("hexagon", "two triangles"), ("dgn", "agn", "combined")),
}
#: Below this, relative to the outputs, a difference is rounding (float64).
SAME = 1e-9


def shape(name: str) -> Data:
    """One of the shapes, with edges along its sides, in the plane."""
    if name in ("square", "rhombus", "line"):
        pos, edges = folding_square({"square": math.pi / 2, "rhombus": 1.0, "line": 0.0}[name])
        return Data(pos=pos, edge_index=edges)
    if name == "rectangle":
        pos, edges = folding_square(math.pi / 2)
        return Data(pos=pos * pos.new_tensor([2.0, 1.0]), edge_index=edges)
    if name == "hexagon":
        pos, edges = _polygon(6)
        return Data(pos=pos, edge_index=edges)
    if name == "two triangles":
        pos, edges = _polygon(3)
        both = torch.cat([pos, pos + pos.new_tensor([1.5, 0.0])])
        return Data(pos=both, edge_index=torch.cat([edges, edges + 3], 1))
    known = dict.fromkeys(name for shapes, _ in COMPARISONS.values() for name in shapes)
    raise ValueError(f"shape: {name!r} is not known; choose from {', '.join(known)}")


def _polygon(sides: int) -> tuple[Tensor, Tensor]:
    """A regular polygon of side 1: `pos [sides, 2]`, `edge_index [2, 2 sides]`."""
    turns = 2 * math.pi * (torch.arange(sides, dtype=torch.float64) / sides + 0.25)
    radius = 0.5 / math.sin(math.pi / sides)
    pos = radius * torch.stack([turns.cos(), turns.sin()], 1)
    nodes = torch.arange(sides)
    pairs = torch.stack([nodes, nodes.roll(-1)])
    return pos, torch.cat([pairs, pairs.flip(0)], 1)


@torch.no_grad()
def measured(comparison: str, seeds: int = 3) -> dict[tuple[str, str], float]:
    """How far the output for each shape is from that for the first, for each block.

    Args:
        comparison: "square" or "hexagon".
        seeds: How many random initialisations are tried; the largest difference counts.

    Returns:
        `{(block, shape): difference}`, relative to the outputs.

    Example:
        >>> measured("square")["agn", "rectangle"] < 1e-9
        True
    """
    shapes, blocks = COMPARISONS[comparison]
    found = {}
    for block in blocks:
        outputs = []
        for seed in range(seeds):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = build(block, outputs=4, aggregation="sum").double().eval()
                for parameter in model.parameters():  # a new network is close to linear
                    parameter.add_(0.3 * torch.randn_like(parameter))
            outputs.append(torch.cat([model(shape(name)) for name in shapes]))
        for k, name in enumerate(shapes):
            changes = [(y[k] - y[0]).abs().max() / y.abs().max() for y in outputs]
            found[block, name] = float(max(changes))
    return found


def draw(comparison: str, path: str | os.PathLike[str]) -> Path:
    """Draw a comparison: each shape with what each block makes of it, as measured.

    Args:
        comparison: "square" or "hexagon".
        path: Of a PNG or SVG file.

    Returns:
        The path.
    """
    from matplotlib.figure import Figure

    shapes, blocks = COMPARISONS[comparison]
    numbers = measured(comparison)
    figure = Figure(figsize=(2.5 * len(shapes), 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(shapes)), shapes, strict=True):
        data = shape(name)
        for i, j in data.edge_index.T.tolist():
            axes.plot(*data.pos[[i, j]].T.tolist(), color="#5b6b82", lw=1.6, zorder=1)
        axes.plot(*data.pos.T.tolist(), "o", color="#134e6f", ms=7, zorder=2)
        lines = []
        for block in blocks:
            change = numbers[block, name]
            verdict = "the same" if change <= SAME else "told apart"
            size = f" ({change:.0e})" if name != shapes[0] else ""
            lines.append(f"{block.upper() if block != 'combined' else 'Combined'}: {verdict}{size}")
        axes.set_title(name, fontsize=11, weight="bold")
        if name != shapes[0]:
            axes.set_xlabel("\n".join(lines), fontsize=9.5)
        axes.set(aspect="equal", xticks=[], yticks=[])
        x, y = ((data.pos.amin(0) + data.pos.amax(0)) / 2).tolist()
        axes.set(xlim=(x - 1.3, x + 1.3), ylim=(y - 1.2, y + 1.2))
        for side in axes.spines.values():
            side.set_visible(False)
    path = Path(path)
    figure.savefig(path, dpi=110)
    return path
