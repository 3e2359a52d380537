"""Rows of an earlier results.json, shown and judged beside those that are run now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from symgnn.experiments._merged_seeds import Cell, merged
from symgnn.store import read_json

#: Fields of a row that name it.
KEY = ("block", "aggregation", "coordinate_map")


def read_rows(
    file: Path,
    expected: Mapping[str, Any],
    free: Collection[str] = (),
    key: str = "rows",
    fields: Collection[str] = KEY,
) -> list[dict[str, Any]]:
    """The rows of a results.json of the same experiment and protocol.

    Args:
        file: A results.json.
        expected: Fields that it must have with these values: its name, settings, ...
        free: Names of settings that may differ.
        key: The field with the rows.
        fields: What each row must have.

    Returns:
        Its rows, each with the commit that it was run with and the seeds of its initialisations.
    """
    if not file.exists():
        raise ValueError(f"--join: {file} is not there; give a results.json of symgnn reproduce")
    found = read_json(file)
    if not isinstance(found, dict) or not isinstance(found.get(key), list):
        raise ValueError(
            f"--join: {file} is no results.json of symgnn reproduce with {key}; give one"
        )
    for field, value in expected.items():
        given, wanted = _without(found.get(field), free), _without(value, free)
        if given != wanted:
            raise ValueError(
                f"--join: {file} has {field} {given!r}, not {wanted!r}; give a "
                "results.json of the same experiment with the same options"
            )
    for number, row in enumerate(found[key]):
        lacking = [name for name in fields if not isinstance(row, dict) or name not in row]
        if lacking:
            raise ValueError(
                f"--join: {file} is damaged, {key}[{number}] has no {lacking[0]}; run it again"
            )
    commit = found.get("environment", {}).get("commit", "unknown")
    seeds = {"seeds": found["seeds"]} if isinstance(found.get("seeds"), list) else {}
    return [{"commit": commit, **seeds, **row} for row in found[key]]


def check_seeds(joined: Sequence[Mapping[str, Any]], wanted: range) -> None:
    """Refuse joined rows that have more initialisations than are wanted."""
    for row in joined:
        if max(row["seeds"]) not in wanted:
            raise ValueError(
                f"--join: {row['block']} has {max(row['seeds']) + 1} initialisations and --seeds "
                f"is {len(wanted)}; give --seeds {max(row['seeds']) + 1}"
            )


def missing_seeds(
    key: Mapping[str, Any], joined: Sequence[Mapping[str, Any]], wanted: range
) -> range:
    """The initialisations of a network that no joined row has.

    Args:
        key: The network, with the fields `KEY`.
        joined: Rows of earlier results.json files, with "seeds".
        wanted: The seeds that a row is to have.
    """
    there = {seed for row in joined if _key(row) == _key(key) for seed in row["seeds"]}
    missing = sorted(set(wanted) - there)
    if not missing:
        return range(0)
    if missing[-1] - missing[0] + 1 != len(missing):
        raise ValueError(
            f"--join: {key['block']} lacks the initialisations {missing}, which do not follow each "
            "other; join a file that has those between them"
        )
    return range(missing[0], missing[-1] + 1)


def without_rows(
    joined: Sequence[dict[str, Any]], keys: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The joined rows of other networks than these."""
    left_out = set(map(_key, keys))
    return [row for row in joined if _key(row) not in left_out]


def with_joined(
    done: Sequence[dict[str, Any]],
    joined: Sequence[dict[str, Any]],
    order: Sequence[Mapping[str, Any]],
    cell: Callable[[str, str, list[float]], Cell] | None = None,
) -> list[dict[str, Any]]:
    """The rows that were run now; with joined ones, all in the order of the experiment.

    Args:
        done: Rows that were run now.
        joined: Rows of an earlier results.json.
        order: All networks of the experiment, with the fields `KEY`.
        cell: Makes a cell of a block, a column and one value for each seed. If it is given, rows of
            one network with other seeds become one row. Otherwise, and if they share a seed, the
            later row replaces the earlier one.
    """
    if not joined:
        return list(done)
    place = {_key(row): number for number, row in enumerate(order)}
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in (*joined, *done):
        other = rows.get(_key(row))
        if other is not None and cell is not None and not set(other["seeds"]) & set(row["seeds"]):
            row = merged(other, row, cell)
        rows[_key(row)] = row
    return sorted(rows.values(), key=lambda row: place.get(_key(row), len(place)))


def is_joined(
    key: Mapping[str, Any], joined: Sequence[Mapping[str, Any]], seeds: Collection[int] = ()
) -> bool:
    """Whether a network, with the fields `KEY`, is among joined rows, with all of these seeds."""
    mine = [row for row in joined if _key(row) == _key(key)]
    return bool(mine) and set(seeds) <= {seed for row in mine for seed in row.get("seeds", ())}


def _without(value: Any, free: Collection[str]) -> Any:
    """A mapping without these names; anything else as it is."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name not in free}


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)
