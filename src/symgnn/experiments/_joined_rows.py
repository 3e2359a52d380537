"""Rows of an earlier results.json, shown and judged beside those that are run now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from symgnn.store import read_json

#: Fields of a row that name it.
KEY = ("block", "aggregation", "coordinate_map")


def read_rows(file: Path, expected: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a results.json of the same experiment and protocol.

    Args:
        file: A results.json.
        expected: Fields that it must have with these values: its name, settings, ...

    Returns:
        Its rows, each with the commit that it was run with.
    """
    found = read_json(file)
    if not isinstance(found, dict) or not isinstance(found.get("rows"), list):
        raise ValueError(f"--join: {file} is no results.json of symgnn reproduce; give one")
    for field, value in expected.items():
        if found.get(field) != value:
            raise ValueError(
                f"--join: {file} has {field} {found.get(field)!r}, not {value!r}; give a "
                "results.json of the same experiment with the same options"
            )
    commit = found.get("environment", {}).get("commit", "unknown")
    return [{"commit": commit, **row} for row in found["rows"]]


def with_joined(
    done: Sequence[dict[str, Any]],
    joined: Sequence[dict[str, Any]],
    order: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The rows that were run now; with joined ones, all in the order of the experiment.

    Args:
        done: Rows that were run now; they replace joined rows of the same network.
        joined: Rows of an earlier results.json.
        order: All networks of the experiment, with the fields `KEY`.
    """
    if not joined:
        return list(done)
    place = {_key(row): number for number, row in enumerate(order)}
    rows = {_key(row): row for row in (*joined, *done)}
    return sorted(rows.values(), key=lambda row: place.get(_key(row), len(place)))


def is_joined(key: Mapping[str, Any], joined: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a network, with the fields `KEY`, is among joined rows."""
    return _key(key) in map(_key, joined)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)
