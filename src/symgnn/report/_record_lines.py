"""Lines about the record of a run: labels that are missing, baselines that are not beaten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Numbers of which more is better, of one target or of all.
RISING = ("accuracy", "f1", "r2")


def is_rising(name: str) -> bool:
    """Whether more is better: of `accuracy`, `r2`, `r2 gap`, ..., but not of `mae gap`."""
    return name.partition(" ")[0] in RISING


def not_beaten(
    metrics: Mapping[str, Mapping[str, Mapping[str, Any]]], names: list[str], split: str
) -> str | None:
    """In one line, where a network is no better than the baseline; None if it is everywhere.

    Args:
        metrics: of each split, by name, cells with "mean", "baseline" and "baseline_by".
        names: the numbers that count, as `headlines` of train gives them.
        split: the part that is judged.
    """
    said = []
    for name in names:
        cell = metrics.get(split, {}).get(name, {})
        reached, trivial = cell.get("mean"), cell.get("baseline")
        if trivial is None or trivial != trivial:
            continue
        sign = -1 if is_rising(name) else 1
        if reached is None or not sign * reached < sign * trivial:
            number = "undefined" if reached is None or reached != reached else f"{reached:.4g}"
            said.append(f"{name} {number} against {trivial:.4g} ({cell['baseline_by']})")
    return f"does not beat the baseline on {split}: {'; '.join(said)}" if said else None


def missing_line(labels: Mapping[str, Any]) -> str:
    """In one line, how many labels there are."""
    parts = []
    for split, found in labels.items():
        each = ", ".join(f"{name} {n} of {found['rows']}" for name, n in found["labels"].items())
        without = found["graphs_without_label"]
        graphs = f"{without} graph{'s' if without != 1 else ''} without any" if without else ""
        parts.append(f"{split}: {each}{f' ({graphs})' if graphs else ''}")
    return f"labels: {'; '.join(parts)}"
