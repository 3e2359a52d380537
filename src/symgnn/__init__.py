"""Graph networks with exactly the symmetry that your data has."""

__version__ = "0.1.0"

import os
from typing import TYPE_CHECKING

from symgnn import data, geometry, nn, topology

if TYPE_CHECKING:
    from symgnn.train.trained import Trained

__all__ = ["__version__", "data", "geometry", "load", "nn", "topology"]


def load(run: str | os.PathLike[str]) -> "Trained":
    """The models of a run that `symgnn train` wrote, ready to predict."""
    from symgnn.train.trained import load

    return load(run)
