"""The paper's tables and figures: what is run, what is expected, and the runner."""

from symgnn.experiments.polytopes import TABLES, Row, Table
from symgnn.experiments.tables import run_table

__all__ = ["TABLES", "Row", "Table", "run_table"]
