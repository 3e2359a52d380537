"""Graph networks with exactly the symmetry that your data has."""

__version__ = "0.1.0"

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symgnn import audit, data, geometry, nn, topology, train
    from symgnn.train.trained import Trained

__all__ = ["__version__", "audit", "data", "geometry", "load", "nn", "topology", "train"]


def load(run: str | os.PathLike[str]) -> "Trained":
    """The models of a run that `symgnn train` wrote, ready to predict."""
    from symgnn.train.trained import load

    return load(run)


if not TYPE_CHECKING:  # a type checker has the imports above, and reports any other name

    def __getattr__(name: str) -> object:
        """Import a subpackage when it is first used, so that `symgnn --help` needs no torch."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"{__name__}.{name}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
