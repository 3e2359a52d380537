"""The section `data` of a run: which graphs there are, and what is asked of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch_geometric.data import Data

import symgnn.data
from symgnn.data import NBody, Polytopes
from symgnn.data.task import Splits, Task

#: Keys of the section that every dataset takes; `drop` names values that no model shall read.
COMMON = ("name", "drop")


def load(options: Mapping[str, Any]) -> Splits:
    """The graphs of the section `data`: of a dataset by its `name`, or of the files at `path`."""
    given = {key: value for key, value in options.items() if key not in COMMON}
    name = options.get("name")
    if name in DATASETS:
        return DATASETS[name](**given)
    if name is None:
        return _of_data("files.load")(**given)
    return _of_data("load")(name, **given)


def read(files: Sequence[str | os.PathLike[str]], about: Mapping[str, Any]) -> list[Data]:
    """Graphs from files, in the form of those that `about` tells of: scaled, without answers."""
    if "read" not in about:
        raise ValueError("files: the run was not trained on files; give --split instead")
    return list(_of_data("read")([str(file) for file in files], **about["read"]))


def _of_data(name: str) -> Callable[..., Any]:
    """A function of `symgnn.data`, where this version has it."""
    try:
        return attrgetter(name)(symgnn.data)
    except AttributeError:
        known = ", ".join(DATASETS)
        raise ValueError(f"data: this version reads no others than data.name: {known}") from None


def nbody(
    *,
    train: int = 3000,
    validation: int = 2000,
    test: int = 2000,
    seed: int = 43,
    particles: int = 5,
    dimension: int = 3,
    root: str | None = None,
    distances: bool = False,
) -> Splits:
    """Charged particles, and where they are one unit of time later.

    With `distances`, edges also have the squared distance of their ends, as EGNN's own code
    gives it.
    """
    make = partial(
        NBody,
        root=root,
        train=train,
        validation=validation,
        test=test,
        seed=seed,
        particles=particles,
        dimension=dimension,
        transform=_with_distance if distances else None,
    )
    names = tuple("xyz"[:dimension]) if dimension <= 3 else tuple(map(str, range(dimension)))
    task = Task("coordinates", "regression", names)
    about = {"source": "simulated", "seed": seed}
    return Splits(make("train"), make("validation"), make("test"), task, about=about)


def _with_distance(data: Data) -> Data:
    source, target = data.edge_index
    distance = (data.pos[source] - data.pos[target]).square().sum(1, keepdim=True)
    data.edge_attr = torch.cat([data.edge_attr, distance], 1)
    return data


def polytopes(
    *,
    dimension: int = 3,
    transformation: str = "orthogonal",
    copies: int = 20,
    seed: int = 0,
    node_features: bool = False,
) -> Splits:
    """The regular polytopes: one graph per class to train on, and transformed copies to name."""
    make = partial(Polytopes, dimension, node_features=node_features)
    train = make()
    validation = make(transformation, copies, seed=seed)
    test = make(transformation, copies, seed=seed + 1)
    task = Task("graph", "classification", ("polytope",), classes=tuple(train.names))
    about = {"source": "made", "seed": seed}
    return Splits(train, validation, test, task, about=about)


DATASETS: dict[str, Callable[..., Splits]] = {"nbody": nbody, "polytopes": polytopes}
