"""Facts about the data that training needs, and the model that fits them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn._argument_checks import unknown_name
from symgnn.data._task import Splits, Task
from symgnn.nn import Averages, Model, averages, build
from symgnn.nn.build import BUILD_OPTIONS, count_of_types, network_named
from symgnn.nn.node_types import ATOMS, TypeColumns
from symgnn.nn.peers import PEERS
from symgnn.train._config import AVERAGES, Config, Training
from symgnn.train._config_errors import in_section
from symgnn.train._loader import READ
from symgnn.train._metrics import Judge, Scaler, balanced, is_present
from symgnn.train._missing import Tally, may_miss
from symgnn.train._potential_rows import (
    label_weights,
    potential_facts,
    potential_of,
    potential_scaler,
)

#: The values of a graph that a model can read, and what their width is called in `build`.
WIDTHS = {
    "x": "node_features",
    "edge_attr": "edge_features",
    "angle_attr": "angle_features",
    "u": "graph_features",
}


def sizes_of(graph: Data, drop: Sequence[str] = ()) -> dict[str, int]:
    """The options of `build` that follow from a graph: dimension and widths of values."""
    sizes = {"dimension": graph.pos.shape[1]}
    for name, option in WIDTHS.items():
        value = None if name in drop else getattr(graph, name, None)
        if value is not None and not (isinstance(value, Tensor) and value.dim() == 2):
            shape = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            rows = "1" if name == "u" else "rows"
            raise ValueError(f"{name}: is {shape} of a graph; give a tensor [{rows}, features]")
        sizes[option] = 0 if value is None else int(value.shape[-1])
    return sizes


class Answers(NamedTuple):
    """Of all training graphs, one below the other."""

    y: Tensor
    pos: Tensor | None  # of a task of coordinates


@dataclass(frozen=True)
class Facts:
    """Facts about the data that training needs, found in one pass over them."""

    sizes: dict[str, int]
    scaler: Scaler
    counts: dict[str, int]  # graphs of each split
    class_counts: Tensor  # [classes], rows of the training graphs
    center: Tensor | None = None  # [targets], mean of the training labels as a model gives them
    labels: dict[str, Any] | None = None  # how many are there, where some may be missing
    averages: Averages | None = None  # of the training graphs, for a network that reads them
    answers: Answers | None = field(default=None, repr=False, compare=False)  # of the training
    potential: dict[str, Any] | None = None  # references, elements and sizes, of a potential

    @property
    def told(self) -> dict[str, Any]:
        """What `build` is told by the data."""
        told = {**self.sizes, "averages": self.averages}
        return told if self.potential is None else {**told, "potential": self.potential}

    def judge(self, task: Task, scale: float, train: Training) -> Judge:
        """The judge of outputs for these data."""
        weights = balanced(self.class_counts) if train.class_weights == "balanced" else None
        columns = None
        if self.potential is not None:
            columns = label_weights(task, train.target_weights, self.potential["atoms"])
        return Judge(task, self.scaler, scale, train.loss, weights, self.center, columns)

    def as_dict(self) -> dict[str, Any]:
        """In plain numbers."""
        plain = asdict(replace(self, answers=None, averages=None))
        del plain["answers"]
        plain["averages"] = None if self.averages is None else self.averages.as_dict()
        plain["center"] = None if self.center is None else self.center.tolist()
        for name in ("mean", "deviation"):
            plain["scaler"][name] = plain["scaler"][name].tolist()
        plain["class_counts"] = self.class_counts.tolist()
        return plain

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Facts:
        """The facts of a dictionary of :meth:`as_dict`; further keys are ignored."""
        scaler, counts = plain["scaler"], torch.tensor(plain["class_counts"], dtype=torch.long)
        found = Scaler(_exact(scaler["mean"]), _exact(scaler["deviation"]), scaler["done"])
        center = plain.get("center")
        center = None if center is None else _exact(center)
        return Facts(
            plain["sizes"],
            found,
            plain["counts"],
            counts,
            center,
            plain.get("labels"),
            None if plain.get("averages") is None else Averages.of(plain["averages"]),
            potential=plain.get("potential"),
        )


def averaged(facts: Facts, config: Config, splits: Splits) -> Facts:
    """With the averages of the training graphs, if the section `model` asks for them."""
    asked = config.model.get("averages")
    kinds = AVERAGES.get(asked, ()) if isinstance(asked, str) else ()
    if not kinds:
        return facts
    network = make_model(config, splits.task, facts.sizes).network
    network = network.network if isinstance(network, Model) else network
    found = averages(splits.train, network, drop=dropped(config))
    for kind in ("terms", "measures", "features"):
        if kind not in kinds:
            found = replace(found, **{kind: {}})
    return replace(facts, averages=found)


def measure(
    splits: Splits,
    drop: Sequence[str] = (),
    standardise: bool = True,
    types: NodeTypes | None = None,
    references: Mapping[str, float] | None = None,
) -> Facts:
    """Check every graph against the task and the first one; find the targets' mean and spread.

    Args:
        splits: The graphs and their task.
        drop: Values that are left out.
        standardise: Whether the targets are brought to mean 0 and deviation 1.
        types: How the types of nodes are read; None where the network does so by itself.
        references: Of a potential: energies of elements; fitted if None.
    """
    task, masked = splits.task, may_miss(splits.about)
    energies = task.level == "potential"
    counts, sizes = {}, None
    types = None if "z" in drop else types
    targets, places = [], []
    tally = Tally(task)
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
            check_answers(graph, task, where, masked)
            if masked:
                tally.add(name, graph.y)
            if name == "train":
                targets.append(graph.y)
                if task.level == "coordinates":
                    places.append(graph.pos)
    answers = Answers(torch.cat(targets), torch.cat(places) if places else None)
    labels = tally.checked() if masked else None
    y = answers.y
    assert sizes is not None
    components = len(task.targets) // max(len(task.vectors), 1)
    if task.vectors and components != sizes["dimension"]:
        raise ValueError(
            f"targets: {', '.join(task.targets)} are {components} components for each vector, but "
            f"graphs have {sizes['dimension']} coordinates; name one component for each"
        )
    if types is not None and types.read:
        sizes["node_types"] = types.count
    if task.kind == "classification":
        found_classes = torch.bincount(y[is_present(y)], minlength=len(task.classes))
        return Facts(sizes, _unit(1), counts, found_classes, None, labels, answers=answers)
    scaler, potential = _unit(y.shape[1]), None
    if energies:
        train = [splits.train[k] for k in range(len(splits.train))]
        potential = potential_facts(train, references)
        scaler = potential_scaler(train, task, potential, standardise)
        sizes_of_targets = scaler.deviation.tolist()
        potential["deviation"] = sizes_of_targets
        # between an energy and a force over 1 A: networks begin near the size of both
        potential["scale"] = math.prod(sizes_of_targets[:2]) ** (1 / len(sizes_of_targets[:2]))
    elif splits.about.get("standardised"):
        scaler = Scaler(_exact(splits.about["mean"]), _exact(splits.about["std"]), done=True)
    elif standardise and task.vectors:
        scaler = _scaler_of_vectors(y.double(), len(task.vectors))
    elif standardise and task.level != "coordinates":
        mean = y.double().nanmean(0)
        deviation = (y.double() - mean).square().nanmean(0).sqrt()
        scaler = Scaler(mean, torch.where(deviation > 0, deviation, 1.0))
    center = scaler(y).double().nanmean(0)
    classes = torch.zeros(0, dtype=torch.long)
    facts = Facts(sizes, scaler, counts, classes, center, labels, answers=answers)
    return replace(facts, potential=potential)


_PURPOSE = {"train": "train on", "validation": "choose by", "test": "measure on"}


def _unit(targets: int) -> Scaler:
    return Scaler(_exact([0] * targets), _exact([1] * targets))


def _scaler_of_vectors(y: Tensor, count: int) -> Scaler:
    """Vectors `[rows, count * n]` divided by the root mean square of their components.

    There is no mean to subtract, and no component has a scale of its own: either would not turn
    with the vectors.
    """
    mean_square = y.unflatten(-1, (count, -1)).square().nanmean((0, 2))
    size = torch.where(mean_square > 0, mean_square, 1.0).sqrt()
    return Scaler(torch.zeros(y.shape[1]).double(), size.repeat_interleave(y.shape[1] // count))


def _exact(numbers: Sequence[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def check_answers(graph: Data, task: Task, where: str, masked: bool = False) -> None:
    """The answers have the shape and type that the task has, and are finite.

    Where they are `masked`, some may be missing: NaN, or the class -1.
    """
    y = getattr(graph, "y", None)
    if not isinstance(y, Tensor):
        raise ValueError(f"y: {where} has none; give each graph its answer")
    rows = {"graph": 1, "edge": graph.num_edges, "node": graph.num_nodes}[task.place]
    hint = "leave that graph out, or train without such labels by data.missing: mask"
    if task.kind == "classification":
        if y.is_floating_point() or y.shape != (rows,):
            raise ValueError(f"y: {where} has {y.dtype} {list(y.shape)}; give whole numbers")
        if y.numel() and not -1 <= int(y.min()) <= int(y.max()) < len(task.classes):
            raise ValueError(f"y: {where} has a class that is not one of 0 to {task.outputs - 1}")
        if not masked and bool((y < 0).any()):
            raise ValueError(f"y: {where} has the class -1, which is a missing label; {hint}")
    elif y.shape != (rows, len(task.targets)):
        width = len(task.targets)
        raise ValueError(f"y: {where} has shape {list(y.shape)}; give [{rows}, {width}]")
    elif not masked and bool(_missing(y, task).any()):
        raise ValueError(f"y: {where} has a missing label (NaN); {hint}")
    elif bool(y.isinf().any()):
        raise ValueError(f"y: {where} has a value that is not finite; leave that graph out")


def _missing(y: Tensor, task: Task) -> Tensor:
    """Which labels are missing; energy and stress of a potential stand in the first row alone."""
    found = y.isnan()
    if task.level == "potential" and len(y):
        whole = ["force" not in name for name in task.targets]
        found = torch.cat([found[:1], found[1:] & ~torch.tensor(whole)])
    return found


def dropped(config: Config) -> list[str]:
    """The values that the section `data` takes away."""
    drop = config.data.get("drop") or []
    drop = [drop] if isinstance(drop, str) else drop
    if not isinstance(drop, list | tuple) or not all(isinstance(name, str) for name in drop):
        raise ValueError(f"data.drop: is {drop!r}; give names of values, such as [x]")
    return list(drop)


def check_drop(graph: Data, drop: Sequence[str]) -> None:
    """Check `data.drop`: graphs have these values, and can be trained on without them."""
    known = [n for n in (*graph.keys(), *READ) if n not in ("pos", "edge_index", "y", "name")]
    for name in drop:
        if name not in known:
            known = sorted(set(known))
            raise ValueError(unknown_name("data.drop", name, known, "a value that can be left out"))


def check_same(record: Mapping[str, Any], now: Mapping[str, Any], what_else: str) -> None:
    """The data are those of the record of a run; `what_else` is to be done if they are not."""
    for key in ("files", "graphs", "sha256"):
        before, after = (each.get("about", {}).get(key) for each in (record, now))
        if before is not None and after is not None and before != after:
            said = "a file has changed" if key == "sha256" else f"{after} {key}, not {before}"
            raise ValueError(
                f"data: are not those that the run was trained on ({said}); {what_else}"
            )
    if "task" in record:  # perhaps in an older form
        record = {**record, "task": asdict(Task.of(record["task"]))}
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


def make_model(config: Config, task: Task, told: Mapping[str, Any]) -> Any:
    """The model of a config, for graphs of these sizes and averages (:attr:`Facts.told`); of a
    potential, :class:`PotentialRows`.
    """
    model, energies = dict(config.model), task.level == "potential"
    potential = told.get("potential")
    told = {name: value for name, value in told.items() if name != "potential"}
    if isinstance(model.get("averages"), str):  # one of AVERAGES
        asked = model.pop("averages") != "none"
        told = told if asked else {**told, "averages": None}
    try:
        with in_section("model", [*BUILD_OPTIONS, *model], architecture="block"):
            known = {**told, **model}  # types of nodes may be said in both
            level = "node" if energies else task.level
            built = build(known.pop("block"), task=level, outputs=task.outputs, **known)
    except ValueError as error:
        text = str(error)
        for name, option in WIDTHS.items():
            if text.startswith(f"model.{option}:"):  # of the data, not of the section
                text = f"{text.partition(';')[0]}; leave {name} out with data.drop: [{name}]"
        raise ValueError(text) from None
    built = built.double() if config.train.precision == "64" else built
    return potential_of(built, task, potential) if energies else built
