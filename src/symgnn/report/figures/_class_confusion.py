"""The confusion matrix of one classification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from symgnn.report._outcome_cases import short
from symgnn.report._palette import ink
from symgnn.report.figures._style import HEAT_MAP, plain

#: From so many classes on, numbers are left out of the cells.
MANY = 25


@plain
def class_confusion(confusion: Sequence[Sequence[int]], classes: Sequence[str]) -> Figure:
    """Counts of each true class (row) and predicted class (column).

    The colour of a cell is its share of the row, so that rare classes are seen as well.
    """
    counts = np.array(confusion, dtype=float)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = len(classes)
    names = [short(name, 16) for name in classes]
    side = min(max(0.5 * size + 1.9, 3.4), 11.0)
    figure = Figure(figsize=(side + 0.7, side), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(share, cmap=HEAT_MAP, vmin=0.0, vmax=1.0)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    step = max(size // 40, 1)  # with hundreds of classes only some are named
    ticks = list(range(0, size, step))
    long = max(map(len, names)) > 3 and size > 2
    axes.set_xticks(ticks, [names[k] for k in ticks], rotation=90 if long else 0)
    axes.set_yticks(ticks, [names[k] for k in ticks])
    axes.set(xlabel="predicted", ylabel="true")
    if size <= MANY:
        font = 9 if size <= 8 else 7
        for (i, j), value in np.ndenumerate(counts):
            colour = ink(share[i, j]) if value else "#999999"
            axes.text(j, i, f"{int(value)}", ha="center", va="center", fontsize=font, color=colour)
    figure.colorbar(image, ax=axes, label="share of the true class", shrink=0.85)
    return figure
