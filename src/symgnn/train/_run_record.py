"""The record of a run directory: `config.yaml`, for people, and `run.json`, with a digest.

`run.json` holds the config too, so that a model is built of what the digest covers; `config.yaml`
has to agree with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symgnn.store import finite, write_json
from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._config import Config, Training, read_config, resolve

#: The keys of a record that a model needs to be built.
NEEDED = ("task", "scale", "sizes", "scaler", "counts", "class_counts", "config")
#: Facts that may differ when a run goes on, because weights depend on it by rounding at most; files
#: may have moved, as their content is compared.
MAY_CHANGE = (
    ("train", "workers"),
    ("train", "devices"),
    ("train", "accelerator"),
    ("data", "path"),
)
#: The settings by which a run may be extended.
MAY_GROW = (("train", "epochs"), ("train", "patience"))


def digest_of(record: dict[str, Any]) -> str:
    """The SHA-256 of a record, however it is laid out as JSON."""
    rest = {key: value for key, value in record.items() if key != "sha256"}
    text = json.dumps(finite(rest), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_record(directory: Path, record: dict[str, Any]) -> Path:
    """Write `run.json`, with its digest."""
    plain = json.loads(json.dumps(finite(record), allow_nan=False))
    return write_json(directory / "run.json", {**plain, "sha256": digest_of(plain)})


def read_record(directory: Path) -> dict[str, Any]:
    """The content of `run.json`; a damaged file gives an error of one line with its name."""
    path = directory / "run.json"
    if not path.exists():
        raise ValueError(f"{directory}: has no run; give the directory that symgnn train wrote")
    fix = "restore it, or train again"
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: is damaged, it is not JSON any more; {fix}") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); {fix}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{path}: is damaged, it is not a record of a run; {fix}")
    if "sha256" not in record:
        missing = next((name for name in NEEDED if name not in record), "sha256")
        raise ValueError(f"{path}: has no {missing}; {fix}")
    if record["sha256"] != digest_of(record):
        raise ValueError(f"{path}: is damaged or was changed, its sha256 does not fit; {fix}")
    for name in NEEDED:
        if name not in record:
            raise ValueError(f"{path}: has no {name}; {fix}")
    return record


def read_run(directory: Path) -> tuple[Config, dict[str, Any]]:
    """The config of a run, and its record."""
    record = read_record(directory)
    path = directory / "config.yaml"
    try:
        now = read_config(path).as_dict()
    except Exception as error:  # a damaged file can be read as almost anything
        said = str(error).partition("\n")[0].removeprefix("config: ")
        said = said if str(path) in said else f"{path}: {said}"
        raise ValueError(f"{said} (config.yaml was changed or is damaged: restore it)") from None
    trained = resolve(record["config"])  # options that are newer than the run have their defaults
    before = json.loads(json.dumps(finite(trained.as_dict()), default=str))
    for section, key, old, new in differences(before, now):
        if (section, key) not in (*MAY_CHANGE, *MAY_GROW):
            raise ValueError(
                f"{path}: {section}.{key} is {new!r}, but the run was trained with {old!r}; "
                "put that back"
            )
    return trained, record


def config_of(directory: Path) -> dict[str, Any]:
    """The config that a run has; that of a cross-validation is in `config.yaml` alone, as each
    fold has a record of its own.
    """
    if not (directory / "run.json").exists() and any(directory.glob("fold-*")):
        return read_config(directory).as_dict()
    return read_record(directory)["config"]


def differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, str, Any, Any]]:
    """Section, key, value before and value now of all that differs between two configs."""
    now = json.loads(json.dumps(finite(now), default=str))
    for section, part in now.items():
        for key in sorted({*part, *before[section]}):
            if before[section].get(key) != part.get(key):
                yield section, key, before[section].get(key), part.get(key)


def check_growth(directory: Path, before: dict[str, Any], train: Training) -> None:
    """Allow more epochs than planned, if the learning rates do not depend on their number."""
    old = before["train"]
    if train.epochs != old["epochs"]:
        if train.schedule == "cosine":
            raise ValueError(
                f"train.epochs: is {train.epochs}, but the run in {directory} has {old['epochs']}, "
                "and every learning rate of its schedule, cosine, depends on that; train into "
                "another --out, or with schedule none or plateau"
            )
        paths = directory.glob("seed*/last.ckpt")
        done = max((int(read_checkpoint(path)["epoch"]) for path in paths), default=0)
        if train.epochs < done:
            raise ValueError(
                f"train.epochs: is {train.epochs}, but the run in {directory} has done {done}; "
                "give as many or more, or another --out"
            )
    longer = old["patience"] is not None and (
        train.patience is None or train.patience > old["patience"]
    )
    if train.patience != old["patience"] and not longer:
        raise ValueError(
            f"train.patience: is {train.patience}, but the run in {directory} has "
            f"{old['patience']}; give as many epochs or more, or another --out"
        )
