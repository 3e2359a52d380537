"""The metrics of a run on its splits, over its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from symgnn.data._task import Splits
from symgnn.train._outcomes import Outcomes
from symgnn.train._trained_run import Run


def evaluate(
    trained: Run,
    splits: Splits,
    names: Sequence[str],
    outcomes: Mapping[str, Outcomes] | None = None,
) -> dict[str, Any]:
    """Evaluate a run on graphs: every metric with its mean and deviation over the seeds.

    Args:
        trained: The run.
        splits: Graphs in the form of the training graphs.
        names: The splits to evaluate: "train", "validation", "test".
        outcomes: Objects that record the predictions on a split.

    Returns:
        `{split: {name: {"mean", "deviation", "values", "baseline", "baseline_by"}}}`: "baseline" is
        the metric of the constant baseline, "baseline_by" its definition.

    Example:
        >>> solids = symgnn.data.load("polytopes-3d", copies=2)
        >>> run = symgnn.fit(solids, "gn", epochs=1, progress=False)
        >>> sorted(symgnn.train.evaluate(run, solids, ["test"]))
        ['test']
    """
    found: dict[str, Any] = {}
    for name in names:
        values, trivial = trained.compare(getattr(splits, name), (outcomes or {}).get(name))
        found[name] = {key: summary(value) for key, value in values.items()}
        for key, number in trivial.items():
            assert trained.baseline is not None
            found[name][key] |= {"baseline": number, "baseline_by": trained.baseline.chosen[key]}
    return found


def summary(values: list[float]) -> dict[str, Any]:
    """Mean and deviation of the values of seeds."""
    exact = torch.tensor(values, dtype=torch.float64)
    deviation = float(exact.std()) if len(values) > 1 else None
    return {"mean": float(exact.mean()), "deviation": deviation, "values": values}
