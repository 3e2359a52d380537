"""A run: from a config to trained weights, in memory or in a directory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from lightning_fabric import Fabric
from rich.console import Console
from torch_geometric.data import Data

from symgnn.data._task import Splits
from symgnn.graphs import Topology
from symgnn.nn import Model
from symgnn.nn.averaging import EXAMPLE_ANGLES, EXAMPLE_GRAPHS
from symgnn.report._record_lines import missing_line
from symgnn.store import environment, source_hash, write_json, write_whole
from symgnn.train import _run_data as run_data
from symgnn.train._baseline import Baseline, baseline, headlines
from symgnn.train._checkpointing import Checkpoints
from symgnn.train._config import Config
from symgnn.train._data_checks import check_same, dropped
from symgnn.train._devices import launch, quiet
from symgnn.train._ensemble import Ensemble
from symgnn.train._loader import GraphDataset
from symgnn.train._loop import train_loop
from symgnn.train._lost_process import naming_lost_processes
from symgnn.train._metrics import names_of
from symgnn.train._missing import check_monitor
from symgnn.train._outcomes import Outcomes
from symgnn.train._potential_rows import PotentialRows
from symgnn.train._prepare import Facts, averaged, make_model, measure
from symgnn.train._run_metrics import evaluate
from symgnn.train._run_record import (
    MAY_CHANGE,
    MAY_GROW,
    check_growth,
    config_of,
    differences,
    read_record,
    write_record,
)
from symgnn.train._signals import signals
from symgnn.train._trained_run import SPLITS, Run
from symgnn.train._training_progress import Progress
from symgnn.train._types_in_data import NodeTypes
from symgnn.train._write_metrics import write_metrics


@dataclasses.dataclass(frozen=True)
class Setting:
    """All that is known before the first step.

    Attributes:
        config: The config.
        splits: The graphs.
        record: The content of `run.json`.
        make: Builds one model.
        judge: The loss and the metrics.
        graphs: The graphs of each split that is read in training, as the model reads them.
    """

    config: Config
    splits: Splits
    record: dict[str, Any]
    make: Callable[[], Model]
    judge: Any
    graphs: dict[str, GraphDataset]


def train(
    config: Config,
    out: Path | None = None,
    *,
    resume: bool = False,
    console: Console | None = None,
    splits: Splits | None = None,
    make: Callable[[], Model] | None = None,
    fabric: Fabric | None = None,
) -> Run | None:
    """Train the networks of a configuration.

    Args:
        config: The config.
        out: The directory of the run; None keeps it in memory.
        resume: Whether to continue the run in `out`; it ends with the weights of an uninterrupted
            run.
        console: The console for lines and a progress bar.
        splits: The graphs of the section `data`, if they are already loaded.
        make: Builds a model, in place of the section `model`.
        fabric: The devices, if they are already launched.

    Returns:
        The run; None in all processes but the first.

    Example:
        >>> from symgnn.train import Config, Training, train
        >>> data = {"name": "polytopes-3d", "copies": 2}
        >>> run = train(Config(data, {"block": "gn"}, Training(epochs=1, seeds=2)))
        >>> len(run.models)
        2
    """
    console = console or Console(quiet=True)
    fabric = fabric or launch(config.train)
    first = fabric.is_global_zero
    with quiet(), claimed(out) if first and out is not None else nullcontext():
        if first and out is not None:
            check_config(out, config, resume)
        setting = prepare(config, splits or run_data.load(config.data), make)
        if first:
            if out is not None:
                write_run(out, config, setting.record)
            say(console, setting.record["model"])
            say(console, division_line(setting.splits))
            if setting.record.get("labels"):
                say(console, missing_line(setting.record["labels"]))
            problem = start_problem(setting)
            if problem is not None:
                say(console, f"warning: {problem}")
        groups = [
            train_group(setting, seeds, None if out is None else out / name, fabric, console).group(
                name
            )
            for seeds, name in zip(config.train.groups, config.train.group_names, strict=True)
        ]
    if not first:
        return None
    return Run(config, setting.record, groups, splits=setting.splits, make=make, directory=out)


def prepare(config: Config, splits: Splits, make: Callable[[], Model] | None = None) -> Setting:
    """Measure the data, build the model, and check all that can be checked before training."""
    types = NodeTypes.of(config) if make is None else None
    train = config.train
    if (splits.task.level == "potential") != (train.targets is not None):
        given = "is missing" if train.targets is None else f"is {list(train.targets)}"
        raise ValueError(
            f"train.targets: {given}, but y is of level {splits.task.level!r}; give targets such "
            "as [energy, forces] for energies of atoms, and for these alone"
        )
    facts = measure(splits, dropped(config), train.standardise, types, train.references)
    if make is None:
        facts = averaged(facts, config, splits)
        make = partial(make_model, config, splits.task, facts.told)
    model = make()
    check(config, splits, model)
    check_monitor(splits, facts.labels, config.train.monitor)
    judge = facts.judge(splits.task, splits.scale, config.train)
    assert facts.answers is not None
    trivial = baseline(judge, *facts.answers)
    graphs = {n: ready(config, getattr(splits, n), model) for n in ("train", "validation")}
    record = about(config, splits, facts, model, trivial)
    return Setting(config, splits, record, make, judge, graphs)


def start_problem(setting: Setting) -> str | None:
    """Why the network may learn slowly: signals of a size that is not sane, on a few graphs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(setting.config.train.seed)
        model = setting.make()
    model = model.network if isinstance(model, PotentialRows) else model
    graphs, count, room = setting.graphs["train"], 0, EXAMPLE_ANGLES
    while count < min(len(graphs), EXAMPLE_GRAPHS):
        graph = graphs[count]
        room -= Topology.of(graph, angles=True, whole=False).num_angles + graph.num_edges
        if room < 0:
            break
        count += 1
    return signals(model, graphs.__getitems__(list(range(count)))).problem if count else None


def train_group(
    setting: Setting, seeds: Sequence[int], directory: Path | None, fabric: Fabric, console: Console
) -> Checkpoints:
    """Train the members of some seeds together, from the start or from their last checkpoint."""
    settings = setting.config.train
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    checkpoints = Checkpoints(settings, seeds, directory)
    if fabric.is_global_zero:
        checkpoints.clean()
    fabric.barrier()
    ensemble = Ensemble(setting.make, seeds)
    if settings.compile and ensemble.single is not None:
        ensemble.single.compile(dynamic=True)
    progress = Progress(console, settings, checkpoints)
    with naming_lost_processes(fabric), progress.shown():
        train_loop(
            ensemble,
            setting.graphs["train"],
            setting.judge,
            settings,
            checkpoints,
            fabric=fabric,
            watched={"validation": setting.graphs["validation"]},
            on_step=progress.on_step,
            on_validation=progress.on_validation if fabric.is_global_zero else None,
        )
    if fabric.is_global_zero and checkpoints.stopped_before:
        say(
            console,
            f"{directory}: stopped after {checkpoints.stopped_before} epochs, as train.patience is "
            f"{settings.patience}; a larger one goes on",
        )
    return checkpoints


@contextmanager
def claimed(out: Path) -> Iterator[None]:
    """The directory, made and for this process alone; taken away again if nothing came of it."""
    made = [each for each in (out, *out.parents) if not each.exists()]
    lock = FileLock(out / ".lock")
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(
            f"--out: another process is training into {out}; wait for it, or give another --out"
        ) from None
    except OSError as error:
        raise ValueError(f"--out: cannot make {out} ({error.strerror}); choose another") from None
    try:
        yield
    finally:
        (out / ".lock").unlink(missing_ok=True)
        lock.release()
        for each in made:
            if each.is_dir() and not any(each.iterdir()):
                each.rmdir()


def finish(run: Run) -> dict[str, Any]:
    """Evaluate a trained run on every split; write `metrics.json` if the run has a directory.

    `outcomes.json` has the test graphs that the report shows.

    Args:
        run: A run from :func:`train`.

    Returns:
        The metrics, in the form of :func:`evaluate`.

    Example:
        >>> from symgnn.train import Config, Training, finish, train
        >>> data = {"name": "polytopes-3d", "copies": 2}
        >>> run = train(Config(data, {"block": "gn"}, Training(epochs=1)))
        >>> sorted(finish(run))
        ['test', 'train', 'validation']
    """
    splits = run.splits()
    outcomes = Outcomes(splits.task, splits.test)
    run.metrics = evaluate(run, splits, SPLITS, {"test": outcomes})
    run.outcomes = {"test": outcomes.summary()}
    if run.directory is not None:
        write_json(run.directory / "outcomes.json", run.outcomes)
        write_metrics(run.directory / "metrics.json", run.metrics)
    return run.metrics


def has_begun(out: Path) -> bool:
    """Whether the directory contains trained weights; if not, a run may start there."""
    begun = any(out.glob("seed*/*.ckpt")) or any(out.glob("fold-*/seed*/*.ckpt"))
    return (out / "config.yaml").exists() and begun


def check_config(out: Path, config: Config, resume: bool) -> None:
    """Check that a run is not overwritten, and that it continues with the same configuration."""
    if not has_begun(out):
        return
    if not resume:
        raise ValueError(
            f"--out: {out} contains a run; give --resume to continue it, or another --out"
        )
    before = config_of(out)
    for section, key, old, new in differences(before, config.as_dict()):
        if (section, key) not in (*MAY_CHANGE, *MAY_GROW):
            raise ValueError(
                f"{section}.{key}: is {new!r}, but the run in {out} has {old!r}; "
                "give the same, or another --out"
            )
    check_growth(out, before, config.train)


def write_run(out: Path, config: Config, record: dict[str, Any]) -> None:
    """Write config.yaml and run.json; check that a continued run has the same data."""
    if has_begun(out):
        check_same(read_record(out), record, "put them back, or train into another --out")
    write_whole(out / "config.yaml", config.to_yaml().encode())
    write_record(out, record)


def check(config: Config, splits: Splits, model: Model) -> None:
    """Checks that need the data: the model, the monitored metric, a first graph."""
    train, known = config.train, names_of(splits.task)
    if train.monitor not in known:
        raise ValueError(f"train.monitor: is {train.monitor!r}; choose from {', '.join(known)}")
    if train.epochs % train.validate_every:
        raise ValueError(
            f"train.epochs: is {train.epochs}; give a multiple of train.validate_every, which is "
            f"{train.validate_every}"
        )
    if train.class_weights != "none" and splits.task.kind != "classification":
        raise ValueError("train.class_weights: this task has no classes; remove it")
    try:
        with torch.no_grad():
            model.eval()(ready(config, [splits.train[0]], model)[0])
    except ValueError as error:
        hint = "data.drop names values that are to be left out, such as drop: [x]"
        raise ValueError(f"data.{error}; {hint}") from None


def ready(config: Config, graphs: Sequence[Data], model: Model) -> GraphDataset:
    """Graphs as the model reads them."""
    dtype = torch.float64 if config.train.precision == "64" else torch.float32
    drop = [*dropped(config), *model.unread]
    return GraphDataset(graphs, drop=drop, dtype=dtype, angles=model.needs_angles)


def say(console: Console, text: str) -> None:
    """Print a line as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def division_line(splits: Splits) -> str:
    """How many graphs there are to train on, to choose by and to measure on, and why."""
    sizes = ", ".join(f"{len(getattr(splits, name))} {name}" for name in SPLITS)
    split = splits.about.get("split") or {}
    by = split.get("by") if split.get("by") != "random" else None
    column = f" {split['column']!r}" if split.get("column") else ""
    fold = splits.about.get("fold")
    number = f", fold {fold} of {splits.about['folds']}" if fold else ""
    return f"graphs: {sizes}{f', by {by}{column}' if by else ''}{number}"


def about(
    config: Config, splits: Splits, facts: Facts, model: Model, trivial: Baseline
) -> dict[str, Any]:
    """The record of a run: its data, settings and versions, and the options of its model."""
    train = config.train
    return {
        "seeds": list(range(train.seed, train.seed + train.seeds)),
        "task": dataclasses.asdict(splits.task),
        "scale": splits.scale,
        **facts.as_dict(),
        "baseline": trivial.as_dict(),
        "headlines": headlines(splits.task, train.loss, train.monitor, train.class_weights),
        "config": config.as_dict(),
        "model": repr(model),
        "symmetry": str(model.symmetry),
        "parameters": sum(p.numel() for p in model.parameters()),
        "about": splits.about,
        "code": source_hash(),
        "environment": environment(),
    }
