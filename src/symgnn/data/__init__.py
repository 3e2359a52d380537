"""Datasets."""

from symgnn.data.nbody import NBody, Trajectories, integrate_charged, simulate_charged
from symgnn.data.polytope_sets import SETS, Polytopes
from symgnn.data.polytopes import polytope, polytopes

__all__ = [
    "SETS",
    "NBody",
    "Polytopes",
    "Trajectories",
    "integrate_charged",
    "polytope",
    "polytopes",
    "simulate_charged",
]
