"""How the C library treats freed memory."""

from __future__ import annotations

import ctypes
import platform

from symgnn.nn._engine.policy import MEMORY_IS_KEPT, set_policy


def keep_memory() -> bool:
    """Keep freed memory in the process, so that the next training step can reuse it.

    A training step frees tensors of many megabytes, which glibc returns to the system; the next
    step gets the memory back one page at a time, which on large graphs can take longer than the
    arithmetic. The `symgnn` command calls this function; in your own process, call it yourself.

    Returns:
        Whether it was possible: only with glibc, so on most Linux systems.

    Example:
        >>> symgnn.train.keep_memory() in (True, False)
        True
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    trim_threshold, mmap_max = -1, -4  # their numbers in malloc.h
    mallopt = ctypes.CDLL(None).mallopt
    # nothing is mapped on its own, to be unmapped when it is freed, and the heap is not cut
    kept = bool(mallopt(mmap_max, 0)) and bool(mallopt(trim_threshold, 2**31 - 1))
    if kept:
        set_policy(**MEMORY_IS_KEPT)
    return kept
