"""Datasets."""

from symgnn.data.polytopes import polytope, polytopes

__all__ = ["polytope", "polytopes"]
