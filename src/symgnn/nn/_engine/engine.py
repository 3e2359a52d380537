"""The engine: the interface between the definitions in `nn` and their fast computation."""

from __future__ import annotations

from torch import nn

from symgnn.nn._engine.chunked_engine import ChunkedEngine
from symgnn.nn._engine.chunks import Chunks
from symgnn.nn._engine.unchunked_engine import UnchunkedEngine
from symgnn.nn.state import Reference


class Engine(UnchunkedEngine):
    """The fast engine.

    Args:
        chunk: The maximum number of angles or edges in memory at once; None for no limit.
    """

    def __init__(self, chunk: int | None = None) -> None:
        self.chunk = chunk
        self.whole = chunk is None

    def session(self, module: nn.Module) -> Reference:
        """The engine for one pass through a module, to be closed at its end."""
        return self if self.chunk is None else ChunkedEngine(Chunks(self.chunk, module))

    def __repr__(self) -> str:
        return "fast" if self.chunk is None else f"fast, chunk={self.chunk}"


def engine_of(engine: str | Reference | None, chunk: int | None) -> Reference:
    """The engine of a name: "fast" (also None) or "reference"."""
    if isinstance(engine, Reference):
        if chunk is not None:
            raise ValueError(f"chunk: is {chunk}; give it to the engine, as Engine(chunk={chunk})")
        return engine
    if engine in (None, "fast"):
        return Engine(chunk)
    if engine != "reference":
        raise ValueError(f"engine: is {engine!r}; choose from fast, reference")
    if chunk is not None:
        raise ValueError(f"chunk: is {chunk}, but the reference engine has all angles at once")
    return Reference()
