"""Datasets."""

from symgnn.data.files import Graphs, Smiles, folds, read, sample, splits
from symgnn.data.files import load as load_files
from symgnn.data.nbody import NBody, Trajectories, integrate_charged, simulate_charged
from symgnn.data.polytope_sets import SETS, Polytopes
from symgnn.data.polytopes import polytope, polytopes
from symgnn.data.registry import DATASETS, load
from symgnn.data.superpixels import superpixel_graph
from symgnn.data.task import Splits, Task

__all__ = [
    "DATASETS",
    "SETS",
    "Graphs",
    "NBody",
    "Polytopes",
    "Smiles",
    "Splits",
    "Task",
    "Trajectories",
    "folds",
    "integrate_charged",
    "load",
    "load_files",
    "polytope",
    "polytopes",
    "read",
    "sample",
    "simulate_charged",
    "splits",
    "superpixel_graph",
]
