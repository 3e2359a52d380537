"""Targets: from a table by name, or from what the structures bring themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from symgnn._argument_checks import unknown_name
from symgnn.data._task import VECTOR_LEVELS, Kind, Level, Task
from symgnn.data.files._csv_table import CsvTable, read_table
from symgnn.data.files._features import as_columns
from symgnn.data.files._file_structure import FileStructure
from symgnn.data.files._graph_list import Troubles
from symgnn.data.files._potential_targets import potential_targets
from symgnn.data.files._target_types import Cells, Found, classes_of, kind_of, label_of, numbers_of
from symgnn.data.files._vector_targets import Column, all_lengths, refuse_invariant, vectors_of

NODE = "node"
#: Where values may be, in the order in which they are looked for.
LEVELS = ("node", "edge", "graph")


@dataclass(frozen=True)
class Asked:
    """Which targets, and of what."""

    table: Path | None = None
    columns: tuple[str, ...] | None = None
    id: str = "name"
    level: str | None = None
    kind: str | None = None
    lengths: bool | None = None  # whether vectors are scaled as coordinates are
    invariant: bool = False  # whether what looks like vectors is none
    missing: str = "error"  # or "mask": labels may be missing
    metadata: tuple[str, ...] = ()  # columns that are no targets

    @property
    def place(self) -> str | None:
        """Where the values live: "graph", "node" or "edge"; None if that is not said."""
        if self.level == "coordinates":
            return NODE
        return self.level if self.level is None else VECTOR_LEVELS.get(self.level, self.level)

    def __post_init__(self) -> None:
        for name, given, known in (
            ("level", self.level, get_args(Level)),
            ("kind", self.kind, get_args(Kind)),
            ("missing", self.missing, ("error", "mask")),
        ):
            if given is not None and given not in known:
                raise ValueError(unknown_name(name, given, known, "known"))
        turns = self.level == "coordinates" or self.level in VECTOR_LEVELS
        if turns and self.kind == "classification":
            raise ValueError(f"kind: {self.level} cannot be classes; remove kind")
        if turns and self.invariant:
            raise ValueError(
                f"invariant: {self.level} are not invariant; remove invariant, or choose another "
                "level"
            )
        if self.lengths is not None and self.level not in VECTOR_LEVELS:
            raise ValueError(
                f"lengths: applies to {' and '.join(VECTOR_LEVELS)}, but level is {self.level!r}; "
                "remove lengths"
            )
        twice = [name for name in self.columns or () if (self.columns or ()).count(name) > 1]
        if twice:
            raise ValueError(f"columns: names {twice[0]!r} twice; name it once")


def attach(
    structures: Sequence[FileStructure], asked: Asked, troubles: Troubles
) -> tuple[list[np.ndarray | None], Task | None, str]:
    """`y` of each structure, None for those to leave out, and what it is; or why that is not clear.

    Numbers that look like vectors are refused at a level without vectors. If they are the `y` that
    graphs happen to have, and nothing was asked for, there is no task but the reason.
    """
    if asked.level == "potential":
        if asked.table is not None:
            raise ValueError("targets: energies and forces are read from the files themselves")
        return *potential_targets(structures, asked.columns, asked.missing, troubles), ""
    if asked.table is None:
        found = _own(structures, asked, troubles)
        if found is None:
            return [None] * len(structures), None, ""
    else:
        table = read_table(asked.table)
        found = _from_table(structures, table, asked, troubles)
    n = structures[0].pos.shape[1]
    if found.level in VECTOR_LEVELS:
        return *_vectors(found, asked, n, troubles), ""
    if not asked.invariant and asked.kind != "classification":
        chosen, nodes = asked.level is not None, len(structures[0].pos)
        try:
            refuse_invariant(found.columns, found.level, n, chosen=chosen, nodes=nodes)
        except ValueError as error:
            if asked.table is not None or asked.columns is not None or chosen:
                raise
            return _numbers(found, asked, troubles), None, str(error)
    kind = asked.kind or kind_of(found, given=asked.table is None and asked.columns is None)
    if kind == "classification":
        return *classes_of(found, troubles, asked.missing == "mask"), ""
    task = Task(found.level, "regression", tuple(found.names), tuple(found.units))  # type: ignore[arg-type]
    return _numbers(found, asked, troubles), task, ""


def _vectors(
    found: Found, asked: Asked, n: int, troubles: Troubles
) -> tuple[list[np.ndarray | None], Task]:
    """`y` of vectors `[rows, vectors * n]`, and their task."""
    vectors = vectors_of(found.columns, n)
    components = tuple(name for vector in vectors for name in vector.components)
    task = Task(
        found.level,  # type: ignore[arg-type]
        "regression",
        components,
        tuple(vector.unit for vector in vectors for _ in vector.components),
        vectors=tuple(vector.name for vector in vectors),
        lengths=all_lengths(vectors) if asked.lengths is None else asked.lengths,
    )
    return _numbers(found, asked, troubles), task


def _numbers(found: Found, asked: Asked, troubles: Troubles) -> list[np.ndarray | None]:
    masked = asked.missing == "mask"
    return [None if cells is None else numbers_of(cells, troubles, masked) for cells in found.cells]


# ---------------------------------------------------------------- from a table


def _from_table(
    structures: Sequence[FileStructure], table: CsvTable, asked: Asked, troubles: Troubles
) -> Found:
    ids = table.text(asked.id, "id")
    keys = [asked.id]
    level = asked.level or (NODE if NODE in table.columns else "graph")
    place = asked.place or level
    if level == "edge":
        raise ValueError("level: targets of edges come from the file of edges; remove targets")
    if place != "graph":
        keys.append(NODE)
    left = (*keys, *asked.metadata)
    names = list(asked.columns or [name for name in table.columns if name not in left])
    if not names:
        raise ValueError(f"{table.path}: has no columns besides {', '.join(keys)}")
    cells = np.array([table.text(name) for name in names], dtype=object).T
    cells = cells.reshape(len(ids), len(names))
    rows = _rows_of(structures, table, ids, asked.id, troubles)
    others = {name: table.text(name) for name in table.columns if name not in keys}
    for structure, mine in zip(structures, rows, strict=True):
        for name, texts in others.items():
            own = {label_of(texts[row]) for row in mine or ()}
            structure.metadata[name] = own.pop() if len(own) == 1 else None
    if place == "graph":
        _refuse_twice(table, ids, asked.id)
        order: list[list[int] | None] = rows
    else:
        order = [
            None if mine is None else _by_node(structure, table, mine, troubles)
            for structure, mine in zip(structures, rows, strict=True)
        ]

    def cells_of(structure: FileStructure, mine: list[int]) -> Cells:
        def where(row: int, column: int) -> str:
            return table.where(mine[row], names[column], structure.called)

        return Cells(cells[mine], where)

    found = [
        None if mine is None else cells_of(structure, mine)
        for structure, mine in zip(structures, order, strict=True)
    ]
    columns = [Column(name, unit=table.units.get(name, "")) for name in names]
    return Found(found, level, names, [column.unit for column in columns], columns)


def _rows_of(
    structures: Sequence[FileStructure],
    table: CsvTable,
    ids: list[str],
    id: str,
    troubles: Troubles,
) -> list[list[int] | None]:
    """The rows of each structure: its name, its file's, or that without the ending."""
    by_id: dict[str, list[int]] = {}
    for row, key in enumerate(ids):
        if not key:
            raise ValueError(f"{table.where(row, id)}: is empty; name the structure")
        by_id.setdefault(key, []).append(row)
    taken: dict[str, FileStructure] = {}
    rows: list[list[int] | None] = []
    missing: list[str] = []
    for structure in structures:
        names = (structure.name, *structure.aliases)
        key = next((name for name in names if name in by_id), "")
        if not key:
            missing.append(f"{table.path}: has no row for {structure.name!r} ({structure.where})")
            rows.append(None)
            continue
        if key in taken:
            raise ValueError(
                f"{table.where(by_id[key][0], id)}: {key!r} fits both {taken[key].where} and "
                f"{structure.where}; name them {taken[key].name!r} and {structure.name!r}"
            )
        taken[key] = structure
        rows.append(by_id[key])
    troubles.add(*missing)
    troubles.add(
        *(
            f"{table.where(mine[0], id)}: there is no structure {key!r}"
            for key, mine in by_id.items()
            if key not in taken
        )
    )
    return rows


def _refuse_twice(table: CsvTable, ids: list[str], id: str) -> None:
    seen: dict[str, int] = {}
    for row, key in enumerate(ids):
        if seen.setdefault(key, row) != row:
            raise ValueError(
                f"{table.where(row, id)}: {key!r} is already in row {table.rows[seen[key]]}; "
                "keep one of them"
            )


def _by_node(
    structure: FileStructure, table: CsvTable, rows: list[int], troubles: Troubles
) -> list[int] | None:
    """The rows in the order of the nodes."""
    texts = table.text(NODE)
    names = structure.extra.get("node_id") or [str(k) for k in range(len(structure.pos))]
    known = set(names)
    order: dict[str, int] = {}
    for row in rows:
        where = table.where(row, NODE)
        if texts[row] not in known:
            raise ValueError(
                f"{where}: {texts[row]!r} is no node of {structure.name!r}, which has {names[0]} "
                f"to {names[-1]}"
            )
        if order.setdefault(texts[row], row) != row:
            first = table.rows[order[texts[row]]]
            raise ValueError(f"{where}: {texts[row]} is already in row {first}; keep one of them")
    lacking = [name for name in names if name not in order]
    if lacking:
        troubles.add(f"{table.path}: has no row for node {lacking[0]} of {structure.name!r}")
        return None
    return [order[name] for name in names]


# ---------------------------------------------------------------- from the structures


def _own(structures: Sequence[FileStructure], asked: Asked, troubles: Troubles) -> Found | None:
    """The values of the structures with these names; None if none are asked for or there."""
    if asked.columns == ():
        return None
    wanted = list(asked.columns or ["y"])
    levels: tuple[str, ...] = LEVELS
    if asked.place is not None:
        levels = (asked.place,)

    masked = asked.missing == "mask" and asked.columns is not None
    enough = any if masked else all  # a value that is not there is a missing label

    def has(structure: FileStructure, level: str) -> bool:
        return enough(name in structure.values[level] for name in wanted)

    def those_with(level: str) -> list[FileStructure]:
        return [s for s in structures if has(s, level)]

    # where most have it: all of them, unless those that have not are to be left out
    level = max(levels, key=lambda level: len(those_with(level)))
    having = those_with(level)
    if len(having) < len(structures) and not (masked and having):
        if asked.columns is None:
            return None
        if not having or not troubles.skip:
            raise ValueError(_not_there(structures, wanted, levels))
        lacking = [s for s in structures if not has(s, level)]
        troubles.add(*(_not_there([s], wanted, levels) for s in lacking))
    widths = {}
    for name in wanted:
        owner = next((s for s in having if name in s.values[level]), None)
        if owner is None:
            raise ValueError(_not_there(structures, wanted, levels))
        widths[name] = _block(owner, level, name).shape[1]
    first = having[0]
    blocks = [
        [_block_or_nan(s, level, name, widths[name]) for name in wanted]
        if masked or has(s, level)
        else None
        for s in structures
    ]
    names: list[str] = []
    columns: list[Column] = []
    for name, width in widths.items():
        names += [name] if width == 1 else [f"{name}_{index}" for index in range(width)]
        columns.append(Column(name, width, first.value_units.get(name, "")))
    cells: list[Cells | None] = []
    for structure, mine in zip(structures, blocks, strict=True):
        if mine is None:
            cells.append(None)
            continue
        values = np.concatenate([block.astype(object) for block in mine], axis=1)
        if values.shape[1] != len(names):
            raise ValueError(
                f"columns: {structure.where} has {values.shape[1]} values of {', '.join(wanted)}, "
                f"but {first.where} has {len(names)}"
            )
        cells.append(Cells(values, partial(_place, structure, level, names)))
    level = asked.level or level
    units = [first.value_units.get(name, "") for name in names]
    return Found(cells, level, names, units, columns)


def _block(structure: FileStructure, level: str, name: str) -> np.ndarray:
    """Values as `[rows, w]`; of a graph there is one row."""
    array = np.asarray(structure.values[level][name])
    return array.reshape(1, -1) if level == "graph" else as_columns(array)


def _block_or_nan(structure: FileStructure, level: str, name: str, width: int) -> np.ndarray:
    """As :func:`_block`; NaN where the structure has no such value."""
    if name in structure.values[level]:
        return _block(structure, level, name)
    edges = 0 if structure.edges is None else structure.edges.shape[1]
    rows = {"graph": 1, "node": len(structure.pos), "edge": edges}[level]
    return np.full((rows, width), np.nan)


def _place(
    structure: FileStructure, level: str, names: Sequence[str], row: int, column: int
) -> str:
    return structure.place(level, row, names[column])


def _not_there(
    structures: Sequence[FileStructure], wanted: Sequence[str], levels: Sequence[str]
) -> str:
    """The message on the first structure that does not have what is wanted."""

    def has(structure: FileStructure) -> list[str]:
        return [name for level in levels for name in structure.values[level]]

    for structure in structures:
        for name in wanted:
            if name not in has(structure):
                what = f"a value of {structure.where}"
                return unknown_name("columns", name, has(structure), what)
    return f"columns: {', '.join(wanted)} are values of different things; pass level=..."
