"""A run that was trained, as a model: to predict, to measure, to use in Python."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from symgnn.data.task import LENGTHS, Splits, Task
from symgnn.nn import Model
from symgnn.store import read_json
from symgnn.train import datasets
from symgnn.train.checkpoint import fitting, read_checkpoint
from symgnn.train.config import Config, read_config
from symgnn.train.loader import READ, Batches, Graphs, loader
from symgnn.train.metrics import Metrics, Scaler
from symgnn.train.prepare import (
    Facts,
    check_answers,
    check_same,
    dropped,
    make_model,
    sizes_of,
)


class Prediction(NamedTuple):
    """The mean over the seeds and their deviation, `[rows, outputs]`, in the targets' units.

    Rows are graphs, nodes or edges; outputs are targets, coordinates, or the probability of each
    class.
    """

    value: Tensor
    deviation: Tensor


class Trained(nn.Module):
    """The models of a run, one for each seed, with their best weights, in eval mode.

    It takes graphs as their source has them: coordinates are brought to the scale of the training
    here, and predictions come in units.
    """

    def __init__(
        self, config: Config, record: dict[str, Any], states: Sequence[tuple[Path, dict]]
    ) -> None:
        super().__init__()
        self.config, self.record = config, record
        task: dict[str, Any] = record["task"]
        lists = {k: tuple(task[k]) for k in ("targets", "units", "classes")}
        self.task = Task(task["level"], task["kind"], **lists)
        self.facts = Facts.from_dict(record)
        self.scale = float(record["scale"])
        models = []
        for path, state in states:
            model = make_model(config, self.task, self.facts.sizes)
            with fitting(path):
                model.load_state_dict(state)
            models.append(model)
        self.models = nn.ModuleList(models)
        self.eval()
        self.requires_grad_(False)

    @property
    def model(self) -> nn.Module:
        """That of the first seed, which reads scaled coordinates and gives standardised numbers."""
        return self.models[0]

    @property
    def scaler(self) -> Scaler:
        return self.facts.scaler

    def forward(self, data: Data) -> Tensor:
        """The mean prediction for a graph or batch, differentiable in its values."""
        return self._outputs(self._ready(data, self.scale)).mean(0)

    @torch.no_grad()
    def predict(
        self, data: str | os.PathLike[str] | Data | Iterable[Data], *, scaled: bool = False
    ) -> Prediction:
        """Mean and deviation over the seeds, for a file, one graph, a batch or a list of graphs.

        Graphs that are `scaled` already are those of the run's dataset.
        """
        scale = 1.0 if scaled else self.scale
        if isinstance(data, str | os.PathLike):
            data, scale = self.read([data]), 1.0
        if isinstance(data, Data):
            outputs = self._outputs(self._ready(data, scale))
        else:
            graphs = [self._ready(graph, scale) for graph in data]
            if not graphs:
                raise ValueError("data: there are no graphs; give at least one")
            size = self.config.train.batch_size
            parts = [graphs[k : k + size] for k in range(0, len(graphs), size)]
            outputs = torch.cat([self._outputs(Batch.from_data_list(part)) for part in parts], 1)
        spread = outputs.std(0) if len(self.models) > 1 else torch.zeros_like(outputs[0])
        return Prediction(outputs.mean(0), spread)

    @torch.no_grad()
    def evaluate(self, graphs: Sequence[Data]) -> dict[str, list[float]]:
        """Every number for each seed, on graphs of a split, whose coordinates are scaled."""
        train = self.config.train
        judge = self.facts.judge(self.task, self.scale, train)
        metrics = Metrics(self.task, len(self.models))
        for k in range(len(graphs)):
            check_answers(graphs[k], self.task, f"graph {k}")
        ready = Graphs(graphs, drop=self._dropped, dtype=self._dtype)
        for batch in loader(ready, Batches(len(ready), train.batch_size), None):
            raw = torch.stack([model(batch) for model in self.models])
            metrics.add(*judge(raw, batch.y))
        return {name: value.tolist() for name, value in metrics.values().items()}

    def example(self, file: Path | None = None) -> Data:
        """A graph as the models read it: that of a file, or the first of the test set."""
        graph = self.read([file])[0] if file is not None else self.splits().test[0]
        return self._ready(graph, 1.0)

    def read(self, files: Sequence[str | os.PathLike[str]]) -> list[Data]:
        """Graphs from files, in the form of those that it was trained on, scaled."""
        return datasets.read(files, self.record.get("about", {}))

    def splits(self, path: str | os.PathLike[str] | None = None) -> Splits:
        """The graphs that it was trained and tested on; `path` says where they are now."""
        given = dict(self.config.data)
        if path is not None:
            if "path" not in given:
                raise ValueError(
                    f"--data: the run was trained on the dataset {given['name']}; leave it out"
                )
            given["path"] = str(path)
        elif "path" in given and not _there(given["path"]):
            raise ValueError(
                f"data.path: there is no {given['path']} any more; say where it is with --data"
            )
        found = datasets.load(given)
        counts = {name: len(getattr(found, name)) for name in ("train", "validation", "test")}
        now = {"task": asdict(found.task), "scale": found.scale, "counts": counts}
        check_same(
            self.record,
            {**now, "about": found.about},
            "put them back, or give files to symgnn predict",
        )
        return found

    @property
    def _dropped(self) -> list[str]:
        """The values that the models do not read."""
        model = self.model
        assert isinstance(model, Model)
        return [*dropped(self.config), *model.unread]

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _outputs(self, data: Data) -> Tensor:
        """`[S, rows, outputs]` in units."""
        raw = torch.stack([model(data) for model in self.models])
        if self.task.kind == "classification":
            return raw.softmax(-1)
        if self.task.level == "coordinates":
            return raw / self.scale
        return self.scaler.back(raw)

    def _ready(self, data: Data, scale: float) -> Data:
        """The graph as the models read it."""
        if getattr(data, "pos", None) is None:
            raise ValueError("pos: a graph has none; give coordinates [N, n]")
        data, called = copy.copy(data), getattr(data, "name", None)
        self._check_elements(data)
        kept = {*READ, "batch", "ptr", "topology", "ray_ranks", "num_nodes"} - {*self._dropped}
        for name in list(data.keys()):
            if name not in kept:
                del data[name]
        sizes = sizes_of(data)
        for key, size in self.facts.sizes.items():
            if key in sizes and sizes[key] != size:
                raise ValueError(
                    f"data: {called or 'a graph'} has {key} {sizes[key]}; the run was trained with "
                    f"{size}, so give files of the kind that it was trained on"
                )
        data = data.apply(lambda t: t.to(self._dtype) if t.is_floating_point() else t)
        for name in LENGTHS:
            if name in data:
                data[name] = data[name] * scale
        return data

    def _check_elements(self, data: Data) -> None:
        """A column of `x` stands for the same element as in training."""
        elements = self.record.get("about", {}).get("read", {}).get("elements")
        if {"x", "z"} & {*dropped(self.config)}:
            return
        if not elements or getattr(data, "z", None) is None or getattr(data, "x", None) is None:
            return
        from ase.data import atomic_numbers

        known = torch.tensor([atomic_numbers[name] for name in elements], device=data.z.device)
        wanted = data.z[:, None] == known
        if data.x.shape[1] < len(elements) or not torch.equal(
            data.x[:, : len(elements)] != 0, wanted
        ):
            raise ValueError(
                f"x: its columns are not the elements {', '.join(elements)} of the run; give "
                "predict the file, or read it with the options in record['about']['read']"
            )

    def __repr__(self) -> str:
        seeds = f"{len(self.models)} seeds of " if len(self.models) > 1 else ""
        return f"Trained({seeds}{self.model!r})"


def _there(path: Any) -> bool:
    """Whether files, folders or patterns can be found."""
    given = [path] if isinstance(path, str) else path
    return all(
        any(c in str(each) for c in "*?[") or Path(each).expanduser().exists() for each in given
    )


def load(run: str | os.PathLike[str]) -> Trained:
    """The models of the run in a directory, as `symgnn train` wrote it."""
    directory = Path(run)
    record = read_json(directory / "run.json")
    if not isinstance(record, dict):
        raise ValueError(f"{directory}: has no run; give the directory that symgnn train wrote")
    config = read_config(directory / "config.yaml")
    for name in ("task", "scale", "sizes", "scaler", "counts", "class_counts"):
        if name not in record:
            raise ValueError(f"{directory / 'run.json'}: has no {name}; restore it, or train again")
    for key, value in record.get("options", config.model).items():
        if config.model.get(key) != value:
            raise ValueError(
                f"{directory / 'config.yaml'}: model.{key} is {config.model.get(key)!r}, but the "
                f"run was trained with {value!r}; put that back"
            )
    states: list[tuple[Path, dict]] = []
    for name in config.train.group_names:
        path = directory / name / "best.ckpt"
        if not path.exists():
            raise ValueError(
                f"{path}: is not there yet; go on with symgnn train {directory} --resume"
            )
        states += [(path, state) for state in read_checkpoint(path)["members"]]
    return Trained(config, record, states)


def evaluate(trained: Trained, splits: Splits, names: Sequence[str]) -> dict[str, Any]:
    """For each split, every number with its mean and deviation over the seeds, and each value."""
    found: dict[str, Any] = {}
    for name in names:
        values = trained.evaluate(getattr(splits, name))
        found[name] = {key: summary(value) for key, value in values.items()}
    return found


def summary(values: list[float]) -> dict[str, Any]:
    """Mean and deviation of the values of seeds."""
    exact = torch.tensor(values, dtype=torch.float64)
    deviation = float(exact.std()) if len(values) > 1 else None
    return {"mean": float(exact.mean()), "deviation": deviation, "values": values}
