"""Your own files: structures of many formats, targets from a CSV, splits."""

from symgnn.data.files._folder_loading import load
from symgnn.data.files._graph_list import Graphs
from symgnn.data.files._molecules import Smiles
from symgnn.data.files._reading import read
from symgnn.data.files._sample_files import sample
from symgnn.data.files._splitting import folds, splits

__all__ = ["Graphs", "Smiles", "folds", "load", "read", "sample", "splits"]
