"""The polytopes, drawn as wireframes."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from scipy.spatial.transform import Rotation

from symgnn.data import polytope
from symgnn.report._result_rows import Results
from symgnn.report.figures._coxeter import coxeter_plane
from symgnn.report.figures._style import plain

_NEAR, _FAR = "#134e6f", "#c3d3da"
_RINGS = LinearSegmentedColormap.from_list("rings", ["#d55e00", "#e8a13a", "#4fa3a5", "#134e6f"])


@plain
def wireframes(results: Results) -> Figure:
    """One panel per class: seen from the front in 3 dimensions, else on the Coxeter plane."""
    dimension, names = int(results["dimension"]), list(results["classes"])
    columns = len(names) if len(names) <= 5 else math.ceil(len(names) / 2)
    size = 2.2 if dimension == 3 else 3.5
    lines = math.ceil(len(names) / columns)
    layout = ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1)
    figure = Figure(figsize=(size * columns, (size + 0.45) * lines), layout=layout)

    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[len(names) :]:
        axes.remove()
    for axes, name in zip(panels, names, strict=False):
        graph = polytope(name, dimension)
        pos = graph.pos.double().numpy()
        edges = graph.edge_index.T.numpy()
        edges = edges[edges[:, 0] < edges[:, 1]]
        (_draw_solid if dimension == 3 else _draw_projection)(axes, pos, edges)
        axes.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
        axes.axis("off")
        axes.set_title(f"{name}\n{len(pos)} vertices, {len(edges)} edges")
    return figure


def _draw_solid(axes: Axes, pos: np.ndarray, edges: np.ndarray) -> None:
    """A solid in perspective; what is farther away is thinner and paler."""
    turn = Rotation.from_euler("yx", [36, 20], degrees=True)
    pos = turn.apply(pos[:, [1, 0, 2]])  # a simplex stands on its base
    distance = 5.0
    flat = pos[:, :2] * (distance / (distance - pos[:, 2:]))
    low, high = flat.min(axis=0), flat.max(axis=0)
    flat = (2 * flat - low - high) / (high - low).max()
    depth = pos[edges, 2].mean(axis=1)
    near = (depth - depth.min()) / (np.ptp(depth) or 1.0)
    order = np.argsort(near)
    axes.add_collection(
        LineCollection(
            list(flat[edges[order]]),
            colors=[_blend(share) for share in near[order]],
            linewidths=1.0 + 1.8 * near[order],
            capstyle="round",
        )
    )
    height = (pos[:, 2] - pos[:, 2].min()) / np.ptp(pos[:, 2])
    for point, share in sorted(zip(flat, height, strict=True), key=lambda pair: pair[1]):
        axes.plot(*point, "o", color=_blend(share), markersize=3.0 + 2.0 * share)


def _draw_projection(axes: Axes, pos: np.ndarray, edges: np.ndarray) -> None:
    """A polytope on its Coxeter plane, the edges coloured by their distance from the centre."""
    flat = pos @ coxeter_plane(pos)
    radius = np.linalg.norm(flat, axis=1)
    x, y = flat[np.argmax(np.round(radius, 6))] / radius.max()
    flat = flat @ np.array([[y, x], [-x, y]]) / radius.max()  # an outermost vertex on top
    radius = np.linalg.norm(flat[edges].mean(axis=1), axis=1)
    order = np.argsort(-radius)
    width = float(np.clip(12.0 / math.sqrt(len(edges)), 0.3, 1.4))
    axes.add_collection(
        LineCollection(
            list(flat[edges[order]]),
            colors=_RINGS(radius[order]),
            linewidths=width,
            alpha=0.9 if len(edges) < 200 else 0.7,
        )
    )
    size = float(np.clip(24.0 / math.sqrt(len(pos)), 1.0, 5.0))
    axes.plot(*flat.T, "o", color=_NEAR, markersize=size)


def _blend(share: float) -> tuple[float, ...]:
    """The colour between far (0) and near (1)."""
    return tuple(
        (1 - share) * f + share * n for f, n in zip(to_rgb(_FAR), to_rgb(_NEAR), strict=True)
    )
