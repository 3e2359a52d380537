"""Curves of the error against time, of `symgnn bench learning`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from symgnn.report.figures._style import log_scale, plain

LEARNING = (
    "Mean absolute error on validation molecules against the processor time of training: ours in "
    "solid lines, the peers' own code in dashed ones."
)
_OURS = ("#0072b2", "#009e73", "#56b4e9", "#117733", "#332288")
_THEIRS = ("#d55e00", "#cc79a7", "#e69f00", "#882255")


@plain
def learning_curves(suite: Mapping[str, Any]) -> Figure:
    """One picture for each target, beside each other, their errors in the unit of the target."""
    runs = suite["runs"]
    figure = Figure(figsize=(3.6 * len(runs) + 0.8, 3.8), layout="constrained")
    every = figure.subplots(1, len(runs), squeeze=False)[0]
    ours = [name for name in suite["protocol"]["networks"] if name in suite["ours"]]
    theirs = [name for name in suite["protocol"]["networks"] if name not in ours]
    looks = {name: (_OURS[k % len(_OURS)], "-") for k, name in enumerate(ours)}
    looks |= {name: (_THEIRS[k % len(_THEIRS)], "--") for k, name in enumerate(theirs)}
    lines = {}
    for axes, (target, found) in zip(every, runs.items(), strict=True):
        for name, (colour, style) in looks.items():
            if name in found:
                times, _, errors = zip(*found[name]["curve"], strict=True)
                (lines[name],) = axes.plot(times, errors, style, color=colour, marker=".")
        unit = next(iter(found.values()))["unit"]
        axes.set(title=target, xlabel="processor time (s)", ylabel=f"error ({unit})")
        axes.set(xlim=(0, None))
        log_scale(axes, "y")
        axes.grid(alpha=0.25, which="both")
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    return figure
