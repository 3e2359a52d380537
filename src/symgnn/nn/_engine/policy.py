"""The sizes that decide between variants of a computation: a context, not a global."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Policy:
    """Sizes in hidden numbers.

    Args:
        tile: How many a tile has for each thread, about: 1 MiB in single precision.
        worth_tiles: From how many on tiles are used, though they compute them twice.
        few: Up to how many an operation takes as long as its start, so that fewer are better.
        force_pass: A :class:`symgnn.nn._engine.force_pass.ForcePass`, where results are
            differentiated once, by the coordinates alone.
    """

    tile: int = 2**18
    worth_tiles: int = 2**23
    few: int = 2**15
    force_pass: Any = None


#: Where the process keeps the memory it has had, computing twice takes longer than memory does.
MEMORY_IS_KEPT = {"worth_tiles": 2**28}

_CURRENT: ContextVar[Policy] = ContextVar("symgnn_policy")
_DEFAULT = Policy()


def policy() -> Policy:
    """The policy of this context."""
    return _CURRENT.get(_DEFAULT)


def set_policy(**changes: Any) -> None:
    """Change the policy for the rest of this context: a thread or an asynchronous task."""
    _CURRENT.set(replace(policy(), **changes))


@contextmanager
def using_policy(**changes: Any) -> Iterator[Policy]:
    """A context with another policy."""
    token = _CURRENT.set(replace(policy(), **changes))
    try:
        yield policy()
    finally:
        _CURRENT.reset(token)
