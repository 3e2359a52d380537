"""Graph neural networks with a symmetry that you choose, derived and measured."""

__version__ = "0.2.0"

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symgnn import audit, data, discovery, geometry, graphs, nn, train
    from symgnn.discovery._discover import discover
    from symgnn.train._fit import fit
    from symgnn.train._run_loading import load
    from symgnn.train._trained_run import Run

__all__ = [
    "Run",
    "__version__",
    "audit",
    "data",
    "discover",
    "discovery",
    "fit",
    "geometry",
    "graphs",
    "load",
    "nn",
    "train",
]
#: Where names that are no subpackages are defined.
_DEFINED = {"Run": "train", "discover": "discovery", "fit": "train", "load": "train"}

if not TYPE_CHECKING:  # a type checker has the imports above, and reports any other name

    def __getattr__(name: str) -> object:
        """Import a subpackage when it is first used, so that `symgnn --help` needs no torch."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        if name in _DEFINED:
            return getattr(import_module(f"{__name__}.{_DEFINED[name]}"), name)
        return import_module(f"{__name__}.{name}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
