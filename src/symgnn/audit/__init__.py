"""Measure the symmetry of any model from its outputs.

`import symgnn.audit` needs only torch and numpy. PyTorch Geometric, ASE and the packages of other
models are imported when their data or models are passed.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symgnn.audit import adapters
    from symgnn.audit._audit import audit
    from symgnn.audit._audit_report import Report
    from symgnn.audit._coordinate_map_audit import MapReport, audit_map
    from symgnn.audit._counterexample import Counterexample
    from symgnn.audit._findings import Answer, Check, Finding
    from symgnn.audit._group_names import GROUPS
    from symgnn.audit._symmetrised import Symmetrised, symmetrised
    from symgnn.audit._testing import assert_symmetric

__all__ = [
    "GROUPS",
    "Answer",
    "Check",
    "Counterexample",
    "Finding",
    "MapReport",
    "Report",
    "Symmetrised",
    "adapters",
    "assert_symmetric",
    "audit",
    "audit_map",
    "symmetrised",
]

#: Where each public name is.
_HOMES = {
    "GROUPS": "_group_names",
    "Answer": "_findings",
    "Check": "_findings",
    "Counterexample": "_counterexample",
    "Finding": "_findings",
    "MapReport": "_coordinate_map_audit",
    "Report": "_audit_report",
    "Symmetrised": "_symmetrised",
    "assert_symmetric": "_testing",
    "audit": "_audit",
    "audit_map": "_coordinate_map_audit",
    "symmetrised": "_symmetrised",
}

if not TYPE_CHECKING:  # a type checker has the imports above

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used: a pytest plugin must not import torch."""
        if name == "adapters":
            return import_module(f"{__name__}.adapters")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
