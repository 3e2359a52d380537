"""How potentials are built and trained where nothing else is said."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import symgnn
from symgnn.nn.averaging import _scattered
from symgnn.train._config import resolve
from symgnn.train._potential_config import TRAINING, for_potential, training_of_potential
from train.emt_frames import emt_frames

TARGETS = ["energy", "forces"]


def test_what_is_said_replaces_defaults() -> None:
    assert training_of_potential({"epochs": 3}) == {"epochs": 3}  # no potential
    found = training_of_potential({"targets": TARGETS, "batch_size": 2})
    assert found == {**TRAINING, "warmup": 1.0, "targets": TARGETS, "batch_size": 2}
    assert training_of_potential({"targets": TARGETS, "epochs": 4})["warmup"] == 0.2
    assert training_of_potential({"targets": TARGETS, "warmup": 3})["warmup"] == 3
    assert "target_weights" not in training_of_potential({"targets": ["energy"]})
    weights = {"energy": 2.0}
    found = training_of_potential({"targets": TARGETS, "target_weights": weights})
    assert found["target_weights"] == weights


@pytest.mark.parametrize(
    ("block", "there", "lacks"),
    [
        ("combined", ["ray_lengths", "cosines", "residual", "radial"], []),
        ("combined-separable", ["ray_lengths", "residual", "radial"], ["cosines"]),
        ("dgn", ["residual", "radial"], ["ray_lengths", "cosines"]),
        ("agn", ["residual", "cosines"], ["ray_lengths", "radial"]),
        ("combined-filtered", ["radial", "hidden"], ["ray_lengths", "cosines"]),
    ],
)
def test_options_of_blocks(block: str, there: list[str], lacks: list[str]) -> None:
    _, model = for_potential({}, {"block": block}, TARGETS, reads=False)
    assert set(there) <= model.keys()
    assert not set(lacks) & model.keys()


def test_options_that_modify_a_block_have_its_defaults() -> None:
    for block, option in (("dgn", "filtered"), ("combined", "filtered"), ("combined", "separable")):
        _, one = for_potential({}, {"block": block, option: True}, TARGETS, reads=False)
        _, other = for_potential({}, {"block": f"{block}-{option}"}, TARGETS, reads=False)
        assert {**one, "block": f"{block}-{option}"} == {**other, option: True}


def test_clipped_gradients_keep_a_wide_filtered_block_from_diverging() -> None:
    """Without, its training error on these frames is some hundred times the mean force."""
    model = {"block": "combined-filtered", "cutoff": 4.0}
    settings: dict[str, Any] = {"targets": TARGETS, "epochs": 10, "batch_size": 4}
    run = symgnn.fit(emt_frames(30), model, **settings, progress=False)
    assert run.config.train.clip == 10.0
    errors = run.metrics["train"]["mae forces"]
    assert errors["mean"] < errors["baseline"]


def test_runs_that_are_older_than_an_option_stay_what_they_were() -> None:
    """A record has all options of its time; later defaults are none of its."""
    model: dict[str, Any] = {"block": "combined-separable", "hidden": 4, "cutoff": 3.4}
    settings = {"targets": TARGETS, "epochs": 1, "progress": False}
    run = symgnn.fit(emt_frames(10), model, **settings)
    record = run.config.as_dict()
    assert record["model"]["ray_lengths"] is True
    assert record["train"]["schedule"] == "cosine"
    assert resolve(record) == run.config
    del record["model"]["ray_lengths"]
    assert resolve(record).model["ray_lengths"] is False


def test_examples_come_from_all_over_the_list() -> None:
    assert _scattered(8) == [0, 4, 2, 6, 1, 5, 3, 7]
    for count in (1, 2, 3, 5, 16, 17):
        assert sorted(_scattered(count)) == list(range(count))
    assert max(_scattered(16)[:2]) == 8
    graphs = symgnn.data.polytopes(3) * 40
    known = symgnn.nn.averages(graphs, "dgn")
    assert known.example is not None
    assert len(torch.unique(known.example.batch)) > 15
