"""A run: from a config to a directory with everything that was found."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from lightning.pytorch.utilities.rank_zero import rank_zero_only
from rich.console import Console
from torch_geometric.data import Data

from symgnn.data.task import Splits
from symgnn.nn import Model
from symgnn.store import environment, source_hash, write_json, write_whole
from symgnn.train import datasets
from symgnn.train.baseline import Baseline, baseline, headlines
from symgnn.train.config import Config
from symgnn.train.keeper import Keeper
from symgnn.train.loader import Graphs
from symgnn.train.lost_process import naming_lost_processes
from symgnn.train.members import Members
from symgnn.train.metrics import names_of
from symgnn.train.missing import check_monitor, missing_line
from symgnn.train.module import Module
from symgnn.train.outcomes import Outcomes
from symgnn.train.prepare import Facts, NodeTypes, check_same, dropped, make_model, measure
from symgnn.train.progress import Progress
from symgnn.train.quiet import quiet
from symgnn.train.run_record import (
    MAY_CHANGE,
    MAY_GROW,
    check_growth,
    config_of,
    differences,
    read_record,
    write_record,
)
from symgnn.train.trained import evaluate, load
from symgnn.train.write_metrics import write_metrics

PARTS = ("train", "validation", "test")
PRECISION = {"32": "32-true", "64": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}


def train(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    console: Console | None = None,
    splits: Splits | None = None,
) -> Splits | None:
    """Train into the directory `out`; give the graphs, in the first of several processes.

    With `resume`, a run that was stopped at any moment goes on to the weights that it would have
    had. `splits` are the graphs of the section `data`, if they are there already.
    """
    console = console or Console(quiet=True)
    first = is_first()
    with quiet(), claimed(out) if first else nullcontext():
        if first:
            check_config(out, config, resume)
        splits = splits or datasets.load(config.data)
        facts = measure(splits, dropped(config), config.train.standardise, NodeTypes.of(config))
        make = partial(make_model, config, splits.task, facts.sizes)
        model = make()
        check(config, splits, model)
        check_monitor(splits, facts.labels, config.train.monitor)
        judge = facts.judge(splits.task, splits.scale, config.train)
        assert facts.answers is not None
        trivial = baseline(judge, *facts.answers)
        if first:
            write_run(out, config, about(config, splits, facts, model, trivial))
            say(console, repr(model))
            say(console, division_line(splits))
            if facts.labels:
                say(console, missing_line(facts.labels))
        graphs = {n: ready(config, getattr(splits, n), model) for n in ("train", "validation")}
        for seeds, name in zip(config.train.groups, config.train.group_names, strict=True):
            fit(Module(Members(make, seeds), config.train, judge, graphs), out / name, console)
    return splits if first else None


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


def is_first() -> bool:
    """Whether this is the first of the processes that train together, the one that writes."""
    return getattr(rank_zero_only, "rank", None) in (None, 0)


def finish(out: Path, splits: Splits) -> dict[str, Any]:
    """Measure the best weights on every split; write and give `metrics.json`.

    `outcomes.json` has what the report shows of single test graphs.
    """
    outcomes = Outcomes(splits.task, splits.test)
    metrics = evaluate(load(out), splits, PARTS, {"test": outcomes})
    write_json(out / "outcomes.json", {"test": outcomes.summary()})
    write_metrics(out / "metrics.json", metrics)
    return metrics


def has_begun(out: Path) -> bool:
    """Whether anything was trained there; without, a run may begin anew."""
    begun = any(out.glob("seed*/*.ckpt")) or any(out.glob("fold-*/seed*/*.ckpt"))
    return (out / "config.yaml").exists() and begun


def check_config(out: Path, config: Config, resume: bool) -> None:
    """A run is never overwritten, and goes on with the config that it began with."""
    if not has_begun(out):
        return
    if not resume:
        raise ValueError(f"--out: {out} has a run; give --resume to go on, or another --out")
    before = config_of(out)
    for section, key, old, new in differences(before, config.as_dict()):
        if (section, key) not in (*MAY_CHANGE, *MAY_GROW):
            raise ValueError(
                f"{section}.{key}: is {new!r}, but the run in {out} has {old!r}; "
                "give the same, or another --out"
            )
    check_growth(out, before, config.train)


def write_run(out: Path, config: Config, record: dict[str, Any]) -> None:
    """Write config.yaml and run.json; a run that goes on needs the data that it began with."""
    if has_begun(out):
        check_same(read_record(out), record, "put them back, or train into another --out")
    write_whole(out / "config.yaml", config.to_yaml().encode())
    write_record(out, record)


def check(config: Config, splits: Splits, model: Model) -> None:
    """What can only be checked with the data: the model, what is monitored, a first graph."""
    train, known = config.train, names_of(splits.task)
    if train.monitor not in known:
        raise ValueError(f"train.monitor: is {train.monitor!r}; choose from {', '.join(known)}")
    if train.epochs % train.validate_every:
        raise ValueError(
            f"train.epochs: is {train.epochs}; give a multiple of train.validate_every, which is "
            f"{train.validate_every}"
        )
    try:
        Trainer(accelerator=train.accelerator, devices=1, logger=False, barebones=True)
    except (MisconfigurationException, ImportError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"train.accelerator: is {train.accelerator!r}; {said}") from None
    if train.class_weights != "none" and splits.task.kind != "classification":
        raise ValueError("train.class_weights: there are no classes; leave it out")
    try:
        with torch.no_grad():
            model.eval()(ready(config, [splits.train[0]], model)[0])
    except ValueError as error:
        hint = "data.drop names values that are to be left out, such as drop: [x]"
        raise ValueError(f"data.{error}; {hint}") from None


def ready(config: Config, graphs: Sequence[Data], model: Model) -> Graphs:
    """Graphs as the model reads them."""
    dtype = torch.float64 if config.train.precision == "64" else torch.float32
    drop = [*dropped(config), *model.unread]
    return Graphs(graphs, drop=drop, dtype=dtype, angles=model.needs_angles)


def say(console: Console, text: str) -> None:
    """Print a line as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def division_line(splits: Splits) -> str:
    """How many graphs there are to train on, to choose by and to measure on, and why."""
    sizes = ", ".join(f"{len(getattr(splits, name))} {name}" for name in PARTS)
    split = splits.about.get("split") or {}
    by = split.get("by") if split.get("by") != "random" else None
    column = f" {split['column']!r}" if split.get("column") else ""
    fold = splits.about.get("fold")
    number = f", fold {fold} of {splits.about['folds']}" if fold else ""
    return f"graphs: {sizes}{f', by {by}{column}' if by else ''}{number}"


def about(
    config: Config, splits: Splits, facts: Facts, model: Model, trivial: Baseline
) -> dict[str, Any]:
    """What the run was made of, and what its model needs to be built again."""
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


def fit(module: Module, directory: Path, console: Console) -> None:
    """Train a group of seeds, from the beginning or from where it was."""
    directory.mkdir(parents=True, exist_ok=True)
    keeper = Keeper(directory, module)
    if is_first():
        keeper.clean()
    if not keeper.resume(module):
        if is_first() and module.epoch < module.settings.epochs:
            console.print(
                f"{directory}: stopped after {module.epoch} epochs, as train.patience is "
                f"{module.settings.patience}; a larger one goes on",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        return
    if module.settings.compile and module.members.model is not None:
        module.members.model.compile(dynamic=True)
    trainer = _trainer(module, directory, [keeper, Progress(console, keeper)])
    try:
        with naming_lost_processes(trainer):
            trainer.fit(module)
    except SystemExit:  # what Lightning makes of a KeyboardInterrupt
        raise KeyboardInterrupt from None


def _trainer(module: Module, directory: Path, callbacks: list[Any]) -> Trainer:
    train = module.settings
    devices, nodes = train.devices, 1
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun has started the processes
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
    return Trainer(
        accelerator=train.accelerator,
        devices=devices,
        num_nodes=nodes,
        strategy="ddp" if devices * nodes > 1 else "auto",
        max_epochs=train.epochs - module.epoch,
        check_val_every_n_epoch=train.validate_every,
        precision=PRECISION[train.precision],  # type: ignore[arg-type]
        callbacks=callbacks,
        logger=TensorBoardLogger(
            directory, name="", version="tensorboard", purge_step=module.epoch
        ),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        inference_mode=False,
        num_sanity_val_steps=0,
    )
