"""Facts about the data that training needs, and the model that fits them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data._task import Splits, Task
from symgnn.nn import Averages, Model, averages, build
from symgnn.nn.build import BUILD_OPTIONS
from symgnn.train._config import AVERAGES, Config, Training
from symgnn.train._config_errors import in_section
from symgnn.train._data_checks import check_answers, check_drop, dropped
from symgnn.train._known_elements import check_known
from symgnn.train._metrics import Judge, Scaler, balanced, is_present
from symgnn.train._missing import Tally, may_miss
from symgnn.train._potential_rows import (
    label_weights,
    potential_facts,
    potential_of,
    potential_scaler,
)
from symgnn.train._types_in_data import NodeTypes

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
    types: list[int] | None = None  # of the nodes of the training graphs; None without any

    @property
    def told(self) -> dict[str, Any]:
        """The options of `build` that follow from the data."""
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
            types=plain.get("types"),
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
    seen: set[int] = set()
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
                seen |= _types_of(graph, drop)
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
        facts = Facts(sizes, _unit(1), counts, found_classes, None, labels, answers=answers)
        return replace(facts, types=sorted(seen) or None)
    scaler, potential = _unit(y.shape[1]), None
    if energies:
        train = [splits.train[k] for k in range(len(splits.train))]
        potential = potential_facts(train, references)
        for name, graphs in (("validation", splits.validation), ("test", splits.test)):
            others = {int(z) for k in range(len(graphs)) for z in graphs[k].z.unique()}
            fix = "; divide the graphs by another data.seed, or leave these out"
            check_known(f"data: {name} graphs", others, potential["elements"], fix)
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
    return replace(facts, potential=potential, types=sorted(seen) or None)


def _types_of(graph: Data, drop: Sequence[str]) -> set[int]:
    """The types of the nodes of a graph, if it has any that are read."""
    z = None if "z" in drop else getattr(graph, "z", None)
    if not isinstance(z, Tensor) or z.is_floating_point():
        return set()
    return set(z.unique().tolist())


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
                text = f"{text.partition(';')[0]}; ignore {name} with data.drop: [{name}]"
        raise ValueError(text) from None
    built = built.double() if config.train.precision == "64" else built
    return potential_of(built, task, potential) if energies else built
