"""The page of a search: one HTML file with everything inside."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from symgnn.geometry.symmetry import plural
from symgnn.report import _markup as markup
from symgnn.report._css import CSS
from symgnn.report._page import duration, pictures_by

if TYPE_CHECKING:
    from symgnn.discovery._discovery_report import DiscoveryReport

STYLE = """
.warn { border-left: 4px solid #b7791f; background: var(--panel); max-width: none;
  padding: .5rem 1rem; border-radius: 0 6px 6px 0; }
"""
SIGNS = {"kept": "✓ kept", "broken": "✗ broken", "undecided": "? undecided"}


_TARGETS = (
    "Error ratio: the held-out error of the best predictor that cannot see the transformation, "
    "over that of the best of all; 1 if nothing is lost. p: that nothing is lost, one-sided, "
    "after Holm's correction. Share lost: of what coordinates add to the prediction. Knock-out "
    "ratio: the error of the best predictor when it is trained and tested on transformed "
    "graphs, over that on the graphs as they are. Residual test: p that what is left "
    "unexplained does not depend on the transformation. Variation test: Christie and Aston's, "
    "which trains nothing and decides nothing."
)
_INPUTS = (
    "Accuracy of a classifier on held-out graphs: is this the graph, or a transformed copy? 50 "
    "% if the inputs are spread evenly over the transformations. p: that they are, exact for "
    "any number of graphs; it exists for compact groups only."
)
_POSE = (
    "The share of the variance of held-out targets that the centroid (place), the principal "
    "axes (direction) and the radius (size) predict on their own."
)
_LADDER = (
    "Root mean square error on held-out graphs over the deviation of the targets. 'a + b' reads"
    " both; 'again' reads a second time with other random weights."
)


def page(report: DiscoveryReport) -> str:
    """The page's text."""
    title = f"The symmetry of {report.graphs:,} graphs"
    body = [
        f"<h1>{escape(title)}</h1>",
        markup.paragraph(report.advice, "summary"),
        *(markup.paragraph(text, "warn") for text in report.warnings),
    ]
    pictures = pictures_by("symgnn.discovery._discovery_figures", report)
    if pictures is None:
        body.append(markup.paragraph("Install symgnn[plot] for the figures.", "note"))
    for picture in pictures or []:
        body.append(f"<h2>{escape(picture.heading)}</h2>")
        body.append(markup.figure(picture.png, picture.heading, picture.caption))
    for heading, text, table in (
        ("Do the targets keep the transformation?", _TARGETS, _targets(report)),
        ("Are the inputs spread over it?", _INPUTS, _inputs(report)),
        ("Is the pose a shortcut?", _POSE, _pose(report)),
        ("All predictors", _LADDER, _ladder(report)),
    ):
        body += [f"<h2>{heading}</h2>", markup.paragraph(text, "note"), table]
    body += ["<h2>How it was made</h2>", markup.definitions(_made(report))]
    return markup.document(title, CSS + STYLE, "\n".join(part for part in body if part))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _targets(report: DiscoveryReport) -> str:
    heads = [
        *("transformations", "verdict", "decided by", "compared", "error ratio", "90 % interval"),
        *("p (Holm)", "share lost", "knock-out ratio", "residual test, p", "variation test, p"),
    ]
    rows = []
    for kind, found in report.verdicts.items():
        low, high = found.interval
        rows.append(
            [
                plural(kind),
                SIGNS[found.verdict],
                found.decided_by,
                found.how,
                f"× {found.effect:.2f}",
                f"{low:.2f} to {high:.2f}",
                f"{found.p_value:.2g}",
                f"{100 * found.share:.0f} %",
                _number(found.knock_out),
                _number(found.residual),
                _number(found.variation),
            ]
        )
    for kind, share in report.absent.items():
        rows.append([plural(kind), "–", f"{100 * share:.0f} % of graphs have one", *[""] * 8])
    rows += [[plural(k), "–", "not tried: graphs are large", *[""] * 8] for k in report.untried]
    return markup.grid(heads, rows, texts=4)


def _inputs(report: DiscoveryReport) -> str:
    rows = []
    for kind, found in report.verdicts.items():
        if found.spread is None:
            continue
        low, high = found.spread.interval
        p_value = found.spread.p_value
        rows.append(
            [
                plural(kind),
                found.spread.how,
                f"{100 * found.spread.accuracy:.1f} %",
                f"{100 * low:.0f} to {100 * high:.0f} %",
                "–" if p_value is None else f"{p_value:.3g}",
            ]
        )
    heads = ["transformations", "how", "classifier accuracy", "90 % interval", "p"]
    return markup.grid(heads, rows, texts=2)


def _pose(report: DiscoveryReport) -> str:
    rows = [
        [
            name,
            f"{100 * f.explained:.1f} %",
            f"{100 * f.interval[0]:.0f} to {100 * f.interval[1]:.0f} %",
        ]
        for name, f in report.pose.items()
    ]
    return markup.grid(["part of the pose", "variance explained", "90 % interval"], rows)


def _ladder(report: DiscoveryReport) -> str:
    order = sorted(report.ladder, key=lambda name: report.ladder[name])
    rows = [[name, report.symmetries[name], f"{report.ladder[name]:.3f}"] for name in order]
    return markup.grid(["what it reads", "transformations that keep it", "error"], rows, texts=2)


def _made(report: DiscoveryReport) -> dict[str, object]:
    return {
        "graphs": report.graphs,
        "dimension": report.dimension,
        "targets": f"{', '.join(report.task.targets)} ({report.task.level}, {report.task.kind})",
        "seed": report.seed,
        "time": duration(report.seconds),
        "network": report.model or None,
        "steps left out": ", ".join(report.missed) or None,
    }
