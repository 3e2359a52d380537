"""The figures of a search. They need matplotlib: `pip install symgnn[plot]`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from symgnn.discovery._discovery_report import DiscoveryReport
from symgnn.geometry.symmetry import plural
from symgnn.report.figures._figure_list import Captioned
from symgnn.report.figures._style import log_scale, plain

#: Rungs that are drawn, from the best down; the table of the page has all.
MOST_RUNGS = 24
COLOURS = {"kept": "#1a7f4b", "broken": "#b3261e", "undecided": "#8a9196"}


def all_figures(report: DiscoveryReport) -> list[Captioned]:
    """The figures for this report; those for which there are no data are left out."""
    found = []
    if report.verdicts and report.ladder:
        found.append(Captioned("verdicts", "At a glance", _VERDICTS, verdicts(report)))
        found.append(Captioned("ladder", "The best predictors", _LADDER, ladder(report)))
    return found


@plain
def verdicts(report: DiscoveryReport) -> Figure:
    """The error ratio of each kind on the left, the accuracy of the classifier on the right."""
    kinds = list(report.verdicts)
    figure = Figure(figsize=(9.4, 0.36 * len(kinds) + 1.3), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1.6, 1])
    for row, kind in enumerate(kinds):
        found = report.verdicts[kind]
        colour = COLOURS[found.verdict]
        low, high = found.interval
        low, high = max(low, 0.5), min(high, 100.0)
        left.plot([low, high], [row, row], color=colour, lw=2)
        left.plot(min(found.effect, 100.0), row, "o", color=colour, ms=6)
        label = f"{found.verdict}  × {found.effect:.2f}"
        left.annotate(
            label, (max(high, found.effect, 1.0), row), xytext=(8, 0), va="center",
            textcoords="offset points", fontsize=8.5, color=colour,
        )  # fmt: skip
        if found.spread is not None:
            low, high = found.spread.interval
            right.plot([100 * low, 100 * high], [row, row], color="#134e6f", lw=2)
            right.plot(100 * found.spread.accuracy, row, "s", color="#134e6f", ms=5)
    left.axvline(1, color="#9aa4a9", lw=0.8)
    right.axvline(50, color="#9aa4a9", lw=0.8)
    log_scale(left, "x")
    most = max([1.6, *(min(found.interval[1], 100.0) for found in report.verdicts.values())])
    left.set(
        xlim=(0.85, most**1.5 * 1.1), ylim=(len(kinds) - 0.5, -0.5), xlabel="error ratio",
        title="do the targets keep it?",
    )  # fmt: skip
    right.set(xlim=(30, 102), xlabel="accuracy of the classifier, %")
    right.set_title("are the inputs spread?")
    left.set_yticks(np.arange(len(kinds)), [plural(kind) for kind in kinds])
    left.grid(alpha=0.25, axis="x")
    right.grid(alpha=0.25, axis="x")
    return figure


@plain
def ladder(report: DiscoveryReport) -> Figure:
    """The error of each rung."""
    names = sorted(report.ladder, key=lambda name: report.ladder[name])[:MOST_RUNGS]
    figure = Figure(figsize=(9.4, 0.27 * len(names) + 1.0), layout="constrained")
    axes = figure.subplots()
    values = [report.ladder[name] for name in names]
    best = values[0]
    colours = ["#1a7f4b" if value <= 1.05 * best else "#b5bdc2" for value in values]
    axes.barh(range(len(names)), values, 0.65, color=colours)
    for row, name in enumerate(names):
        axes.annotate(
            report.symmetries[name], (values[row], row), xytext=(5, 0), va="center",
            textcoords="offset points", fontsize=7.5, color="#444444",
        )  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.axvline(1, color="#9aa4a9", lw=0.8)
    axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, 2.2 * max(values)))
    axes.set_xlabel("root mean square error over the deviation of the targets")
    return figure


_VERDICTS = (
    "Left: the error ratio, that is the error of the best predictor that cannot see the "
    "transformation, over that of the best of all, with a 90 % interval; at 1 nothing is lost. "
    "Right: the accuracy of a classifier that tells held-out graphs from transformed copies; 50"
    " % if the inputs are spread evenly."
)
_LADDER = (
    "The held-out error of the best predictors by what they read, with the transformations that"
    " keep it. Green: within 5 % of the best. The targets keep whatever one of the green ones "
    "keeps."
)
