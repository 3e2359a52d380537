"""Training."""

from symgnn.train.memory import keep_memory
from symgnn.train.seeds import Seeds

__all__ = ["Seeds", "keep_memory"]
