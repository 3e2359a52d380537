"""The paper's classification of polytopes: its tables, and how what it leaves open is read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from symgnn.data import SETS
from symgnn.data._polytope_sets import READ, Law
from symgnn.experiments._polytope_training import Row
from symgnn.store import read_json

COLUMNS = ("train", *SETS)
COPIES = 100


@dataclass(frozen=True)
class PaperReading:
    """Details that the paper leaves open.

    Attributes:
        law: How test transformations are drawn.
        scaling: The length to which SDGN scales the longest edge, the paper's alpha.
        constant: Whether nodes of GN have a one beside their coordinates.
    """

    law: Law = READ
    scaling: float = 1.0
    constant: bool = False

    @property
    def key(self) -> dict[str, Any]:
        """Its fields, as in results.json."""
        found = asdict(self)
        return {**found.pop("law"), **found}

    @classmethod
    def best_of(cls, path: Path) -> PaperReading:
        """The best reading in the results.json of a sweep (`polytopes-readings`)."""
        found = read_json(path)
        try:
            best = found["readings"][0]
            law = Law(best["offset"], best["matrix"], best["factor"])
            return cls(law, float(best["scaling"]), bool(best["constant"]))
        except (TypeError, KeyError, IndexError):
            raise ValueError(
                f"--reading: {path} is no results.json of symgnn reproduce polytopes-readings; "
                "run that first"
            ) from None


READING = PaperReading()


@dataclass(frozen=True)
class PolytopeTable:
    """A table: its dimension, its name in the paper ("" if it is not there), and its rows."""

    name: str
    title: str
    dimension: int
    paper: str
    rows: tuple[Row, ...]


def _rows(blocks: str, *maps: str) -> tuple[Row, ...]:
    """The rows of a table, in the paper's order."""
    return tuple(
        Row(block, aggregation, psi)
        for block in blocks.split()
        for aggregation in ("mean", "sum")
        for psi in (maps if block != "GN" else ("identity",))
        if block != "GN" or "identity" in maps
    )


#: The blocks of the paper, and two more that are in every table.
_BLOCKS = "AGN SDGN DGN GN CGN Combined"
#: The four variants of AGN in the paper's appendix, and angle updates of product form.
_VARIANTS = "AGN+edges AGN+distances AGN-to-edges AGN-raw AGN-separable CGN-separable"
_BOTH = ("identity", "neighbour-sum")
#: The tables on regular polytopes, by name.
TABLES = {
    table.name: table
    for table in (
        PolytopeTable(
            "polytopes-3d",
            "Polytopes in three dimensions",
            3,
            "polytopes-n3-identity",
            _rows(_BLOCKS, "identity"),
        ),
        PolytopeTable(
            "polytopes-3d-map",
            "Polytopes in three dimensions, coordinates moved by the neighbour-sum",
            3,
            "polytopes-n3-neighbour-sum",
            _rows("AGN SDGN DGN CGN Combined", "neighbour-sum"),
        ),
        PolytopeTable(
            "polytopes-3d-variants",
            "Polytopes in three dimensions: variants of AGN, and separable blocks",
            3,
            "",
            _rows(_VARIANTS, "identity"),
        ),
        PolytopeTable(
            "polytopes-4d",
            "Polytopes in four dimensions",
            4,
            "polytopes-n4",
            _rows(_BLOCKS, *_BOTH),
        ),
        PolytopeTable(
            "polytopes-5d",
            "Polytopes in five dimensions",
            5,
            "polytopes-n5",
            _rows(_BLOCKS, *_BOTH),
        ),
        PolytopeTable(
            "polytopes-6d",
            "Polytopes in six dimensions",
            6,
            "",
            _rows("AGN SDGN DGN GN AGN-separable", "identity"),
        ),
        PolytopeTable(
            "polytopes-7d",
            "Polytopes in seven dimensions",
            7,
            "",
            _rows("AGN SDGN DGN GN AGN-separable", "identity"),
        ),
    )
}
