"""The page of an audit: one HTML file with everything inside."""

from __future__ import annotations

from html import escape

from symgnn.audit._audit_report import Report
from symgnn.audit._findings import NOT_ASKED, VERDICTS, Finding, number
from symgnn.audit._verdicts import quantiles
from symgnn.geometry import EUCLIDEAN
from symgnn.geometry.symmetry import plural
from symgnn.report import _markup as markup
from symgnn.report._css import CSS
from symgnn.report._page import Picture, pictures_by

SIGNS = {
    "rounding": "✓",
    "single": "✓",
    "approximate": "≈",
    "broken": "✗",
    "vacuous": "–",
    "unmeasured": "–",
}
#: The colours of the verdicts: of areas, and of lines and text.
COLOURS = {
    "rounding": ("#d3efdf", "#1a7f4b"),
    "single": ("#d3efdf", "#1a7f4b"),
    "approximate": ("#fbeacb", "#b7791f"),
    "broken": ("#f8d7d3", "#b3261e"),
    "vacuous": ("#eef0f1", "#8a9196"),
    "unmeasured": ("#eef0f1", "#8a9196"),
}

STYLE = """
td.verdict { text-align: left; font-weight: 600; padding-left: .4rem; }
td.why { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 7rem;
  color: var(--soft); }
.warn { border-left: 4px solid #b7791f; background: var(--panel); max-width: none;
  padding: .5rem 1rem; border-radius: 0 6px 6px 0; }
tr.unclaimed, tr.unclaimed th, tr.unclaimed td, tr.unclaimed td.verdict { color: #8a9196 !important;
  font-weight: 400; }
"""


def page(report: Report) -> str:
    """The page's text."""
    title = f"The symmetry of {report.model}"
    body = [f"<h1>{escape(title)}</h1>", markup.paragraph(_what(report))]
    if report.expected:
        body += [
            "<h2>Expected</h2>",
            markup.bullets([repr(report.holds(g)) for g in report.expected]),
        ]
    else:
        body.append(markup.paragraph(_headline(report), "summary"))
    body += [markup.paragraph(text, "warn") for text in _warnings(report)]
    pictures = pictures_by("symgnn.audit._audit_figures", report)
    if pictures is None:
        body.append(markup.paragraph("Install symgnn[plot] for the figures.", "note"))
    first = [p for p in pictures or [] if p.name == "lattice"]
    rest = [p for p in pictures or [] if p.name != "lattice"]
    body += [_figure(picture) for picture in first]
    body += ["<h2>In words</h2>", markup.bullets(report.summary())]
    if report.breaks():
        body += ["<h2>Where it breaks</h2>", markup.bullets(report.breaks())]
    if report.suggestions():
        body += ["<h2>Repair</h2>", markup.bullets(report.suggestions())]
    measured = [check for check in report.checks.values() if check.verdict != "unmeasured"]
    if measured:
        body += ["<h2>Consistency</h2>", markup.bullets([str(check) for check in measured])]
    body += ["<h2>Measured</h2>", _table(report), _legend()]
    body += [_figure(picture) for picture in rest]
    body += ["<h2>How it was made</h2>", markup.definitions(_made(report))]
    return markup.document(title, CSS + STYLE, "\n".join(body))


def _what(report: Report) -> str:
    types = ", ".join(f"{o.name} ({o}, {o.known})" for o in report.outputs)
    return (
        f"The model was given a graph of {report.nodes} nodes in {report.dimension} dimensions, "
        "and the same graph after random transformations. Each output should stay as it is, or, "
        f"if it is made of vectors or coordinates, move along: {types}. Errors are relative to how "
        "much the output varies when the graph is deformed a little, so 1 is as bad as knowing "
        "nothing."
    )


def _headline(report: Report) -> str:
    text = f"Symmetric to: {report.symmetry}."
    if report.derived is not None:
        says = "as derived" if report.agrees else f"but the model says {report.derived}"
        text = f"{text[:-1]}, {says}."
    return text


def _warnings(report: Report) -> list[str]:
    found = list(report.warnings)
    if report.stochastic:
        found.insert(0, f"Random: {report.stochastic}.")
    if report.derived is not None and not report.agrees:
        found.insert(0, f"Not as derived: {report.agrees}.")
    return found


def _table(report: Report) -> str:
    precisions = report.precisions
    units = "<th>in units<br><small>largest</small></th>" if report.units else ""
    heads = "".join(
        f'<th colspan="2">{p}<br><small>median, largest</small></th>' for p in precisions
    )
    rounding = "".join(f"<th>rounding<br><small>{p}</small></th>" for p in precisions)
    claims = "<th>derived</th>" if report.derived is not None else ""
    found = [f for f in report.findings.values() if not report.implied(f.kind)]
    shown = [f for f in found if f.reason != NOT_ASKED]
    rows = "\n".join(_row(report, finding, claims_of(report)) for finding in shown)
    return (
        f'<div class="scroll"><table>\n<thead><tr><th>transformation</th><th>verdict</th>{claims}'
        f"{heads}{rounding}{units}<th>breaks in</th></tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def claims_of(report: Report) -> set[str]:
    """The kinds that somebody claims: the user, the model, or else E(n) and permutations."""
    if report.expected:
        return {kind for kind, finding in report.findings.items() if finding.expected}
    return set(report.derived if report.derived is not None else EUCLIDEAN)


def _in_units(report: Report, finding: Finding) -> str:
    """The absolute error of each output that has a unit."""
    known = [name for name in finding.absolute if name in report.units]
    return "<br>".join(
        f"{escape(name)}: {number(finding.absolute[name])} {escape(report.units[name])}"
        for name in known
    )


def _row(report: Report, finding: Finding, claimed: set[str]) -> str:
    precisions = report.precisions
    sign, colour = SIGNS[finding.verdict], COLOURS[finding.verdict][1]
    grey = "" if finding.kind in claimed or finding.holds else ' class="unclaimed"'
    cells = [
        f'<th scope="row">{escape(plural(finding.kind))}</th>',
        f'<td class="verdict" style="color:{colour}">{sign} {VERDICTS[finding.verdict]}</td>',
    ]
    if finding.claimed is not None:
        cells.append(f"<td>{'✓' if finding.claimed else ''}</td>")
    if not finding.measured:
        columns = 3 * len(precisions) + 1 + bool(report.units)
        cells.append(f'<td class="why" colspan="{columns}">{escape(finding.reason)}</td>')
        return f"<tr{grey}>{''.join(cells)}</tr>"
    for precision in precisions:
        if not finding.errors.get(precision):
            cells.append("<td></td><td></td>")
            continue
        middle = quantiles(finding.errors[precision])[1]
        high = finding.largest(precision)
        cells.append(f"<td>{number(middle)}</td><td>{number(high)}</td>")
    cells += [f"<td>{number(finding.rounding.get(p, 0.0))}</td>" for p in precisions]
    if report.units:
        cells.append(f"<td>{_in_units(report, finding)}</td>")
    place = finding.where
    where = "" if place is None else escape(place.module or "forward")
    cells.append(f'<td class="why" title="{escape(str(place or ""))}">{where}</td>')
    return f"<tr{grey}>{''.join(cells)}</tr>"


def _legend() -> str:
    meaning = {
        "rounding": "the error is what rounding does to the output",
        "approximate": "more than rounding, at most 0.01",
        "broken": "more than 0.01",
    }
    signs = []
    for name, text in meaning.items():
        sign, colour = SIGNS[name], COLOURS[name][1]
        signs.append(f'<span><b style="color:{colour}">{sign}</b> {VERDICTS[name]}: {text}</span>')
    return f'<p class="legend">{" ".join(signs)}</p>'


def _figure(picture: Picture) -> str:
    heading = f"<h2>{escape(picture.heading)}</h2>"
    return heading + markup.figure(picture.png, picture.heading, picture.caption)


def _made(report: Report) -> dict[str, object]:
    import torch

    tried = max((len(e) for f in report.findings.values() for e in f.errors.values()), default=0)
    return {
        "model": report.model,
        "parameters": f"{report.parameters:,}",
        "nodes": report.nodes,
        "edges": report.edges or None,
        "tried": f"{tried} of each kind",
        "inputs that moved": ", ".join(report.moved) or None,
        "calls": report.calls,
        "time": f"{report.seconds:.1f} s",
        "torch": torch.__version__,
    }
