"""The loss during training."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from symgnn.report._palette import block_colour
from symgnn.report._result_rows import Results, Row, rows_of
from symgnn.report.figures._row_layout import belongs, settings_of, title
from symgnn.report.figures._style import plain

#: Losses are drawn no lower than this.
_FLOOR = 1e-12


@plain
def training_curves(results: Results) -> Figure:
    """The loss against the epoch, one panel per aggregation and coordinate map.

    The band reaches one deviation over the initialisations above the mean, and by the same ratio
    below. A row without a coordinate map is in the panels of every map.
    """
    rows = [row for row in rows_of(results) if row.get("curve")]
    settings = [key for key in settings_of(results) if any(belongs(row, key) for row in rows)]
    if not settings:
        raise ValueError("the results have no training curves")
    columns = min(2, len(settings))
    lines = math.ceil(len(settings) / columns)
    figure = Figure(figsize=(4.8 * columns, 2.9 * lines + 0.5), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in panels[len(settings) :]:
        axes.remove()
    handles: dict[str, Artist] = {}
    for k, key in enumerate(settings):
        axes = panels[k]
        for row in rows:
            if belongs(row, key):
                handles[row["block"]] = _draw_curve(axes, row)
        axes.set(title=title(key), yscale="log")
        axes.grid(alpha=0.25)
        if k % columns == 0:
            axes.set_ylabel("loss")
        if k + columns >= len(settings):
            axes.set_xlabel("epoch")
            axes.tick_params(labelbottom=True)
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles)
    )
    return figure


def _draw_curve(axes: Axes, row: Row) -> Artist:
    """Draw one row's mean and band; give the line."""
    curve, colour = row["curve"], block_colour(row["block"])
    mean = np.maximum(np.array(curve["loss_mean"], dtype=float), _FLOOR)
    ratio = 1 + np.array(curve.get("loss_std") or np.zeros_like(mean), dtype=float) / mean
    axes.fill_between(
        curve["epoch"], mean / ratio, mean * ratio, color=colour, alpha=0.15, linewidth=0
    )
    return axes.plot(curve["epoch"], mean, color=colour, linewidth=1.4)[0]
