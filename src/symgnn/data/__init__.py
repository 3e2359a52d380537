"""Datasets."""

from symgnn.data.files import Graphs, read, sample, splits
from symgnn.data.files import load as load_files
from symgnn.data.nbody import NBody, Trajectories, integrate_charged, simulate_charged
from symgnn.data.polytope_sets import SETS, Polytopes
from symgnn.data.polytopes import polytope, polytopes
from symgnn.data.task import Splits, Task

__all__ = [
    "SETS",
    "Graphs",
    "NBody",
    "Polytopes",
    "Splits",
    "Task",
    "Trajectories",
    "integrate_charged",
    "load_files",
    "polytope",
    "polytopes",
    "read",
    "sample",
    "simulate_charged",
    "splits",
]
