"""Tables, figures and a page of the results of experiments.

The figures are in :mod:`symgnn.report.figures`, which needs matplotlib: `pip install symgnn[plot]`.
"""

from symgnn.report._page import write_report
from symgnn.report._readings import markdown_readings
from symgnn.report._table import markdown_table, rich_table
from symgnn.report._verdict_marks import (
    ERRORS,
    NEAR,
    VERDICTS,
    Verdict,
    agrees,
    differences,
    mixed_up,
    summary,
)

__all__ = [
    "ERRORS",
    "NEAR",
    "VERDICTS",
    "Verdict",
    "agrees",
    "differences",
    "markdown_readings",
    "markdown_table",
    "mixed_up",
    "rich_table",
    "summary",
    "write_report",
]
