"""What a dataset is to those who train on it: graphs in three splits, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torch_geometric.data import Data

from symgnn.data.rescaling import carrying, common_scale

Level = Literal["graph", "node", "edge", "coordinates"]
Kind = Literal["regression", "classification"]


@dataclass(frozen=True)
class Task:
    """What is asked of each graph, answered by `data.y`.

    ============  ==================  =======================
    level         `y` of regression   `y` of classification
    ============  ==================  =======================
    graph         `[1, targets]`      `[1]` integers
    node          `[N, targets]`      `[N]` integers
    edge          `[E, targets]`      `[E]` integers
    coordinates   `[N, n]`            -
    ============  ==================  =======================
    """

    level: Level
    kind: Kind
    targets: tuple[str, ...]  # a name for each number that is asked for; one for a class
    units: tuple[str, ...] = ()  # of each target, "" where it has none
    classes: tuple[str, ...] = ()  # the names of the classes

    def __post_init__(self) -> None:
        for name, choices in (("level", get_args(Level)), ("kind", get_args(Kind))):
            given = getattr(self, name)
            if given not in choices:
                raise ValueError(
                    f"{name}: {given!r} is not known; choose from {', '.join(choices)}"
                )
        if self.kind == "classification" and (self.level == "coordinates" or len(self.classes) < 2):
            raise ValueError("classes: a classification has at least 2, and is not of coordinates")
        if not self.units:
            object.__setattr__(self, "units", ("",) * len(self.targets))
        elif len(self.units) != len(self.targets):
            raise ValueError(f"units: there are {len(self.units)} for {len(self.targets)} targets")

    @property
    def outputs(self) -> int:
        """How many numbers a model gives for each graph, node or edge."""
        return len(self.classes) if self.kind == "classification" else len(self.targets)


@dataclass(frozen=True)
class Splits:
    """Graphs to train on, to choose by, and to measure on, each with `pos` and `y`."""

    train: Sequence[Data]
    validation: Sequence[Data]
    test: Sequence[Data]
    task: Task
    # `pos` (and `vel`) of the source times this: edges are then about 1 long. Each graph carries it
    # as `pos_scale`; if left out, it is the scale that the graphs carry, 1 if they carry none.
    scale: float = None  # type: ignore[assignment]
    about: dict[str, Any] = field(default_factory=dict)  # source, checksums, seed, units of pos

    def __post_init__(self) -> None:
        names = ("train", "validation", "test")
        if self.scale is None:
            scale = common_scale([getattr(self, name) for name in names])
            object.__setattr__(self, "scale", scale)
        for name in names:
            object.__setattr__(self, name, carrying(getattr(self, name), self.scale, name))
