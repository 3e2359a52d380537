"""The figures of an audit. They need matplotlib: `pip install symgnn[plot]`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from symgnn.audit._audit_page import COLOURS
from symgnn.audit._audit_report import Report
from symgnn.audit._counterexample import Counterexample
from symgnn.audit._findings import number
from symgnn.audit._group_names import kinds_of
from symgnn.geometry import KINDS
from symgnn.geometry.symmetry import plural
from symgnn.report.figures._figure_list import Captioned
from symgnn.report.figures._style import plain

_BEFORE, _AFTER = "#134e6f", "#d55e00"

#: Each group, its place in the picture, and the groups that it contains.
LATTICE: dict[str, tuple[float, float, tuple[str, ...]]] = {
    "affine maps": (1.0, 4.0, ("similarities",)),
    "Moebius maps": (2.3, 4.0, ("similarities",)),
    "similarities": (1.65, 3.0, ("E(n)", "dilations")),
    "E(n)": (1.65, 2.0, ("SE(n)", "O(n)")),
    "dilations": (3.0, 1.0, ()),
    "SE(n)": (1.0, 1.0, ("translations", "SO(n)")),
    "O(n)": (1.98, 1.0, ("SO(n)", "reflections")),
    "translations": (0.55, 0.0, ()),
    "SO(n)": (1.5, 0.0, ()),
    "reflections": (2.45, 0.0, ()),
    "torsions": (4.0, 1.0, ()),
    "flexes": (4.0, 2.0, ()),
    "redrawings": (4.0, 3.0, ()),
    "angle flexes": (4.0, 4.0, ()),
    "motions of parts": (3.0, 2.0, ()),
    "permutations": (4.0, 0.0, ()),
}


def all_figures(report: Report) -> list[Captioned]:
    """The figures for this report; those for which there are no data are left out."""
    found = [Captioned("lattice", "At a glance", _LATTICE, lattice(report))]
    if any(f.errors for f in report.findings.values()):
        found.append(Captioned("errors", "Errors", _ERRORS, errors(report)))
    if any(f.sizes for f in report.findings.values()):
        found.append(Captioned("sizes", "Error against size", _SIZES, sizes(report)))
    broken = worst_counterexample(report)
    if broken is not None:
        text = str(broken)
        caption = f"{text[0].upper()}{text[1:]}. {_COUNTEREXAMPLE}"
        figure = counterexample(broken)
        found.append(Captioned("counterexample", "A counterexample", caption, figure))
    return found


def worst_counterexample(report: Report) -> Counterexample | None:
    """That of the smallest group that breaks."""
    found = (report.findings[kind].counterexample for kind in KINDS)
    return next((example for example in found if example is not None), None)


def group_verdict(report: Report, name: str) -> tuple[str, float]:
    """The worst verdict among the kinds of a group, and its error."""
    found = [report.findings[kind] for kind in kinds_of(name, report.dimension)[1]]
    order = ("rounding", "single", "approximate", "broken")
    measured = [f for f in found if f.measured]
    if not measured:
        return "unmeasured", 0.0
    worst = max(measured, key=lambda f: (order.index(f.verdict), f.error))
    if len(measured) < len(found) and worst.holds and report.dimension > 1:
        return "unmeasured", 0.0
    return worst.verdict, worst.error


@plain
def lattice(report: Report) -> Figure:
    """The groups, each above what it contains; what holds is green."""
    figure = Figure(figsize=(9.4, 4.9), layout="constrained")
    axes = figure.subplots()
    width, height = 0.86, 0.56
    for x, y, inside in LATTICE.values():
        for name in inside:
            a, b, _ = LATTICE[name]
            axes.plot([x, a], [y - height / 2, b + height / 2], color="#b5bdc2", lw=1, zorder=1)
    for name, (x, y, _) in LATTICE.items():
        verdict, error = group_verdict(report, name)
        fill, line = COLOURS[verdict]
        corner = (x - width / 2, y - height / 2)
        style = "round,pad=0,rounding_size=0.08"
        axes.add_patch(
            FancyBboxPatch(
                corner, width, height, boxstyle=style, facecolor=fill, edgecolor=line, lw=1.3
            )
        )
        text = {"rounding": "holds", "single": "holds", "unmeasured": "not measured"}.get(verdict)
        text = text or f"{'≈ ' if verdict == 'approximate' else 'error '}{number(error)}"
        centred: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 3}
        axes.text(x, y + 0.1, name, fontsize=9.5, weight="bold", color="#1b1b1b", **centred)
        axes.text(x, y - 0.14, text, fontsize=8.5, color=line, **centred)
    axes.set(xlim=(0.0, 4.5), ylim=(-0.4, 4.4))
    axes.axis("off")
    return figure


@plain
def errors(report: Report) -> Figure:
    """The errors of every element, float64 beside float32, with what rounding does."""
    shown = [f for f in report.findings.values() if f.errors]
    figure = Figure(figsize=(9.4, 0.42 * len(shown) + 1.2), layout="constrained")
    panels = figure.subplots(1, len(report.precisions), sharey=True, squeeze=False)[0]
    rng = np.random.default_rng(0)
    for axes, precision in zip(panels, report.precisions, strict=True):
        for k, finding in enumerate(shown):
            least = torch.finfo(getattr(torch, precision)).eps / 100
            values = _drawable(finding.errors[precision], least)
            colour = COLOURS[finding.verdict][1]
            jitter = k + rng.uniform(-0.18, 0.18, len(values))
            axes.plot(values, jitter, "o", ms=3.5, alpha=0.7, color=colour, mew=0)
            (rounding,) = _drawable([finding.rounding[precision]], least)
            axes.plot([rounding] * 2, [k - 0.32, k + 0.32], color="#444444", lw=1.4)
        axes.set(xscale="log", title=precision, xlabel="error", ylim=(len(shown) - 0.5, -0.5))
        axes.grid(alpha=0.25, axis="x")
    panels[0].set_yticks(range(len(shown)), [plural(f.kind) for f in shown])
    return figure


@plain
def sizes(report: Report) -> Figure:
    """The error of one transformation of each kind as it grows."""
    shown = [f for f in report.findings.values() if f.sizes]
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    markers = "os^Dv*PX<>hpd"
    for k, finding in enumerate(shown):
        xs = [size for size, _ in finding.sizes]
        ys = _drawable([error for _, error in finding.sizes], 1e-17)
        axes.plot(
            xs,
            ys,
            marker=markers[k % len(markers)],
            ms=4.5,
            lw=1.2,
            color=COLOURS[finding.verdict][1],
            alpha=0.75,
            label=plural(finding.kind),
        )
    axes.set(xscale="log", yscale="log", xlabel="size of the transformation", ylabel="error")
    axes.grid(alpha=0.25)
    figure.legend(loc="outside right center")
    return figure


@plain
def counterexample(example: Counterexample) -> Figure:
    """The graph before and after, and the output that should be and that came out."""
    figure = Figure(figsize=(9.4, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    before, after = example.pos
    flat = _plane(before, after)
    pairs = example.case.before.edge_index
    other = example.case.after.edge_index
    limits = flat.min(0).values, flat.max(0).values
    for axes, pos, edges, colour, title in (
        (left, flat[: len(before)], pairs, _BEFORE, "before"),
        (middle, flat[len(before) :], other, _AFTER, "after"),
    ):
        _draw_graph(axes, pos.numpy(), edges, colour)
        margin = 0.08 * float((limits[1] - limits[0]).max() or 1.0)
        axes.set(
            title=title,
            aspect="equal",
            xlim=(float(limits[0][0]) - margin, float(limits[1][0]) + margin),
            ylim=(float(limits[0][1]) - margin, float(limits[1][1]) + margin),
        )
        axes.axis("off")
    _draw_outputs(right, example)
    return figure


def _draw_graph(axes: Axes, pos: np.ndarray, edges: torch.Tensor | None, colour: str) -> None:
    if edges is not None and edges.numel():
        ends = np.unique(np.sort(edges.numpy().T, axis=1), axis=0)
        thin = float(np.clip(14 / math.sqrt(len(ends)), 0.3, 1.2))
        axes.add_collection(LineCollection(list(pos[ends]), colors=colour, alpha=0.35, lw=thin))
    axes.plot(*pos.T, "o", color=colour, ms=4.5)
    if len(pos) <= 30:
        for k, point in enumerate(pos):
            axes.annotate(
                str(k), point, xytext=(3, 3), textcoords="offset points", fontsize=7, color="#444"
            )


def _draw_outputs(axes: Axes, example: Counterexample) -> None:
    wanted, found = example.expected.flatten().numpy(), example.after.flatten().numpy()
    title = f"{example.output.name}: {example.output}"
    if wanted.shape != found.shape:
        axes.text(0.5, 0.5, str(example), ha="center", va="center", wrap=True)
        axes.axis("off")
    elif len(wanted) <= 6:
        rows = np.arange(len(wanted))
        spread = example.spread.numpy()
        spread = np.resize(spread, len(wanted))  # the channels come row after row
        axes.barh(rows, (found - wanted) / spread, 0.5, color=_AFTER)
        axes.axvline(0, color="#555555", lw=0.8)
        axes.set(title=title, yticks=rows, ylim=(len(wanted) - 0.5, -0.5))
        axes.set(xlabel="change, relative to how much it varies")
    else:
        low, high = min(wanted.min(), found.min()), max(wanted.max(), found.max())
        axes.plot([low, high], [low, high], color="#9aa4a9", lw=1)
        axes.plot(wanted, found, "o", ms=3.5, alpha=0.8, color=_AFTER)
        axes.set(title=title, xlabel="should be", ylabel="is")
    axes.grid(alpha=0.25)


def _plane(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Both clouds `[N, n]` on the plane in which they differ most and are widest, `[2 N, 2]`."""
    pos = torch.cat([before, after])
    centred = pos - pos.mean(0)
    if pos.size(1) == 1:
        return torch.cat([centred, torch.zeros_like(centred)], 1)
    if pos.size(1) == 2:
        return centred
    moved = after - before - (after - before).mean(0)
    first = torch.linalg.svd(moved, full_matrices=False).Vh[0]
    rest = centred - (centred @ first).outer(first)
    second = torch.linalg.svd(rest, full_matrices=False).Vh[0]
    return centred @ torch.stack([first, second], 1)


def _drawable(values: list[float], least: float) -> list[float]:
    """Errors within what is worth an axis: from nothing to 10,000."""
    return [min(max(value, least), 1e4) for value in values]


_LATTICE = (
    "Each group contains those that it is connected to below. Green: holds to rounding; yellow: "
    "holds approximately; red: broken, with the largest error; grey: not measured."
)
_ERRORS = (
    "One dot for each random transformation, relative to how much the output varies; the bar is "
    "what rounding alone does to the output. Errors that are rounding fall from float32 to "
    "float64; those of a broken symmetry do not."
)
_SIZES = (
    "One transformation of each kind, from a hundredth of its usual size to all of it. An error "
    "that does not grow is rounding; one that grows from nothing is a symmetry that breaks "
    "smoothly; one that is large at once is a jump."
)
_COUNTEREXAMPLE = (
    "It is the smallest of those tried that changes the output clearly. Left and middle: the "
    "graph, seen where it is widest; right: the output that it should have, and the one it has."
)
