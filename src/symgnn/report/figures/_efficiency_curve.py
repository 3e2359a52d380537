"""Accuracy against the number of training samples, beside blocks that need only one."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator

from symgnn.report._palette import block_colour
from symgnn.report._result_rows import Results, long_head
from symgnn.report.figures._style import plain

_MARKERS = {"mean": "o", "sum": "s"}
#: Lengths of the dashes, and the distance below which lines cover each other.
_DASH, _SAME = 4.0, 0.01


@plain
def data_efficiency(results: Results) -> Figure:
    """One panel per transformation: curves over samples per class, and lines of a single sample.

    Bands are one deviation over the initialisations. Lines at the same height are drawn with
    staggered dashes, so that all are seen.
    """
    names = list(results["columns"])
    columns = min(3, len(names))
    lines = math.ceil(len(names) / columns)
    figure = Figure(figsize=(3.4 * columns + 0.4, 2.8 * lines + 0.6), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in panels[len(names) :]:
        axes.remove()
    handles: dict[str, Artist] = {}
    for k, name in enumerate(names):
        axes = panels[k]
        _draw_lines(axes, results, name, handles)
        _draw_curves(axes, results, name, handles)
        axes.set(title=long_head(name), ylim=(-0.03, 1.06), xscale="log")
        axes.set_xticks(
            results["samples"], [str(count) for count in results["samples"]], fontsize=7.5
        )
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.25)
        if k % columns == 0:
            axes.set_ylabel("accuracy")
        if k + columns >= len(names):
            axes.set_xlabel("samples per class")
            axes.tick_params(labelbottom=True)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(4, len(handles)),
    )
    return figure


def _draw_lines(axes: Axes, results: Results, column: str, handles: dict[str, Artist]) -> None:
    lines = [line for line in results["lines"] if line["column"] == column]
    for line in lines:
        colour, mean, std = block_colour(line["block"]), line["mean"], line.get("std") or 0.0
        if std:
            axes.axhspan(mean - std, min(mean + std, 1), color=colour, alpha=0.1, linewidth=0)
        same = [other for other in lines if abs(other["mean"] - mean) < _SAME]
        drawn = axes.axhline(mean, color=colour, linewidth=2.0)
        if len(same) > 1:
            gap = _DASH * (len(same) - 1)
            drawn.set(linestyle=(same.index(line) * _DASH, (_DASH, gap)), dash_capstyle="butt")
        name = f"{line['block']}, {line['aggregation']}, 1 sample"
        handles[name] = Line2D([], [], color=colour, linewidth=2.0)


def _draw_curves(axes: Axes, results: Results, column: str, handles: dict[str, Artist]) -> None:
    for curve in results["curves"]:
        if curve["column"] != column:
            continue
        mean, std = np.array(curve["mean"], dtype=float), np.array(curve["std"], dtype=float)
        colour = block_colour(curve["block"])
        axes.fill_between(
            results["samples"],
            np.clip(mean - std, 0, 1),
            np.clip(mean + std, 0, 1),
            color=colour,
            alpha=0.18,
            linewidth=0,
        )
        handles[f"{curve['block']}, {curve['aggregation']}"] = axes.plot(
            results["samples"],
            mean,
            color=colour,
            linewidth=1.6,
            marker=_MARKERS.get(curve["aggregation"], "o"),
            markersize=4,
            linestyle="--" if curve["aggregation"] == "mean" else "-",
        )[0]
