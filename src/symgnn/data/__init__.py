"""Datasets, your own files, splits and folds."""

from symgnn.data._nbody import NBody, Trajectories, integrate_charged, simulate_charged
from symgnn.data._polytope_sets import SETS, Polytopes
from symgnn.data._polytopes import polytope, polytopes
from symgnn.data._registry import DATASETS, load
from symgnn.data._superpixels import superpixel_graph
from symgnn.data._task import Splits, Task
from symgnn.data.files import Graphs, Smiles, folds, read, sample, splits
from symgnn.data.files import load as load_files

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
