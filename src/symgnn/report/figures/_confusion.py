"""Confusion matrices: which classes a block takes for which."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from symgnn.report._palette import ink
from symgnn.report._result_rows import Results, long_head, rows_of
from symgnn.report.figures._row_layout import belongs, blocks_of, settings_of
from symgnn.report.figures._style import HEAT_MAP, plain


def telling_column(results: Results) -> str | None:
    """The transformation in which the rows differ most; None if there is no confusion matrix."""
    spread: dict[str, float] = {}
    for column in results["columns"]:
        rows = [row for row in rows_of(results) if column in row.get("confusion", {})]
        if column != "train" and rows:
            spread[column] = float(np.std([_accuracy(row["confusion"][column]) for row in rows]))
    return max(spread, key=lambda column: spread[column]) if spread else None


@plain
def confusion_matrices(results: Results, column: str | None = None) -> Figure:
    """The matrices of all rows on the training graphs, and on those of one transformation.

    Row of a matrix: the true class; column: the predicted one. The transformation is by default
    that in which the rows differ most. A row without a coordinate map is shown with every map.
    """
    columns = [
        name
        for name in ("train", column or telling_column(results))
        if name and any(name in row.get("confusion", {}) for row in rows_of(results))
    ]
    if not columns:
        raise ValueError("the results have no confusion matrices of this column")
    settings, blocks = settings_of(results), blocks_of(results)
    width = 1.35 * len(blocks) + 1.7
    height = len(columns) * (1.35 * len(settings) + 1.2)
    figure = Figure(figsize=(width, height), layout="constrained")
    parts = figure.subfigures(len(columns), 1, squeeze=False, hspace=0.03)[:, 0]
    for part, name in zip(parts, columns, strict=True):
        part.suptitle(long_head(name), fontsize=11, fontweight="bold")
        _draw_part(part, results, name)
    return figure


def _draw_part(part: SubFigure, results: Results, column: str) -> None:
    """The grid of one column: blocks across, settings down."""
    settings, blocks, classes = settings_of(results), blocks_of(results), list(results["classes"])
    panels = part.subplots(len(settings), len(blocks), squeeze=False)
    drawn = np.zeros(panels.shape, dtype=bool)
    for row in rows_of(results):
        matrix = row.get("confusion", {}).get(column)
        for i, key in enumerate(settings):
            j = blocks.index(row["block"])
            if matrix is not None and belongs(row, key) and not drawn[i, j]:
                drawn[i, j] = True
                _draw_matrix(panels[i, j], np.array(matrix, dtype=float))
    for (i, j), axes in np.ndenumerate(panels):
        if not drawn[i, j]:
            axes.axis("off")
            continue
        if i == np.argmax(drawn[:, j]):
            axes.set_title(blocks[j])
        ticks = range(len(classes))
        last = not drawn[i + 1 :, j].any()
        axes.set_xticks(ticks, classes if last else [], rotation=90, fontsize=6.5)
        first = j == np.argmax(drawn[i])
        axes.set_yticks(ticks, classes if first else [], fontsize=6.5)
        if first:
            axes.set_ylabel("\n".join(filter(None, settings[i])), fontweight="bold", fontsize=8)


def _draw_matrix(axes: Axes, matrix: np.ndarray) -> None:
    axes.imshow(matrix, cmap=HEAT_MAP, vmin=0.0, vmax=1.0)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#bbbbbb", linewidth=0.6)
    for (i, j), value in np.ndenumerate(matrix):
        if value >= 0.05:
            text = "1" if value > 0.995 else f"{value:.2f}"[1:]
            axes.text(j, i, text, ha="center", va="center", fontsize=5.5, color=ink(value))


def _accuracy(matrix: list[list[float]]) -> float:
    return float(np.mean(np.diag(np.array(matrix, dtype=float))))
