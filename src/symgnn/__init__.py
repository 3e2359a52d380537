"""Graph networks with exactly the symmetry that your data has."""

__version__ = "0.1.0"

from symgnn import data, geometry, nn, topology

__all__ = ["__version__", "data", "geometry", "nn", "topology"]
