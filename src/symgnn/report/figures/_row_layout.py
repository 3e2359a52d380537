"""The rows of the results laid out by block, aggregation and coordinate map."""

from __future__ import annotations

from symgnn.report._result_rows import Results, Row, rows_of

Key = tuple[str, str]


def blocks_of(results: Results) -> list[str]:
    """The blocks in the order of the rows."""
    return list(dict.fromkeys(row["block"] for row in rows_of(results)))


def settings_of(results: Results) -> list[Key]:
    """The pairs of aggregation and coordinate map that occur.

    A row without a coordinate map makes a pair of its own only where no other row has one.
    """
    rows = rows_of(results)
    maps = list(dict.fromkeys(row["coordinate_map"] for row in rows if row.get("coordinate_map")))
    aggregations = list(dict.fromkeys(row["aggregation"] for row in rows))
    return [
        (aggregation, name)
        for aggregation in aggregations
        for name in maps or [""]
        if any(belongs(row, (aggregation, name)) for row in rows)
    ]


def belongs(row: Row, key: Key) -> bool:
    """Whether the row is of this pair; one without a coordinate map is of every."""
    return row["aggregation"] == key[0] and (row.get("coordinate_map") or key[1]) == key[1]


def title(key: Key) -> str:
    """The pair in words."""
    return ", ".join(word for word in key if word)
