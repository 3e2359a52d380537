"""The report as text: a table, a paragraph and notes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from symgnn.geometry.symmetry import plural

if TYPE_CHECKING:
    from symgnn.discovery._discovery_report import DiscoveryReport
    from symgnn.discovery._kind_verdicts import KindVerdict

WIDTH = 104
_LEGEND = (
    "Error: of the best predictor that cannot see the transformation, over that of the best of "
    "all. Accuracy: of a classifier that tells graphs from transformed graphs; 50 % if inputs "
    "are spread evenly."
)


def report_text(report: DiscoveryReport) -> str:
    """What `print(report)` shows."""
    dimensions = "dimension" if report.dimension == 1 else "dimensions"
    lines = [
        f"{report.graphs} graphs in {report.dimension} {dimensions}, {report.task.level} "
        f"{report.task.kind} of {', '.join(report.task.targets)}",
        "",
        f"{'':24}{'do the targets keep them?':47}  are the inputs spread over them?",
        f"{'transformations':24}{'verdict':11}{'error':>8}  {'90 % interval':16}{'p':>8}    "
        f"{'accuracy':>8}{'p':>8}",
        *(_row(kind, found) for kind, found in report.verdicts.items()),
    ]
    if report.absent:
        names = ", ".join(plural(kind) for kind in report.absent)
        lines.append(f"{'not in these graphs:':24}{names}")
    if report.untried:
        lines.append(f"{'not tried:':24}{', '.join(map(plural, report.untried))}")
    paragraphs = [_LEGEND, report.advice, *(f"Note: {text}" for text in report.warnings)]
    for text in paragraphs:
        lines += ["", *textwrap.wrap(text, WIDTH)]
    return "\n".join(lines)


def _row(kind: str, found: KindVerdict) -> str:
    low, high = found.interval
    inputs = ""
    if found.spread is not None:
        inputs = f"{100 * found.spread.accuracy:6.0f} %"
        if found.spread.p_value is not None:
            inputs += f"{found.spread.p_value:8.2g}"
    return (
        f"{plural(kind):24}{found.verdict:11}{f'x {found.effect:.2f}':>8}  "
        f"{f'{low:.2f} to {high:.2f}':16}{found.p_value:8.2g}    {inputs}"
    ).rstrip()
