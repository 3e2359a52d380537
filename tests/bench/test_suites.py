"""Each suite runs, small, and measures what the bounds are about. No time is looked at."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from helpers import COMPILES
from symgnn.bench import SUITES, suite_named
from symgnn.bench import _scale_suite as scale_suite
from symgnn.bench._measure import NoMemoryError
from symgnn.bench._peers_suite import in_space, on_graph, triplets
from symgnn.bench._shapes import SHAPES, SUPERPIXELS
from symgnn.bench._suite import QUICK, Suite

#: How many bounds and how many ratios without one a quick run has.
COUNTS = {
    "angles": (8, 7),
    "blocks": (14, 0),
    "separable": (27, 8),
    "atoms": (10, 0),
    "peers": (37, 8),
    "topology": (8, 8),
    "seeds": (2, 0),
}


def quick(name: str) -> dict[str, Any]:
    found = suite_named(name).run(QUICK, quick=True)
    for claim in found["claims"]:
        assert claim["ratio"]["median"] > 0
    return found


def counts(found: dict[str, Any]) -> tuple[int, int]:
    bounded = [claim["bound"] is not None for claim in found["claims"]]
    return sum(bounded), len(bounded) - sum(bounded)


@pytest.mark.parametrize("name", COUNTS)
def test_quick_runs(name: str) -> None:
    found = quick(name)
    bounds, others = COUNTS[name]
    if name == "atoms":  # four more, where schnetpack is there
        lacking = [note for note in found["notes"] if "schnetpack is not installed" in note]
        assert len(lacking) == len(found["notes"])
        assert counts(found) == (bounds + 4 - len(lacking), others)
        return
    assert found["notes"] == []
    assert counts(found) == (bounds, others)


def test_every_suite_has_its_name() -> None:
    for name, title in SUITES.items():
        assert (suite_named(name).name, suite_named(name).title) == (name, title)
        assert suite_named(name).finding
        assert len(suite_named(name).parts(False)) >= len(suite_named(name).parts(True)) > 0


def test_scale_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def peak_of(nodes: int, dimension: int, chunk: int | None, threads: int) -> dict[str, int]:
        return {"step": 2**30 if chunk else 2**32, "all": 3 * 2**30}

    monkeypatch.setattr(scale_suite, "in_child", here)
    monkeypatch.setattr(scale_suite, "keep_memory", lambda: None)
    monkeypatch.setattr(scale_suite, "peak_of", peak_of)
    found = quick("scale")
    assert counts(found) == (3, 2)
    assert [claim["nodes"] for claim in found["claims"]][:2] == [300, 600]
    assert [claim["ratio"]["median"] for claim in found["claims"]][-2:] == [0.25, 3.0]


def test_a_graph_that_does_not_fit_misses_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(function: Callable[..., Any], nodes: int, *args: Any) -> Any:
        if nodes >= 600:
            raise NoMemoryError(10 * 2**30)
        found = {"small": [1.0, 1.0], "large": [1.0, 1.2], "angles": 5}
        return found if function is scale_suite.times_of else {"step": 2**30, "all": 2**30}

    monkeypatch.setattr(scale_suite, "in_child", full)
    parts = [*scale_suite.memory_in_chunks(2, 300, 600, QUICK)]
    assert [claim.reached for claim in parts] == [False, False]
    assert parts[-1].ratio.median == 10.0
    assert "more than the 10.0 GiB" in parts[-1].note
    found = Suite("scale", "", lambda quick: [scale_suite.parts(True)[0]]).run(QUICK)
    assert [claim["what"].partition(",")[0] for claim in found["claims"]] == [
        "time for each angle",
        "slowest over fastest",
    ]
    assert found["notes"] == [
        "2-d: time of 600 nodes: it needs more than the 10.0 GiB that are free"
    ]


def test_a_peak_is_found() -> None:
    found = scale_suite.peak_of(300, 2, scale_suite.CHUNK, torch.get_num_threads())
    assert 0 <= found["step"] < found["all"]


@pytest.mark.slow
def test_scale_in_its_processes() -> None:
    assert counts(quick("scale")) == (3, 2)


@COMPILES
def test_compile_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled is only traced: generating code takes a minute."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    found = quick("compile")
    assert counts(found) == (0, 1)
    assert "with compiling" in found["claims"][0]["note"]


@pytest.mark.slow
def test_compile() -> None:
    assert counts(quick("compile")) == (0, 1)


def test_without_egnn_the_rest_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "egnn_pytorch", None)
    found = quick("peers")
    assert len(found["notes"]) == len(SHAPES) + 1  # of each shape, and of the atoms
    assert all("pip install egnn-pytorch" in note for note in found["notes"])
    assert counts(found) == (28, 8)


def test_triplets_are_all_of_them() -> None:
    batch = in_space(SUPERPIXELS.batch(quick=True))
    row, col = batch.edge_index.tolist()
    expected = sorted(
        (k, j, i) for k, j in zip(row, col, strict=True)
        for j2, i in zip(row, col, strict=True) if j == j2 and k != i
    )  # fmt: skip
    _, _, i, j, k, kj, ji = triplets(batch.edge_index, batch.num_nodes)
    assert sorted(zip(k.tolist(), j.tolist(), i.tolist(), strict=True)) == expected
    assert torch.equal(batch.edge_index[:, kj], torch.stack([k, j]))
    assert torch.equal(batch.edge_index[:, ji], torch.stack([j, i]))
    with on_graph(batch) as count:
        assert count == len(expected)
