"""Measures to what a model is symmetric: any model, by what comes out of it."""

from symgnn.audit.counterexample import Counterexample
from symgnn.audit.groups import GROUPS
from symgnn.audit.maps import MapReport, audit_map
from symgnn.audit.report import Answer, Finding, Report
from symgnn.audit.run import audit

__all__ = [
    "GROUPS",
    "Answer",
    "Counterexample",
    "Finding",
    "MapReport",
    "Report",
    "audit",
    "audit_map",
]
