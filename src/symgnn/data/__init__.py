"""Datasets."""

from symgnn.data.polytope_sets import SETS, Polytopes
from symgnn.data.polytopes import polytope, polytopes

__all__ = ["SETS", "Polytopes", "polytope", "polytopes"]
