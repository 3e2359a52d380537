"""Tables, figures and a page of the results of experiments.

The figures are in :mod:`symgnn.report.figures`, which needs matplotlib: `pip install symgnn[plot]`.
"""

from symgnn.report._page import write_report
from symgnn.report._table import markdown_table, rich_table
from symgnn.report._verdict_marks import VERDICTS, Verdict, differences, mixed_up, summary

__all__ = [
    "VERDICTS",
    "Verdict",
    "differences",
    "markdown_table",
    "mixed_up",
    "rich_table",
    "summary",
    "write_report",
]
