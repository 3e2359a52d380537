"""Checks that edges, angles or pairs fit into memory before they are listed."""

from __future__ import annotations

from pathlib import Path

import psutil
import torch

#: Below this many bytes, free memory is not checked.
SMALL = 1 << 26
_CGROUP = Path("/sys/fs/cgroup")


def require_memory(
    what: str, count: int, each: int, fix: str, device: torch.device | None = None
) -> None:
    """Raise an error if a number of rows does not fit into the free memory.

    Args:
        what: what is made, with "{count}" for how many there are.
        count: how many.
        each: how many bytes each takes while they are made.
        fix: what to do instead.
        device: where they are made; the CPU if left out.

    Raises:
        ValueError: in one line, with the estimate, the memory that is free, and the fix.
    """
    needed = count * each
    if needed < SMALL:
        return
    free = available_memory(device)
    if needed > free:
        raise ValueError(
            f"{what.format(count=f'{count:,}')}, which need about {_size(needed)} of memory, and "
            f"{_size(free)} are free; {fix}"
        )


def available_memory(device: torch.device | None = None) -> int:
    """How many bytes this process can still get.

    On the CPU, the least of what the machine has free, and of what is left of the limits of this
    process (`ulimit -v`) and of its container (cgroup).
    """
    if device is not None and device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return max(0, min(psutil.virtual_memory().available, *_left_of_limits()))


def _left_of_limits() -> list[int]:
    left = [1 << 62]
    if hasattr(psutil, "RLIMIT_AS"):  # on Linux
        process = psutil.Process()
        limit = process.rlimit(psutil.RLIMIT_AS)[0]
        if limit != psutil.RLIM_INFINITY:
            left.append(limit - process.memory_info().vms)
    for limit_file, used_file, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            limit = int((_CGROUP / limit_file).read_text())  # "max" where there is none
            used = int((_CGROUP / used_file).read_text())
            stat = (_CGROUP / used_file).with_name("memory.stat").read_text().split()
            # the cache of files counts as used, and is given back when it is needed
            left.append(limit - used + int(stat[stat.index(cache) + 1]))
        except (OSError, ValueError):
            continue
    return left


def _size(count: int) -> str:
    """In GB, or in MB where it is less than one."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
