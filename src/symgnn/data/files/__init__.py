"""Your own files: structures of many formats, targets from a CSV, splits."""

from symgnn.data.files.graph_list import Graphs
from symgnn.data.files.loading import load
from symgnn.data.files.molecules import Smiles
from symgnn.data.files.reading import read
from symgnn.data.files.sample_files import sample
from symgnn.data.files.splitting import folds, splits

__all__ = ["Graphs", "Smiles", "folds", "load", "read", "sample", "splits"]
