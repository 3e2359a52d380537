"""The protocols of benchmarks/discover, on small sets."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks" / "discover"


@pytest.fixture
def protocol(monkeypatch: pytest.MonkeyPatch) -> object:
    """A script of the folder as a module; they import each other by name."""
    if not FOLDER.is_dir():
        pytest.skip(f"{FOLDER} is not there: benchmarks come with the repository")
    monkeypatch.syspath_prepend(str(FOLDER))

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in ("planted", "size"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("shape", "rule"), [("cloud-3d", "angles"), ("cloud-2d", "heights")])
def test_planted_symmetry_is_found(protocol, shape: str, rule: str) -> None:
    found = protocol("planted_truth").judged(shape, rule, 5, graphs=200)
    assert found["right"], found["wrong"]
    assert not found["blind"]


def test_p_values_of_symmetric_sets(protocol) -> None:
    size = protocol("size")
    rows = [size.p_values(seed, graphs=30) for seed in range(3)]
    every = [p for row in rows for values in row.values() for p in values.values()]
    assert all(0 < p <= 1 for p in every)
    assert size.summary(rows)["inputs"]["rotation"][1] == 3
    # 12 exact p-values: below 0.01 once in 8 runs, twice in 170, three times in 5000
    assert sum(p <= 0.01 for row in rows for p in row["inputs"].values()) < 3


def test_verdicts_are_counted(protocol) -> None:
    found = protocol("power").judged("cloud-2d", "heights", 60, 1)
    assert 8 <= sum(found["counts"].values()) <= 11  # those that clouds have of eleven kinds
    assert found["counts"]["right"] >= 8
    assert found["counts"]["kept, yet it matters"] == 0


def test_upright_trees_are_turned_trees(protocol) -> None:
    variation = protocol("variation_size")
    graphs = variation.symmetric(2_000, 20)[0]
    for before, after in zip(graphs, variation.upright(graphs), strict=True):
        source, target = after.edge_index[:, 0]
        ray = after.pos[target] - after.pos[source]
        assert (ray[:2].abs() < 1e-12).all()
        assert ray[2] > 0
        distances = [torch.cdist(g.pos, g.pos) for g in (before, after)]
        assert (distances[0] - distances[1]).abs().max() < 1e-6  # cdist squares
        hands = [float(torch.linalg.det(g.pos[1:4] - g.pos[:1])) for g in (before, after)]
        assert hands[0] == pytest.approx(hands[1], abs=1e-10)
