"""The figures of the page, as dictionaries that Plotly draws."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from symgnn.explorer._explorer_networks import Reaction, Watched
from symgnn.explorer._explorer_stage import Scene
from symgnn.geometry import Symmetry
from symgnn.report._order_diagram import OrderDiagram, order_diagram

#: Characters in a line of a box of the lattice.
BOX_WIDTH = 26
#: The colour of each verdict; orange and green differ in lightness, too.
COLOURS = {
    "kept": "#2e9e6b",
    "same here": "#9cc9b1",
    "changes": "#e8a33d",
    "not known": "#9aa3b5",
    "broken": "#c62828",
}
BEFORE, AFTER, MARKED, TEXT = "#a9b1bf", "#5c6bc0", "#e8590c", "#7b8494"
Figure = dict[str, Any]


def projected(pos: Tensor, view: float = 0.0) -> Tensor:
    """Coordinates on the screen, and the depth behind it.

    Args:
        pos: Coordinates in any dimension. From 4 on they are projected along directions that no
            polytope is aligned with.
        view: The angle about the upright axis, in degrees.

    Returns:
        Right, up, and towards the viewer.

    Shapes:
        `[N, n] -> [N, 3]`.
    """
    n = pos.size(1)
    if n < 3:
        return torch.nn.functional.pad(pos, (0, 3 - n))
    if n > 3:
        noise = torch.randn(n, n, generator=Generator().manual_seed(2), dtype=pos.dtype)
        pos = pos @ torch.linalg.qr(noise).Q[:, :3]
    turn, lean = math.radians(view + 25), math.radians(18)
    x, y, z = pos.T
    x, y = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
    up = z * math.cos(lean) + y * math.sin(lean)
    return torch.stack([x, up, z * math.sin(lean) - y * math.cos(lean)], 1)


def _lines(points: Tensor, pairs: Tensor, **style: Any) -> Figure:
    """Edges as one line with gaps."""
    x: list[float | None] = []
    y: list[float | None] = []
    for a, b in pairs.T.tolist():
        x += [float(points[a, 0]), float(points[b, 0]), None]
        y += [float(points[a, 1]), float(points[b, 1]), None]
    return {"type": "scatter", "x": x, "y": y, "mode": "lines", "hoverinfo": "skip", **style}


def shape_figure(scene: Scene, view: float = 0.0) -> Figure:
    """The shape before and after a move, with the length and the angle that changed most."""
    data = scene.data
    pairs = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    pairs = pairs if pairs.numel() else data.edge_index
    centre = data.pos.mean(0)
    before, after = (projected(x - centre, view) for x in (data.pos, scene.moved.pos))
    traces = [
        _lines(before, pairs, line={"color": BEFORE, "width": 1.5}, name="before"),
        _lines(after, pairs, line={"color": AFTER, "width": 3}, name="after"),
    ]
    length, angle, _ = scene.changes
    if not length.kept:
        edge = torch.tensor([[length.nodes[0]], [length.nodes[1]]])
        style = {"line": {"color": MARKED, "width": 6}, "name": "length that changed most"}
        traces.append(_lines(after, edge, **style))
    if not angle.kept:
        j, i, k = angle.nodes
        rays = torch.tensor([[i, i], [j, k]])
        style = {"line": {"color": MARKED, "width": 4, "dash": "dot"}}
        traces.append(_lines(after, rays, **style, name="angle that changed most"))
    front = (after[:, 2] - after[:, 2].min()) / (after[:, 2].max() - after[:, 2].min() + 1e-12)
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": after[:, 0].tolist(),
            "y": after[:, 1].tolist(),
            "text": [str(k) for k in range(len(after))],
            "hoverinfo": "text",
            "marker": {"size": (6 + 6 * front).tolist(), "color": AFTER},
            "showlegend": False,
        }
    )
    reach = 1.25 * float(torch.cat([before, after])[:, :2].abs().max())
    axis = {"visible": False, "range": [-reach, reach], "fixedrange": True}
    return {
        "data": traces,
        "layout": {
            **_blank(),
            "xaxis": axis,
            "yaxis": {**axis, "scaleanchor": "x"},
            "legend": {"orientation": "h", "y": -0.02, "font": {"color": TEXT}},
            "uirevision": "shape",
        },
    }


def _blank() -> Figure:
    return {
        "margin": {"l": 5, "r": 5, "t": 5, "b": 5},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }


def lattice_diagram(networks: Sequence[Watched]) -> OrderDiagram[Symmetry]:
    """Where each symmetry is: above all that it contains."""
    found = dict.fromkeys(one.symmetry for one in networks if one.symmetry is not None)
    return order_diagram(list(found), lambda a, b: b <= a)


def lattice_figure(networks: Sequence[Watched], reactions: Sequence[Reaction]) -> Figure:
    """The lattice of symmetries: boxes light up where the symmetry contains the move."""
    diagram = lattice_diagram(networks)
    places = diagram.places
    verdicts: dict[Symmetry, list[Reaction]] = {one: [] for one in places}
    for network, reaction in zip(networks, reactions, strict=True):
        if network.symmetry is not None:
            verdicts[network.symmetry].append(reaction)
    x: list[float | None] = []
    y: list[float | None] = []
    for line in diagram.lines:
        x += [*(across for across, _ in line), None]
        y += [*(up for _, up in line), None]
    boxes = []
    for one, (right, up) in places.items():
        kept = [each.must_stay for each in verdicts[one]]
        broken = any(each.verdict == "broken" for each in verdicts[one])
        colour = COLOURS["broken" if broken else "kept" if all(kept) else "changes"]
        names = ", ".join(each.name for each in verdicts[one])
        words = textwrap.wrap(str(one).removesuffix(", permutations"), BOX_WIDTH)
        boxes.append(
            {
                "x": right,
                "y": up,
                "text": "<br>".join([f"<b>{names}</b>", *words]),
                "showarrow": False,
                "bgcolor": colour,
                "bordercolor": "#5b6b82",
                "borderpad": 3,
                "font": {"size": 10, "color": "#10131a" if not broken else "#ffffff"},
            }
        )
    lines = {"type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip"}
    wide = max(abs(x) for line in [places.values(), *diagram.lines] for x, _ in line) + 0.7
    top = max(up for _, up in places.values())
    hidden = {"visible": False, "fixedrange": True}
    return {
        "data": [{**lines, "line": {"color": BEFORE, "width": 1.5}}],
        "layout": {
            **_blank(),
            "xaxis": {**hidden, "range": [-wide, wide]},
            "yaxis": {**hidden, "range": [-0.6, top + 0.6]},
            "annotations": boxes,
            "showlegend": False,
        },
    }
