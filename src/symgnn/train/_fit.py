"""Training from Python: `symgnn.fit`."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from torch_geometric.data import Data

from symgnn.data import read
from symgnn.data import splits as divide
from symgnn.data._registry import DATASETS
from symgnn.data._task import Splits
from symgnn.data._task_of_graphs import with_task
from symgnn.data.files._atoms import is_atoms
from symgnn.nn import Model
from symgnn.nn.build import BUILD_OPTIONS
from symgnn.nn.variants import variant_options
from symgnn.report._run_page import print_metrics, write_run_report
from symgnn.train._config import (
    IN_MEMORY,
    INFERRED,
    OWN_MODEL,
    Config,
    check_data,
    check_model,
    training,
)
from symgnn.train._potential_config import for_potential, training_of_potential
from symgnn.train._settings import Training
from symgnn.train._trained_run import Run
from symgnn.train._training import finish, train


def fit(
    graphs: Any,
    model: str | Mapping[str, Any] | Model = "dgn",
    *,
    level: str | None = None,
    data: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Train a network, evaluate it on every split, and return the run.

    The same settings give bit-identical weights from Python and from `symgnn train` with a
    configuration file.

    Args:
        graphs: A list of PyG `Data` with `pos`, `edge_index` and `y`; the :class:`Splits` of
            `symgnn.data.splits` or `symgnn.data.load`; a list of `ase.Atoms`; the name of a
            dataset, such as "qm9"; or a file or folder of your own.
        model: The name of an architecture; a dictionary with its name as "block" and options of
            :func:`symgnn.nn.build`; or a model built by it, which is copied and trained from its
            current weights.
        level: The level of `y` for a list of graphs: "graph", "node", "edge", "coordinates",
            "node-vectors" or "graph-vectors"; needed if the shape of `y` is ambiguous.
        data: Further options of the data: of `symgnn.data.splits` for a list of graphs, of
            the dataset, or of `symgnn.data.read` for files, such as `{"columns": ["gap"]}`.
        out: The directory of the run. Without it, the run is only in memory; see `Run.save`.
        resume: Whether to continue the run in `out`.
        progress: Whether to show a progress bar, or lines, and the result.
        settings: The section `train` of a config: `epochs`, `batch_size`, `learning_rate`,
            `patience`, `seeds`, ... (:class:`symgnn.train.Training`). With
            `targets=["energy", "forces"]` (and "stress") a potential is trained, see
            :class:`symgnn.nn.Potential`; `target_weights={"forces": 10.0}` weights its loss.

    Returns:
        The run: `run.predict(new)`, `run.evaluate("test")`, `run.metrics`, `run.save(directory)`.

    Example:
        >>> import symgnn
        >>> solids = symgnn.data.load("polytopes-3d", copies=2)
        >>> model = {"block": "agn", "hidden": 8, "aggregation": "sum"}
        >>> run = symgnn.fit(solids, model, epochs=2, batch_size=5, progress=False)
        >>> value, deviation = run.predict(solids.test[0])
        >>> value.shape
        torch.Size([1, 5])
    """
    _check_place(settings)
    known = training(training_of_potential(settings))
    options, described = for_potential(
        dict(data or {}), model_section(model), known.targets, reads=_reads(graphs)
    )
    section, splits = _data(graphs, level, options)
    make: Any = None
    if isinstance(model, Model):
        if settings.get("seeds", 1) != 1:
            raise ValueError(
                f"seeds: is {settings['seeds']}, but a model has one initialisation; give the "
                "name of an architecture, or a dictionary with its options"
            )
        make, described = partial(copy.deepcopy, model), {"block": OWN_MODEL}
    else:
        described = check_model(described)
    config = Config(section, described, known)
    if config.is_cross_validation:
        raise ValueError("data: folds are for symgnn train; in Python, fit each of data.folds(...)")
    console = Console() if progress else Console(quiet=True)
    directory = None if out is None else Path(out)
    run = train(config, directory, resume=resume, console=console, splits=splits, make=make)
    if run is None:  # one of several processes that is not the first has nothing to give
        raise SystemExit(0)
    print_metrics(console, finish(run), run.record)
    if directory is not None:
        page = write_run_report(directory)
        console.print(f"report: {page}", soft_wrap=True, markup=False)
    return run


def _reads(graphs: Any) -> bool:
    """Whether graphs are made here, of files or atoms."""
    if isinstance(graphs, Mapping):
        return "path" in graphs
    several = isinstance(graphs, Sequence) and len(graphs) > 0 and is_atoms(graphs[0])
    return isinstance(graphs, str | os.PathLike) or several


def model_section(model: Any) -> dict[str, Any]:
    """The section `model` of a name, a dictionary or a model."""
    if isinstance(model, Model):
        return {"block": OWN_MODEL}
    if not isinstance(model, str | Mapping):
        raise ValueError(
            f"model: is a {type(model).__name__}; give the name of an architecture, a dictionary "
            "with its options, or a model of symgnn.nn.build"
        )
    return {"block": model} if isinstance(model, str) else dict(model)


def _check_place(settings: Mapping[str, Any]) -> None:
    """Refuse options of the network among those of the training."""
    of_model = {*BUILD_OPTIONS, *variant_options()} - {*INFERRED}
    for name, value in settings.items():
        if name in of_model - {each.name for each in fields(Training)}:
            raise ValueError(
                f"{name}: is an option of the network; give it with the model, such as "
                f"{{'block': 'dgn', {name!r}: {value!r}}}"
            )


def _data(
    graphs: Any, level: str | None, options: dict[str, Any]
) -> tuple[dict[str, Any], Splits | None]:
    """The section `data`, and its graphs where they are in memory."""
    if isinstance(graphs, Splits):
        if options or level not in (None, graphs.task.level):
            given = f"data: is {options}" if options else f"level: is {level!r}"
            raise ValueError(
                f"{given}, but the graphs are already divided and have a task; remove it"
            )
        return dict(IN_MEMORY), graphs
    if isinstance(graphs, Mapping):
        return check_data({**graphs, **options}), None
    if isinstance(graphs, str | os.PathLike):
        text = os.fspath(graphs)
        key = "name" if text in DATASETS and not Path(text).exists() else "path"
        if level is not None:
            options["level"] = level
        return check_data({key: text, **options}), None
    if isinstance(graphs, Data):
        raise ValueError("graphs: is one graph; give a list of graphs to train on")
    if isinstance(graphs, Sequence) and len(graphs) and is_atoms(graphs[0]):
        return dict(IN_MEMORY), _atoms(graphs, options)
    if isinstance(graphs, Sequence) and len(graphs) and isinstance(graphs[0], Data):
        known, task = with_task(graphs, level)
        return dict(IN_MEMORY), divide(known, task=task, **options)
    if is_atoms(graphs):
        raise ValueError("graphs: is one ase.Atoms; give a list of them to train on")
    empty = " without graphs" if isinstance(graphs, Sequence) and not len(graphs) else ""
    raise ValueError(
        f"graphs: is a {type(graphs).__name__}{empty}; give a list of PyG Data or ase.Atoms, "
        "Splits, the name of a dataset, or a file or folder"
    )


def _atoms(atoms: Sequence[Any], options: dict[str, Any]) -> Splits:
    """Atoms in memory as splits; options are those of `read` and of `splits`."""
    division = {"by", "column", "fractions", "seed", "scale"}
    reading = {name: value for name, value in options.items() if name not in division}
    graphs = read(list(atoms), **reading)
    if graphs.task is None:
        raise ValueError(
            graphs.unclear
            or "targets: are missing; give targets=['energy', 'forces'], or data={'columns': [...]}"
        )
    return divide(graphs, **{name: options[name] for name in options if name in division})
