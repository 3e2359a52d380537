"""CSV files with a row per node, and perhaps one with a row per edge beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from symgnn.data.files._csv_table import CsvTable, as_numbers, read_table
from symgnn.data.files._file_structure import FileStructure, How, Piece, Rows

#: Columns of coordinates, as far as a file has them.
POSITIONS = ("x", "y", "z")
GRAPH, NODE, SOURCE, TARGET = "graph", "node", "source", "target"


def parse(piece: Piece, how: How) -> list[FileStructure]:
    """The graphs of a file of nodes: all of it, or by its column `graph`."""
    table = read_table(piece.path)
    names = list(how.positions) or [name for name in POSITIONS if name in table.columns]
    pos = np.stack([numbers(table, name, "positions") for name in names], axis=1)
    others = [name for name in table.columns if name not in (*names, GRAPH, NODE)]
    values = {name: table.values(name) for name in others}
    groups = groups_of(table)
    ids = table.text(NODE) if NODE in table.columns else None
    beside = edges_beside(piece.path)
    edges = None if beside is None else Edges(beside, piece.path, groups)
    found = []
    for name, rows in groups.items():
        structure = FileStructure(
            name or own_name(piece.path),
            f"{piece.path}, graph {name!r}" if name else str(piece.path),
            pos[rows],
            aliases=() if name else (piece.path.stem, piece.path.name),
            values={"graph": {}, "node": {k: v[rows] for k, v in values.items()}, "edge": {}},
            rows={"node": Rows(piece.path, [table.rows[row] for row in rows])},
            features={"node": others},
            value_units=dict(table.units),
            extra={} if ids is None else {"node_id": [ids[row] for row in rows]},
        )
        if edges is not None:
            named = [ids[row] for row in rows] if ids else [str(i) for i in range(len(rows))]
            edges.join(structure, name, named, how.directed)
        found.append(structure)
    if not found:
        raise ValueError("has a header but no rows")
    return found


def numbers(table: CsvTable, column: str, option: str = "columns") -> np.ndarray:
    """A column of a table that has to be of numbers."""
    return as_numbers(table.text(column, option), lambda index: table.where(index, column))


def groups_of(table: CsvTable) -> dict[str, list[int]]:
    """The rows of each graph, in order; all rows are those of "" if there is no such column."""
    if GRAPH not in table.columns:
        return {"": list(range(len(table.cells)))} if table.cells else {}
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(table.text(GRAPH)):
        if not name:
            raise ValueError(f"{table.where(row, GRAPH)}: is empty; name the graph")
        groups.setdefault(name, []).append(row)
    return groups


def own_name(path: Path) -> str:
    """Of the only graph of a file: a.csv and a.nodes.csv have a, nodes.csv that of its folder."""
    stem = path.stem.removesuffix(".nodes")
    return path.resolve().parent.name if stem == "nodes" else stem


def edges_beside(path: Path) -> Path | None:
    """The file of edges that belongs to nodes.csv or a.nodes.csv."""
    beside = path.with_name(path.name.replace("nodes", "edges"))
    return beside if beside != path and beside.exists() else None


class Edges:
    """The file of edges of a file of nodes."""

    def __init__(self, path: Path, nodes: Path, graphs: dict[str, list[int]]) -> None:
        self.table = read_table(path)
        self.groups = groups_of(self.table)
        if ("" in self.groups) != ("" in graphs) and self.groups:
            raise ValueError(f"{path}: has to have a column 'graph' if {nodes.name} has one")
        for name, rows in self.groups.items():
            if name not in graphs:
                where = self.table.where(rows[0], GRAPH)
                raise ValueError(f"{where}: no node of {nodes.name} is in a graph {name!r}")
        ends = (SOURCE, TARGET)
        self.ends = [self.table.text(end) for end in ends]
        others = [name for name in self.table.columns if name not in (*ends, GRAPH)]
        self.values = {name: self.table.values(name) for name in others}

    def join(
        self, structure: FileStructure, graph: str, nodes: Sequence[str], directed: bool
    ) -> None:
        """Give the structure its edges; `nodes` are what they call its nodes."""
        number: dict[str, int] = {}
        for index, node in enumerate(nodes):
            if number.setdefault(node, index) != index:
                where = structure.place("node", index, NODE)
                raise ValueError(f"{where}: {node!r} occurs twice; rename or delete one of them")
        rows = self.groups.get(graph, [])
        pairs: dict[tuple[int, int], int] = {}
        for row in rows:
            pair = self._end(0, row, number), self._end(1, row, number)
            if pair in pairs:
                raise ValueError(
                    f"{self.table.where(row)}: is the same edge as row "
                    f"{self.table.rows[pairs[pair]]}; delete one of them"
                )
            pairs[pair] = row
        if not directed:
            pairs |= {(b, a): row for (a, b), row in pairs.items() if (b, a) not in pairs}
        order = list(pairs.values())
        structure.edges = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        structure.joined = "given"
        structure.values["edge"] = {name: value[order] for name, value in self.values.items()}
        numbers = [self.table.rows[row] for row in order]
        structure.rows["edge"] = Rows(self.table.path, numbers)
        structure.features["edge"] = list(self.values)
        structure.value_units |= self.table.units

    def _end(self, end: int, row: int, number: dict[str, int]) -> int:
        node = self.ends[end][row]
        if node not in number:
            where = self.table.where(row, (SOURCE, TARGET)[end])
            raise ValueError(f"{where}: there is no node {node!r}; there are {_some(number)}")
        return number[node]


def _some(names: dict[str, int]) -> str:
    listed = list(names)
    return ", ".join(listed) if len(listed) < 6 else f"{', '.join(listed[:3])}, ..., {listed[-1]}"
