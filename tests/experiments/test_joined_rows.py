"""Rows of earlier records, and initialisations of one row that were run at different times."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from symgnn.experiments import EXPERIMENTS, run_experiment
from symgnn.experiments._claims import Claim
from symgnn.experiments._experiment import NetworkRow
from symgnn.experiments._joined_rows import check_seeds, missing_seeds, read_rows, with_joined
from symgnn.experiments._merged_seeds import SECONDS, merged

CURVES = np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.1], [0.9, 0.8, 0.7]])  # one for each seed
TEST = [0.25, 0.5, 0.75]


def row_of(*seeds: int, block: str = "GN") -> dict[str, Any]:
    """A row of results.json with some of three initialisations."""
    chosen = list(seeds)
    curve = CURVES[chosen]
    std = curve.std(0, ddof=1) if len(seeds) > 1 else np.zeros(3)
    shown = {"mean": curve.mean(0).tolist(), "std": std.tolist()}
    return {
        "block": block,
        "aggregation": "sum",
        "coordinate_map": "identity",
        "seeds": chosen,
        "commit": "+".join(map(str, seeds)),
        "parameters": 7,
        "symmetry": "permutations",
        "training_seconds": 10.0 * len(seeds),
        "seconds": 11.0 * len(seeds),
        "processor_seconds": 9.0 * len(seeds),
        "cells": {"test": cell_of(block, "test", [TEST[seed] for seed in seeds], 0.01)},
        "curve": {
            "test_epoch": [1, 2, 3],
            "test_mean": shown["mean"],
            "test_std": shown["std"],
            "targets": {"mu": shown},
        },
    }


def cell_of(block: str, column: str, values: list[float], test_error: float | None = None) -> dict:
    return {"mean": float(np.mean(values)), "values": values, "test_error": test_error}


def nearly(value: Any) -> Any:
    """The value with every list of numbers compared to rounding."""
    if isinstance(value, dict):
        return {name: nearly(each) for name, each in value.items()}
    return pytest.approx(value, abs=1e-12) if isinstance(value, list) else value


@pytest.mark.parametrize("parts", [((0, 1), (2,)), ((2,), (0, 1)), ((0,), (1, 2)), ((0, 2), (1,))])
def test_seeds_are_merged_into_the_row_of_all(parts: tuple[tuple[int, ...], ...]) -> None:
    first, second = (row_of(*seeds) for seeds in parts)
    found, expected = merged(first, second, cell_of), row_of(0, 1, 2)
    assert found["commit"] == f"{first['commit']}, {second['commit']}"
    assert found["curve"] == nearly(expected["curve"])
    assert found["cells"]["test"] == nearly(expected["cells"]["test"] | {"test_error": [0.01]}) | {
        "mean": pytest.approx(expected["cells"]["test"]["mean"]),
        "test_error": pytest.approx(0.01),
    }
    for name in ("seeds", "parameters", "symmetry", *SECONDS):
        assert found[name] == expected[name]
    del first["processor_seconds"]  # as in records of earlier versions
    assert "processor_seconds" not in merged(first, second, cell_of)


def test_three_rows_of_one_seed_each() -> None:
    order = [{"block": "GN", "aggregation": "sum", "coordinate_map": "identity"}]
    (found,) = with_joined([row_of(1)], [row_of(2), row_of(0)], order, cell_of)
    assert found["seeds"] == [0, 1, 2]
    assert found["cells"]["test"]["values"] == TEST
    assert found["curve"] == nearly(row_of(0, 1, 2)["curve"])


def test_networks_that_differ_are_not_merged() -> None:
    other = {**row_of(1), "parameters": 8}
    with pytest.raises(ValueError, match="GN has parameters 7 in one file and 8 in another"):
        merged(row_of(0), other, cell_of)
    later = copy.deepcopy(row_of(1))
    later["curve"]["test_epoch"] = [1, 2, 4]
    with pytest.raises(ValueError, match="differ in test_epoch"):
        merged(row_of(0), later, cell_of)


def test_files_that_are_missing_or_damaged_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--join: .*none.json is not there"):
        read_rows(tmp_path / "none.json", {})
    damaged = tmp_path / "damaged.json"
    damaged.write_text('{"rows": [')
    with pytest.raises(ValueError, match=r"--join: .*damaged.json is no results.json"):
        read_rows(damaged, {})


def test_which_seeds_are_missing() -> None:
    key = {name: row_of(0)[name] for name in ("block", "aggregation", "coordinate_map")}
    assert missing_seeds(key, [row_of(0)], range(3)) == range(1, 3)
    assert missing_seeds(key, [row_of(0, 1)], range(2)) == range(0)
    assert missing_seeds(key, [row_of(0, 1, block="DGN")], range(2)) == range(2)
    with pytest.raises(ValueError, match=r"GN lacks the initialisations \[0, 2\]"):
        missing_seeds(key, [row_of(1)], range(3))
    with pytest.raises(
        ValueError, match="GN has 3 initialisations and --seeds is 2; give --seeds 3"
    ):
        check_seeds([row_of(0, 1, 2)], range(2))


def test_rows_with_other_seeds_are_compared_without_pairs() -> None:
    first, second = row_of(0, 1, 2), row_of(0, block="DGN")
    found = Claim("GN", "above", "DGN").check([first, second], "test")
    # both means vary by 0.25, over three initialisations and over one, and by both test sets
    error = (0.25**2 / 3 + 0.25**2 + 2 * 0.01**2) ** 0.5
    assert f"a difference of +0.2500±{error:.4f}" in found["found"]
    assert "DGN has one initialisation" in found["found"]
    alone = Claim("GN", "above", "DGN").check([row_of(1), second], "test")
    assert "over test graphs alone: one initialisation each" in alone["found"]


@pytest.mark.usefixtures("one_thread")
def test_only_missing_seeds_are_run(tmp_path: Path) -> None:
    def run(name: str, *blocks: str, **options: Any) -> dict:
        rows = [NetworkRow(block, "sum") for block in blocks]
        settings = {"epochs": 2, "source": "sample", "console": Console(quiet=True), **options}
        return run_experiment(EXPERIMENTS["qm9"], tmp_path / name, rows=rows, **settings)

    first = run("first", "GN", seeds=1)
    record = tmp_path / "first" / "results.json"
    both = run("both", "GN", "DGN", seeds=3, join=[record])
    gn, dgn = both["rows"]
    assert gn["seeds"] == dgn["seeds"] == [0, 1, 2]
    for column, cell in first["rows"][0]["cells"].items():
        assert gn["cells"][column]["values"][0] == cell["values"][0]
        assert len(set(gn["cells"][column]["values"])) == 3  # not one seed three times
    saved = {path.stem.split("-")[0]: path for path in (tmp_path / "both" / "rows").iterdir()}
    part = json.loads(saved["GN"].read_text())
    assert part["result"]["seeds"] == [1, 2]
    assert part["settings"]["first_seed"] == 1


def test_rows_are_shown_and_judged_without_a_run(tmp_path: Path) -> None:
    """Those of two files, with the initialisations that they have."""
    short: dict[str, Any] = {"epochs": 1, "source": "sample", "console": Console(quiet=True)}
    records = []
    for block, seeds in (("GN", 2), ("AGN", 1)):
        run_experiment(
            EXPERIMENTS["qm9"],
            tmp_path / block,
            rows=[NetworkRow(block, "sum")],
            seeds=seeds,
            **short,
        )
        records.append(tmp_path / block / "results.json")
    out = tmp_path / "both"
    found = run_experiment(EXPERIMENTS["qm9"], out, join=records, join_only=True, **short)
    assert {row["block"]: row["seeds"] for row in found["rows"]} == {"GN": [0, 1], "AGN": [0]}
    assert not list(out.glob("training/*"))
    judged = {each["claim"]: each["found"] for each in found["claims"]}
    assert judged["DGN is below GN"] == "not all of its rows were run"
    assert any(claim.startswith("AGN is below GN") and "±" in judged[claim] for claim in judged)
    for wrong in ({}, {"join": records, "rows": [NetworkRow("GN", "sum")]}):
        with pytest.raises(ValueError, match="--join-only: shows the rows of --join FILE"):
            run_experiment(EXPERIMENTS["qm9"], out, join_only=True, **short, **wrong)
