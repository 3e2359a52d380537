"""Structures as files have them, before they become graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

#: Coordinates whose squares are finite in float32, also when they are summed.
LARGEST = 1e18
#: The kinds of edges of a file.
Joined = Literal["bonds", "mesh", "given"]


class Rows(NamedTuple):
    """Of a table: which of its rows nodes or edges are."""

    path: Path
    numbers: Sequence[int]


@dataclass
class FileStructure:
    """A structure of a file: N nodes with coordinates, edges, features and other values."""

    name: str
    where: str  # what messages call it: its file, and its place in it
    pos: np.ndarray  # [N, n]
    z: np.ndarray | None = None  # atomic numbers [N]
    x: np.ndarray | None = None  # [N, F]
    edges: np.ndarray | None = None  # [2, E]
    joined: Joined | None = None  # what `edges` are
    edge_attr: np.ndarray | None = None  # [E, F]
    face: np.ndarray | None = None  # [3, F]
    aliases: tuple[str, ...] = ()  # other names that a table may give it
    # values by name: of the graph [w], of nodes [N] or [N, w], of edges [E] or [E, w]
    values: dict[str, dict[str, np.ndarray]] = field(
        default_factory=lambda: {"graph": {}, "node": {}, "edge": {}}
    )
    rows: dict[str, Rows] = field(default_factory=dict)  # where nodes and edges are from
    features: dict[str, list[str]] = field(default_factory=dict)  # values meant to be features
    value_units: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)  # other attributes of a PyG graph
    pos_scale: float = 1.0  # by what the lengths of a graph in memory were multiplied, now undone
    metadata: dict[str, str | None] = field(default_factory=dict)  # of the table of targets
    smiles: str = ""  # of a molecule
    unused: str = ""  # why results of a calculator are not among the values

    @property
    def is_periodic(self) -> bool:
        """Whether it has a cell that repeats."""
        return "cell" in self.extra and bool(np.any(self.extra.get("pbc", True)))

    @property
    def called(self) -> str:
        """Its name, and where it is a molecule its SMILES."""
        smiles = self.extra.get("smiles")
        return self.name if smiles in (None, self.name) else f"{self.name}, {smiles}"

    def place(self, level: str, index: int, name: str) -> str:
        """The name of a value of the graph, a node or an edge in a message."""
        if level in self.rows:
            path, numbers = self.rows[level]
            called = f" ({self.called})" if level == "graph" else ""
            return f"{path}, row {numbers[index]}, column {name!r}{called}"
        where = self.where if level == "graph" else f"{self.where}, {level} {index}"
        return f"{where}, {name!r}"


def check_sizes(structure: FileStructure) -> None:
    """Coordinates are not too large, there are as many features as nodes and edges, and faces are
    of nodes that there are.
    """
    nodes = len(structure.pos)
    largest = float(np.abs(structure.pos).max(initial=0.0))
    if largest > LARGEST:
        raise ValueError(
            f"pos: is up to {largest:.3g}, whose square float32 cannot hold; correct it, or give "
            "coordinates in a larger unit"
        )
    edges = None if structure.edges is None else structure.edges.shape[-1]
    for name, array, rows in (
        ("z", structure.z, nodes),
        ("x", structure.x, nodes),
        ("edge_attr", structure.edge_attr, edges),
    ):
        if array is not None and len(array) != rows:
            what = "edges" if name == "edge_attr" else "nodes"
            raise ValueError(f"{name}: has {len(array)} rows for {rows} {what}; give one each")
    for name, array in (("x", structure.x), ("edge_attr", structure.edge_attr)):
        if array is not None and array.dtype.kind not in "fiub":
            raise ValueError(f"{name}: is {array.dtype}; features are numbers")
    if structure.z is not None and structure.z.dtype.kind not in "iu":
        raise ValueError(f"z: is {structure.z.dtype}; atomic numbers are whole numbers")
    if structure.z is not None and structure.x is None and structure.z.min(initial=1) < 1:
        raise ValueError(f"z: holds {structure.z.min()}, which is not an atomic number")
    if structure.z is not None and structure.x is None and structure.z.max(initial=1) > 118:
        raise ValueError(f"z: holds {structure.z.max()}, which is not an atomic number")
    face = structure.face
    if face is not None and not (face.ndim == 2 and len(face) == 3):
        raise ValueError(f"face: has shape {list(face.shape)}; it must be [3, F]")
    if face is not None and face.size and not 0 <= face.min() <= face.max() < nodes:
        raise ValueError(f"face: names vertex {face.max()}, but there are 0 to {nodes - 1}")


class Piece(NamedTuple):
    """A part of a file that is read at once."""

    path: Path
    place: str  # within the file, such as "frame 3"; "" for the whole
    content: Any  # what its reader needs
    size: int  # in bytes, for the bar

    @property
    def where(self) -> str:
        return f"{self.path}, {self.place}" if self.place else str(self.path)


@dataclass(frozen=True)
class How:
    """The options that readers need."""

    id: str = "name"
    positions: tuple[str, ...] = ()
    conformers: bool | None = None
    directed: bool = False
    cell: str = "keep"
    seed: int = 0


class Reader(NamedTuple):
    """A kind of file: how it falls into pieces, and how a piece is read."""

    pieces: Callable[[Path, How], Iterable[Piece]]
    parse: Callable[[Piece, How], list[FileStructure]]
    package: str = ""  # what has to be installed
    extra: str = ""  # the extra of symgnn that installs it


def whole(path: Path, how: How) -> list[Piece]:
    """A file in one piece."""
    return [Piece(path, "", None, path.stat().st_size)]


def require(package: str, extra: str, purpose: object) -> None:
    """An optional package is installed."""
    if package and find_spec(package) is None:
        raise ValueError(f"{purpose}: needs {package}; install it with pip install symgnn[{extra}]")
