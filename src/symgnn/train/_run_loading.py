"""Saved and pretrained runs are loaded."""

from __future__ import annotations

import copy
import os
from functools import partial
from pathlib import Path

from torch import nn

from symgnn.store import read_json
from symgnn.train._checkpointing import Group
from symgnn.train._config import OWN_MODEL
from symgnn.train._pretrained import PRETRAINED, read_pretrained
from symgnn.train._run_record import read_run
from symgnn.train._trained_run import Run


def load(run: str | os.PathLike[str], model: nn.Module | None = None) -> Run:
    """Load a run that :func:`symgnn.fit` or `symgnn train` saved.

    Args:
        run: The directory of the run; or the name of a pretrained network of the package:
            "solids", "qm9-homo" or "qm9-zpve".
        model: The network, if :func:`symgnn.fit` got a model instead of a name; its weights are
            replaced by those of the run.

    Returns:
        The run.

    Example:
        >>> import tempfile
        >>> solids = symgnn.data.load("polytopes-3d", copies=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = symgnn.fit(solids, "gn", epochs=1, out=f"{folder}/run", progress=False)
        ...     symgnn.load(f"{folder}/run").task.level
        'graph'
        >>> symgnn.load("qm9-homo").task.units
        ('hartree',)
    """
    directory = Path(run)
    if not directory.exists() and str(run) in PRETRAINED:
        config, record, group, measured = read_pretrained(str(run))
        found = Run(config, record, [group])
        found.metrics = measured
        return found
    if not directory.exists():
        raise ValueError(
            f"{directory}: is not there; give the directory that symgnn train wrote, or one of "
            f"{', '.join(PRETRAINED)}"
        )
    if (directory / "folds.json").exists():
        raise ValueError(
            f"{directory}: has a run for each fold; give one of them, such as {directory}/fold-1"
        )
    config, record = read_run(directory)
    make = None if model is None else partial(copy.deepcopy, model)
    if make is None and config.model["block"] == OWN_MODEL:
        raise ValueError(
            f"model: the run in {directory} was trained with a model that was given to fit; give "
            "one that is built in the same way, symgnn.load(run, model=...)"
        )
    groups = [Group.read(directory, name) for name in config.train.group_names]
    found = Run(config, record, groups, make=make, directory=directory)
    metrics = read_json(directory / "metrics.json")
    found.metrics = metrics if isinstance(metrics, dict) else {}
    return found
