"""A picture of each suite. They need matplotlib: `pip install symgnn[plot]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETLEFTBASE, CARETRIGHTBASE

from symgnn.bench._learning_figure import LEARNING, learning_curves
from symgnn.report.figures._figure_list import Captioned
from symgnn.report.figures._style import log_scale, plain

_COLOURS = {True: "#009e73", False: "#d55e00", None: "#888888"}
_WORDS = {True: "bound reached", False: "bound missed", None: "no bound"}
_DIMENSIONS = {"2-d": "#0072b2", "3-d": "#cc79a7"}
_RATIOS = (
    "Dots are medians, lines go from the first to the third quartile, and a black arrow is the "
    "bound; it points to where the ratio should be."
)
_CURVE = (
    "Time for each angle of a training step on one graph of 8 nearest neighbours, over that on "
    "10,000 nodes; bands are quartiles. From there on it should stay within 1.3 (grey)."
)


def all_figures(results: Mapping[str, Any]) -> list[Captioned]:
    """The ratios of each suite that has any; of `scale` also the times as curves."""
    found = []
    for suite in results["suites"]:
        if suite["claims"]:
            name = suite["name"]
            found.append(Captioned(name, suite["title"], _RATIOS, ratios(suite)))
            if suite.get("runs"):
                drawn = learning_curves(suite)
                found.append(Captioned(f"{name}-curve", suite["title"], LEARNING, drawn))
            if any(claim["nodes"] for claim in suite["claims"]):
                found.append(Captioned(f"{name}-curve", suite["title"], _CURVE, curve(suite)))
    return found


@plain
def ratios(suite: Mapping[str, Any]) -> Figure:
    """The claims of a suite, one beneath the other, with their bounds."""
    claims = [claim for claim in suite["claims"] if not claim["nodes"]]
    figure = Figure(figsize=(8.0, 1.2 + 0.26 * len(claims)), layout="constrained")
    axes = figure.subplots()
    for place, claim in enumerate(claims):
        ratio, colour = claim["ratio"], _COLOURS[claim["reached"]]
        axes.hlines(place, ratio["low"], ratio["high"], color=colour, linewidth=2.5, alpha=0.5)
        axes.plot(ratio["median"], place, "o", color=colour, markersize=5)
        if claim["bound"] is not None:
            side = CARETRIGHTBASE if claim["at"] == "least" else CARETLEFTBASE
            axes.plot(claim["bound"], place, "|", color="#1b1b1b", markersize=11, zorder=1)
            axes.plot(claim["bound"], place, marker=side, color="#1b1b1b", markersize=6, zorder=1)
    axes.set_yticks(range(len(claims)), [f"{each['shape']}: {each['what']}" for each in claims])
    axes.set(xlabel="ratio", ylim=(len(claims) - 0.4, -0.6))
    log_scale(axes, "x")
    axes.grid(axis="x", alpha=0.25)
    axes.axvline(1, color="#bbbbbb", linewidth=0.8, zorder=0)
    seen = [verdict for verdict in _WORDS if any(c["reached"] is verdict for c in claims)]
    handles = [
        Line2D([], [], marker="o", linestyle="", color=_COLOURS[verdict], label=_WORDS[verdict])
        for verdict in seen
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


@plain
def curve(suite: Mapping[str, Any]) -> Figure:
    """Time for each angle against the number of nodes."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    sizes = [claim["nodes"] for claim in suite["claims"] if claim["nodes"]]
    axes.fill_between([10_000, max(10_000, *sizes)], 1 / 1.3, 1.3, color="#eeeeee", linewidth=0)
    for shape, colour in _DIMENSIONS.items():
        claims = [c for c in suite["claims"] if c["shape"] == shape and c["nodes"]]
        nodes = [claim["nodes"] for claim in claims]
        low, middle, high = (
            [claim["ratio"][name] for claim in claims] for name in ("low", "median", "high")
        )
        axes.fill_between(nodes, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(nodes, middle, color=colour, marker=".", label=shape if claims else None)
    axes.set(xscale="log", xlabel="nodes", ylabel="time for each angle", ylim=(0, None))
    axes.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=2)
    return figure
