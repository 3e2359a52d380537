"""Predicted against measured values, a panel for each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from symgnn.report._outcome_cases import case_name, short
from symgnn.report.figures._style import plain

POINT, MARK = "#134e6f", "#e07b00"
#: At most so many panels, and so many names of cases in each.
PANELS, NAMED = 12, 3


@plain
def parity_plot(targets: Sequence[Mapping[str, Any]]) -> Figure:
    """A panel for each of the first 12 targets; on the line, prediction and measurement agree.

    Args:
        targets: each with "name", "unit", "points" as pairs (measured, predicted), "mae", "rmse",
            "r2" and "worst", cases that have a "name" and are marked; see
            :meth:`symgnn.train._outcomes.Outcomes.summary`.
    """
    shown = [target for target in targets if target["points"]][:PANELS]
    if not shown:
        raise ValueError("the targets have no points")
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(4.1 * columns + 0.4, 4.0 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel in panels[len(shown) :]:
        panel.remove()
    for panel, target in zip(panels, shown, strict=False):
        _draw(panel, target)
    return figure


def _draw(axes: Axes, target: Mapping[str, Any]) -> None:
    points = np.array(target["points"], dtype=float)
    points = points[np.isfinite(points).all(axis=1)]
    low, high = (float(points.min()), float(points.max())) if len(points) else (0.0, 1.0)
    margin = 0.06 * (high - low) or 0.5
    limits = (low - margin, high + margin)
    alpha = 0.85 if len(points) < 200 else 0.35
    axes.plot(limits, limits, color="#999999", linewidth=1, zorder=1)
    axes.scatter(points[:, 0], points[:, 1], s=16, color=POINT, alpha=alpha, linewidth=0, zorder=2)
    _mark(axes, target["worst"][:NAMED])
    unit = f" [{target['unit']}]" if target["unit"] else ""
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    axes.set(xlabel=f"measured{unit}", ylabel=f"predicted{unit}")
    axes.set_title(f"{target['name']}\n{errors_text(target)}", fontsize=9)
    axes.grid(alpha=0.25)


def _mark(axes: Axes, cases: Sequence[Mapping[str, Any]]) -> None:
    """A ring and a number for each case, on the side away from the line; names in the corner."""
    known = [case for case in cases if None not in (case["measured"], case["predicted"])]
    halo = [withStroke(linewidth=2.5, foreground="white")]
    ink: dict[str, Any] = {"fontsize": 7.5, "color": "#8a4b00", "zorder": 4, "path_effects": halo}
    for number, case in enumerate(known, 1):
        x, y = case["measured"], case["predicted"]
        axes.scatter([x], [y], s=42, facecolor="none", edgecolor=MARK, linewidth=1.3, zorder=3)
        away = (-8, 4) if y > x else (8, -4)
        axes.annotate(
            str(number), (x, y), away, textcoords="offset points", ha="center", va="center", **ink
        )
    names = [f"{number}  {short(case_name(case))}" for number, case in enumerate(known, 1)]
    axes.text(0.03, 0.97, "\n".join(names), transform=axes.transAxes, va="top", **ink)


def errors_text(target: Mapping[str, Any]) -> str:
    """`MAE 0.12, RMSE 0.2, R² 0.95`; what is not defined is left out."""
    names = {"mae": "MAE", "rmse": "RMSE", "r2": "R²"}
    known = {name: target.get(name) for name in names}
    return ", ".join(f"{names[n]} {v:.3g}" for n, v in known.items() if v is not None)
