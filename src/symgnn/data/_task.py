"""A dataset for training: graphs in three splits, and their task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torch_geometric.data import Data

from symgnn.data._rescaling import carrying, common_scale

Level = Literal[
    "graph", "node", "edge", "coordinates", "node-vectors", "graph-vectors", "potential"
]
Kind = Literal["regression", "classification"]
#: Where the vectors of a level live.
VECTOR_LEVELS = {"node-vectors": "node", "graph-vectors": "graph"}


@dataclass(frozen=True)
class Task:
    """The quantity that is predicted for each graph; `data.y` is its label.

    =============  ==================  =======================
    level          `y` of regression   `y` of classification
    =============  ==================  =======================
    graph          `[1, targets]`      `[1]` integers
    node           `[N, targets]`      `[N]` integers
    edge           `[E, targets]`      `[E]` integers
    coordinates    `[N, n]`            -
    node-vectors   `[N, vectors * n]`  -
    graph-vectors  `[1, vectors * n]`  -
    potential      `[N, targets]`      -
    =============  ==================  =======================

    Vectors rotate with the coordinates and are invariant to translations; several vectors of a row
    are concatenated. For a potential, the columns are the energy per atom, the forces and the
    stress; energy and stress are in the first row of each graph, and NaN in the other rows.

    Example:
        >>> task = symgnn.data.load("polytopes-3d", copies=1).task
        >>> task.level, task.kind, task.outputs
        ('graph', 'classification', 5)
    """

    level: Level
    kind: Kind
    targets: tuple[str, ...]  # a name for each number that is asked for; one for a class
    units: tuple[str, ...] = ()  # of each target, "" where it has none
    classes: tuple[str, ...] = ()  # the names of the classes
    vectors: tuple[str, ...] = ()  # a name for each vector; targets are their components
    lengths: bool = False  # whether `y` is multiplied by the scale of the coordinates

    def __post_init__(self) -> None:
        for name, choices in (("level", get_args(Level)), ("kind", get_args(Kind))):
            given = getattr(self, name)
            if given not in choices:
                raise ValueError(
                    f"{name}: {given!r} is not known; choose from {', '.join(choices)}"
                )
        turns = self.level == "coordinates" or self.level in VECTOR_LEVELS
        if self.kind == "classification" and (turns or len(self.classes) < 2):
            raise ValueError(
                "classes: a classification needs at least 2 classes, and the level graph, node or "
                "edge"
            )
        if not self.units:
            object.__setattr__(self, "units", ("",) * len(self.targets))
        elif len(self.units) != len(self.targets):
            raise ValueError(f"units: there are {len(self.units)} for {len(self.targets)} targets")
        if self.level == "coordinates":
            object.__setattr__(self, "lengths", True)
        elif self.level not in VECTOR_LEVELS and (self.vectors or self.lengths):
            name = "vectors" if self.vectors else "lengths"
            raise ValueError(f"{name}: level {self.level!r} has no vectors; remove {name}")
        elif self.level in VECTOR_LEVELS and not self.vectors:
            object.__setattr__(self, "vectors", ("vector",))
        if self.vectors and len(self.targets) % len(self.vectors):
            raise ValueError(
                f"vectors: {len(self.targets)} targets are not the components of "
                f"{len(self.vectors)} vectors; name each component of each vector"
            )

    @staticmethod
    def of(plain: Mapping[str, Any]) -> Task:
        """The task of a dictionary from `dataclasses.asdict`; older forms are accepted."""
        lists = ("targets", "units", "classes", "vectors")
        fields: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in plain.items()}
        return Task(**fields)

    @property
    def place(self) -> str:
        """The domain of the rows of `y`: "graph", "node" or "edge"."""
        if self.level in ("coordinates", "potential"):
            return "node"
        return VECTOR_LEVELS.get(self.level, self.level)

    @property
    def outputs(self) -> int:
        """The option `outputs` of `build`: the number of classes, targets or vectors."""
        if self.kind == "classification":
            return len(self.classes)
        return 1 if self.level == "potential" else len(self.vectors) or len(self.targets)


@dataclass(frozen=True)
class Splits:
    """Training, validation and test graphs, each with `pos` and `y`.

    Example:
        >>> splits = symgnn.data.load("polytopes-3d", copies=1)
        >>> len(splits.train), len(splits.validation), len(splits.test)
        (5, 5, 5)
    """

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
