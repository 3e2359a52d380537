"""The test during training, and step times."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from symgnn.report._palette import block_colour
from symgnn.report._result_rows import Results
from symgnn.report.figures._style import log_scale, plain


@plain
def test_curves(results: Results) -> Figure:
    """The metric of the test graphs against the epoch, with a band of one deviation."""
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for row in results["rows"]:
        curve, colour = row["curve"], block_colour(row["block"])
        epochs = curve["test_epoch"]
        mean, deviation = (np.array(curve[f"test_{name}"], dtype=float) for name in ("mean", "std"))
        axes.fill_between(
            epochs, mean - deviation, mean + deviation, color=colour, alpha=0.15, linewidth=0
        )
        axes.plot(epochs, mean, color=colour, linewidth=1.4, marker=".", label=row["block"])
    axes.set(xlabel="epoch", ylabel=results["columns"][1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if results["columns"][1].endswith("MSE"):
        log_scale(axes)
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=len(results["rows"]))
    return figure


@plain
def target_curves(results: Results) -> Figure:
    """The test MSE of each target against the epoch, a panel each, with bands of one deviation."""
    names = list(results["rows"][0]["curve"]["targets"])
    figure = Figure(figsize=(9.6, 2.1 * -(-len(names) // 4)), layout="constrained")
    panels = figure.subplots(-(-len(names) // 4), 4, sharex=True, squeeze=False).flatten()
    for axes, name in zip(panels, names, strict=False):
        for row in results["rows"]:
            curve, colour = row["curve"], block_colour(row["block"])
            found = curve["targets"][name]
            mean, deviation = (np.array(found[key], dtype=float) for key in ("mean", "std"))
            band = (curve["test_epoch"], np.maximum(mean - deviation, mean / 10), mean + deviation)
            axes.fill_between(*band, color=colour, alpha=0.15, linewidth=0)
            label = row["block"] if name == names[0] else None
            axes.plot(curve["test_epoch"], mean, color=colour, linewidth=1.2, label=label)
        axes.set_title(name, fontsize=9)
        log_scale(axes)
        axes.grid(alpha=0.25)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    for axes in panels[max(len(names) - 4, 0) : len(names)]:
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supylabel("test MSE, standardised", fontsize=9)
    figure.legend(loc="outside lower center", ncols=len(results["rows"]))
    return figure


@plain
def step_ratios(results: Results) -> Figure:
    """The time of a step over that of GN: bars here, a line across where the paper has a number."""
    columns, rows = results["columns"], results["rows"]
    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(rows)
    for k, row in enumerate(rows):
        for place, column in enumerate(columns):
            cell, left = row["cells"][column], place - 0.4 + k * width
            label = row["block"] if place == 0 else None
            colour = block_colour(row["block"])
            axes.bar(left, cell["mean"], width, align="edge", color=colour, label=label)
            if cell["paper_mean"] is not None:
                axes.hlines(cell["paper_mean"], left, left + width, color="#1b1b1b", linewidth=1.6)
    axes.set_xticks(range(len(columns)), [column.replace("polytopes ", "") for column in columns])
    axes.set_ylabel("time of a step, GN = 1")
    log_scale(axes)
    axes.grid(axis="y", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=len(rows))
    return figure
