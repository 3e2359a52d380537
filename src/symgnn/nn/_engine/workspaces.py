"""Memory that one pass after the other uses: new memory takes longer than the arithmetic."""

from __future__ import annotations

from typing import Any

from torch import Tensor


class Workspace:
    """Memory by name, for one pass at a time."""

    def __init__(self) -> None:
        self._known: dict[str, Tensor] = {}

    def take(self, name: str, rows: int, width: int, like: Tensor) -> Tensor:
        """A matrix `[rows, width]` of any numbers."""
        known, size = self._known.get(name), rows * width
        if known is None or known.numel() < size or known.dtype != like.dtype:
            known = self._known[name] = like.new_empty(size + size // 8)
        return known.detach()[:size].view(rows, width)


class Workspaces:
    """Workspaces that passes take and give back: two threads never have the same.

    Copies, and what is loaded from a file, begin without any.
    """

    def __init__(self) -> None:
        self._free: list[Workspace] = []

    def take(self) -> Workspace:
        """One that nobody has."""
        try:
            return self._free.pop()
        except IndexError:
            return Workspace()

    def give(self, workspace: Workspace) -> None:
        """Give one back."""
        self._free.append(workspace)

    def __deepcopy__(self, memo: Any) -> Workspaces:
        return Workspaces()

    def __reduce__(self) -> tuple[type[Workspaces], tuple[()]]:
        return Workspaces, ()
