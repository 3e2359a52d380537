"""Training."""

from symgnn.train.seeds import Seeds

__all__ = ["Seeds"]
