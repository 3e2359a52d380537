"""What training has to know of the data, and the model that fits them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data.files.table import not_among
from symgnn.data.task import Splits, Task
from symgnn.nn import Model, build
from symgnn.nn.build import BUILD_OPTIONS, count_of_types, network_named
from symgnn.nn.node_types import ATOMS, TypeColumns
from symgnn.nn.peers import PEERS
from symgnn.train.config import Config, Training
from symgnn.train.loader import READ
from symgnn.train.metrics import Judge, Scaler, balanced
from symgnn.train.sections import in_section

#: The values of a graph that a model can read, and what their width is called in `build`.
WIDTHS = {
    "x": "node_features",
    "edge_attr": "edge_features",
    "angle_attr": "angle_features",
    "u": "graph_features",
}


def sizes_of(graph: Data, drop: Sequence[str] = ()) -> dict[str, int]:
    """What `build` is told by a graph: its dimension, and how wide each of its values is."""
    sizes = {"dimension": graph.pos.shape[1]}
    for name, option in WIDTHS.items():
        value = None if name in drop else getattr(graph, name, None)
        if value is not None and not (isinstance(value, Tensor) and value.dim() == 2):
            shape = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            rows = "1" if name == "u" else "rows"
            raise ValueError(f"{name}: is {shape} of a graph; give a tensor [{rows}, features]")
        sizes[option] = 0 if value is None else int(value.shape[-1])
    return sizes


@dataclass(frozen=True)
class Facts:
    """What training has to know of the data, found in one pass over them."""

    sizes: dict[str, int]
    scaler: Scaler
    counts: dict[str, int]  # graphs of each split
    class_counts: Tensor  # [classes], rows of the training graphs

    def judge(self, task: Task, scale: float, train: Training) -> Judge:
        """What judges outputs for these data."""
        weights = balanced(self.class_counts) if train.class_weights == "balanced" else None
        return Judge(task, self.scaler, scale, train.loss, weights)

    def as_dict(self) -> dict[str, Any]:
        """In plain numbers."""
        plain = asdict(self)
        for name in ("mean", "deviation"):
            plain["scaler"][name] = plain["scaler"][name].tolist()
        plain["class_counts"] = self.class_counts.tolist()
        return plain

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Facts:
        """What :meth:`as_dict` gave, perhaps with more beside it."""
        scaler, counts = plain["scaler"], torch.tensor(plain["class_counts"], dtype=torch.long)
        found = Scaler(_exact(scaler["mean"]), _exact(scaler["deviation"]), scaler["done"])
        return Facts(plain["sizes"], found, plain["counts"], counts)


def measure(
    splits: Splits,
    drop: Sequence[str] = (),
    standardise: bool = True,
    types: NodeTypes | None = None,
) -> Facts:
    """Check every graph against the task and the first one; find the targets' mean and spread.

    Args:
        splits: The graphs and their task.
        drop: Values that are left out.
        standardise: Whether the targets are brought to mean 0 and deviation 1.
        types: How the types of nodes are read; None where the network does so by itself.
    """
    task = splits.task
    counts, sizes = {}, None
    types = None if "z" in drop else types
    targets = []
    for name in ("train", "validation", "test"):
        graphs = getattr(splits, name)
        counts[name] = len(graphs)
        if not len(graphs):
            raise ValueError(f"data: there are no graphs to {_PURPOSE[name]}; give at least one")
        for k in range(len(graphs)):
            graph = graphs[k]
            where = f"graph {k} of {name}"
            if getattr(graph, "name", None):
                where += f" ({graph.name})"
            if sizes is None:
                check_drop(graph, drop)
            found = sizes_of(graph, drop)
            sizes = sizes or found
            if found != sizes:
                key = next(key for key in sizes if sizes[key] != found[key])
                raise ValueError(
                    f"data: {where} has {key} {found[key]}, the first has {sizes[key]}; "
                    "all graphs need the same"
                )
            for value in ("vel", *WIDTHS):
                given = None if value in drop else getattr(graph, value, None)
                if given is not None and not given.isfinite().all():
                    raise ValueError(
                        f"{value}: {where} has a value that is not finite; correct it, or leave "
                        f"it out with data.drop: [{value}]"
                    )
            if types is not None:
                types.add(graph, where, "x" not in drop)
            check_answers(graph, task, where)
            if name == "train":
                targets.append(graph.y)
    y = torch.cat(targets)
    assert sizes is not None
    if types is not None and types.read:
        sizes["node_types"] = types.count
    if task.kind == "classification":
        return Facts(sizes, _unit(1), counts, torch.bincount(y, minlength=len(task.classes)))
    scaler = _unit(y.shape[1])
    if splits.about.get("standardised"):
        scaler = Scaler(_exact(splits.about["mean"]), _exact(splits.about["std"]), done=True)
    elif standardise and task.level != "coordinates":
        deviation = y.double().std(0, correction=0)
        scaler = Scaler(y.double().mean(0), torch.where(deviation > 0, deviation, 1.0))
    return Facts(sizes, scaler, counts, torch.zeros(0, dtype=torch.long))


_PURPOSE = {"train": "train on", "validation": "choose by", "test": "measure on"}


def _unit(targets: int) -> Scaler:
    return Scaler(_exact([0] * targets), _exact([1] * targets))


def _exact(numbers: Sequence[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def check_answers(graph: Data, task: Task, where: str) -> None:
    """The answers have the shape and type that the task has, and are finite."""
    y = getattr(graph, "y", None)
    if not isinstance(y, Tensor):
        raise ValueError(f"y: {where} has none; give each graph its answer")
    rows = {"graph": 1, "edge": graph.num_edges}.get(task.level, graph.num_nodes)
    if task.kind == "classification":
        if y.is_floating_point() or y.shape != (rows,):
            raise ValueError(f"y: {where} has {y.dtype} {list(y.shape)}; give whole numbers")
        if y.numel() and not 0 <= int(y.min()) <= int(y.max()) < len(task.classes):
            raise ValueError(f"y: {where} has a class that is not one of 0 to {task.outputs - 1}")
    elif y.shape != (rows, task.outputs):
        raise ValueError(f"y: {where} has shape {list(y.shape)}; give [{rows}, {task.outputs}]")
    elif not y.isfinite().all():
        raise ValueError(f"y: {where} has a value that is not finite; leave that graph out")


def dropped(config: Config) -> list[str]:
    """The values that the section `data` takes away."""
    drop = config.data.get("drop") or []
    drop = [drop] if isinstance(drop, str) else drop
    if not isinstance(drop, list | tuple) or not all(isinstance(name, str) for name in drop):
        raise ValueError(f"data.drop: is {drop!r}; give names of values, such as [x]")
    return list(drop)


def check_drop(graph: Data, drop: Sequence[str]) -> None:
    """What is taken away can be spared, and is something that graphs have."""
    known = [n for n in (*graph.keys(), *READ) if n not in ("pos", "edge_index", "y", "name")]
    for name in drop:
        if name not in known:
            known = sorted(set(known))
            raise ValueError(not_among("data.drop", name, known, "a value that can be left out"))


def check_same(record: Mapping[str, Any], now: Mapping[str, Any], what_else: str) -> None:
    """The data are those of the record of a run; `what_else` is to be done if they are not."""
    for key in ("files", "graphs", "sha256"):
        before, after = (each.get("about", {}).get(key) for each in (record, now))
        if before is not None and after is not None and before != after:
            said = "a file has changed" if key == "sha256" else f"{after} {key}, not {before}"
            raise ValueError(
                f"data: are not those that the run was trained on ({said}); {what_else}"
            )
    for key in ("task", "counts", "sizes", "scale", "scaler", "class_counts"):
        if key in now and key in record and not _alike(record[key], now[key]):
            raise ValueError(
                f"data: are not those that the run was trained on ({key}: {now[key]}, not "
                f"{record[key]}); {what_else}"
            )


def _alike(one: Any, other: Any) -> bool:
    """Equal, numbers but for rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


class NodeTypes:
    """How a network without types of its own reads `z`, found in one pass over the graphs.

    The types are embedded if `model.node_types` asks for it, and else unless the node features have
    a column for each type anyway, as those of symgnn's readers do. There are 119 types, atomic
    numbers, if `model.node_types` does not say how many.
    """

    def __init__(self, config: Config) -> None:
        given = config.model.get("node_types")
        self.asked = given is not None
        self.count = count_of_types(ATOMS if given is None else given)
        self.columns = TypeColumns()
        self.there: bool | None = None  # whether graphs have types

    @staticmethod
    def of(config: Config) -> NodeTypes | None:
        """None for a network that has types of its own."""
        block = config.model["block"]
        peer = PEERS.get(str(block).lower())
        own = inspect.signature(peer).parameters if peer else ()
        options = {key: value for key, value in config.model.items() if key in own}
        return None if network_named(block, options).types else NodeTypes(config)

    def add(self, graph: Data, where: str, with_features: bool) -> None:
        """Check the types of a graph, and compare them with its features."""
        z, x = getattr(graph, "z", None), getattr(graph, "x", None) if with_features else None
        if self.there not in (None, z is not None):
            raise ValueError(
                f"z: {where} has {'none' if z is None else 'some'}, unlike those before; give "
                "every graph the types of its nodes, or leave them out with data.drop: [z]"
            )
        self.there = z is not None
        if z is None:
            return
        if not isinstance(z, Tensor) or z.is_floating_point() or z.shape != (graph.num_nodes,):
            shape = f"{z.dtype} {list(z.shape)}" if isinstance(z, Tensor) else type(z).__name__
            raise ValueError(
                f"z: {where} has {shape}; give a whole number for each node, or leave it out with "
                "data.drop: [z]"
            )
        if z.numel() and not 0 <= int(z.min()) <= int(z.max()) < self.count:
            bad = int(z.min()) if int(z.min()) < 0 else int(z.max())
            raise ValueError(
                f"z: {where} holds {bad}; model.node_types is {self.count}, for types 0 to "
                f"{self.count - 1}; give more, or leave them out with data.drop: [z]"
            )
        if x is not None and not self.asked:
            self.columns.add(z, x)

    @property
    def read(self) -> bool:
        """Whether the network has to embed the types."""
        return bool(self.there) and (self.asked or not self.columns.complete)


def make_model(config: Config, task: Task, sizes: Mapping[str, Any]) -> Model:
    """The model of a config, for graphs of these sizes."""
    model = dict(config.model)
    try:
        with in_section("model", [*BUILD_OPTIONS, *model], architecture="block"):
            known = {**sizes, **model}  # types of nodes may be said in both
            built = build(known.pop("block"), task=task.level, outputs=task.outputs, **known)
    except ValueError as error:
        text = str(error)
        for name, option in WIDTHS.items():
            if text.startswith(f"model.{option}:"):  # of the data, not of the section
                text = text.replace("leave it out", f"leave it out with data.drop: [{name}]")
        raise ValueError(text) from None
    return built.double() if config.train.precision == "64" else built
