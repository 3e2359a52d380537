"""All accuracies at a glance, ours beside the paper's."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from symgnn.report._palette import OUTLINE, ink
from symgnn.report._result_rows import Results, cells_of, label, rows_of, short_head
from symgnn.report._verdict_marks import standing
from symgnn.report.figures._style import HEAT_MAP, plain


@plain
def heat_map(results: Results) -> Figure:
    """Our accuracies on the left and the paper's on the right, on the same scale of colours.

    Cells that differ from the paper, or break the theory, are outlined on both sides. Where the
    paper has no number at all, its side is left out.
    """
    rows, columns = rows_of(results), list(results["columns"])
    height = 0.3 * len(rows) + 1.3
    sides = [("here", "mean"), ("the paper", "paper_mean")]
    if not any(
        cell.get("paper_mean") is not None for row in rows for cell in row["cells"].values()
    ):
        del sides[1]
    figure = Figure(figsize=(0.49 * len(sides) * len(columns) + 3.2, height), layout="constrained")
    panels = figure.subplots(1, len(sides), sharey=True, squeeze=False)[0]
    for axes, (title, key) in zip(panels, sides, strict=True):
        values = np.array(
            [[_value(row["cells"].get(column), key) for column in columns] for row in rows]
        )
        image = axes.imshow(values, cmap=HEAT_MAP, vmin=0.0, vmax=1.0, aspect="auto")
        _frame(axes, values, title)
        axes.set_xticks(range(len(columns)), [short_head(column) for column in columns])
        _separate_blocks(axes, [row["block"] for row in rows])
        axes.tick_params(labelleft=axes is panels[0])
    panels[0].set_yticks(range(len(rows)), [label(row) for row in rows])
    figure.colorbar(image, ax=list(panels), label="accuracy", pad=0.01, aspect=30)

    index = {id(row): k for k, row in enumerate(rows)}
    shown = set()
    for row, column, cell in cells_of({**results, "rows": rows}):
        kind = standing(cell)
        if kind:
            shown.add(kind)
            for axes in panels:
                _outline(axes, index[id(row)], columns.index(column), OUTLINE[kind])
    _legend(figure, shown)
    return figure


def _value(cell: object, key: str) -> float:
    value = cell.get(key) if isinstance(cell, dict) else None
    return np.nan if value is None else float(value)


def _frame(axes: Axes, values: np.ndarray, title: str) -> None:
    """White lines between the cells, and the number in each."""
    axes.set_title(title, pad=4)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(values.shape[1] - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(values.shape[0] - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)
    for (i, j), value in np.ndenumerate(values):
        missing = np.isnan(value)
        text = "–" if missing else f"{value:.2f}"
        colour = "#999999" if missing else ink(value)
        axes.text(j, i, text, ha="center", va="center", fontsize=7.5, color=colour)


def _separate_blocks(axes: Axes, blocks: list[str]) -> None:
    """A thicker line where the block changes."""
    for k in range(1, len(blocks)):
        if blocks[k] != blocks[k - 1]:
            axes.axhline(k - 0.5, color="white", linewidth=4)


def _outline(axes: Axes, i: int, j: int, colour: str) -> None:
    axes.add_patch(
        Rectangle((j - 0.45, i - 0.42), 0.9, 0.84, fill=False, edgecolor=colour, linewidth=1.8)
    )


def _legend(figure: Figure, shown: set[str]) -> None:
    """The legend of the outlines that occur."""
    words = {"differs": "differs from the paper", "violated": "fixed by theory, and not met"}
    handles = [
        Line2D([], [], marker="s", linestyle="", markersize=9, fillstyle="none", label=words[kind])
        for kind in OUTLINE
        if kind in shown
    ]
    for handle, kind in zip(handles, [kind for kind in OUTLINE if kind in shown], strict=True):
        handle.set(markeredgecolor=OUTLINE[kind], markeredgewidth=1.8)
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
