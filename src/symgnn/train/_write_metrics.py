"""`metrics.json`: results are added and renewed, never replaced by worse-formed ones."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symgnn.store import write_json


def write_metrics(path: Path, found: Mapping[str, Any]) -> str:
    """Write `{split: {name: {"mean", "deviation", "values"}}}` beside the splits that are there.

    Returns:
        What there is to say of the file that was there, "" if nothing.

    Raises:
        ValueError: a number that was finite is not now, or is missing; the file is left as it is.
    """
    before, remark = _before(path)
    for split, numbers in found.items():
        kept = before.get(split)
        for name, cell in (kept if isinstance(kept, Mapping) else {}).items():
            good = _finite(cell)
            if good is None or (name in numbers and _finite(numbers[name]) is not None):
                continue
            now = f"is {numbers[name]['mean']} now" if name in numbers else "is not measured now"
            raise ValueError(
                f"{path}: has {split} {name} {good:.4g}, which {now}; it was left as it is: find "
                "out why, or write elsewhere with --out FILE"
            )
    write_json(path, {**before, **found})
    return remark


def _before(path: Path) -> tuple[dict[str, Any], str]:
    if not path.exists():
        return {}, ""
    try:
        before = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        before = None
    if isinstance(before, dict):
        return before, ""
    return {}, f"{path}: was damaged, and has now only what was measured"


def _finite(cell: Any) -> float | None:
    """The mean of a number, if it has one."""
    mean = cell.get("mean") if isinstance(cell, Mapping) else None
    return mean if isinstance(mean, int | float) and math.isfinite(mean) else None
